"""Generators fitted to traces: how close they come, and the file they are kept in."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline import _native
from berthline.errors import ConfigError, TraceError
from berthline.evaluate.trace_checks.closeness import report
from berthline.evaluate.trace_checks.wait_check import check_waits
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload
from berthline.traces.generators.fitted.fit import fit
from berthline.traces.generators.fitted.fit_arrivals import local_hour_of_week, series_of
from berthline.traces.generators.fitted.fitted_arrivals import starts_of
from berthline.traces.generators.fitted.fitted_generator import (
    Bursts,
    FittedGenerator,
    Level,
    Request,
    Week,
)
from berthline.traces.generators.synthetic import episodes, generate
from berthline.traces.load import load_trace
from berthline.traces.offered_load import offered_load
from berthline.traces.workload_argument import resolve_workload

SHARED = SHARED_TRACES
LOGS = {
    "hpc2n": "swf/HPC2N-2002-2.2-cln.swf.gz",
    "ctc": "swf/CTC-SP2-1996-3.1-cln.swf.gz",
    "venus": "helios_venus/venus_gpu_jobs_2020-03-18_2020-08-31.csv.gz",
    "philly": "philly/philly_2017-09-04_2017-11-14.csv.gz",
}
FACTOR = {"hpc2n": 4.0, "ctc": 2.0, "venus": 2.0, "philly": 3.5}
"""How far mean waits may be off. Philly has ten weeks, and one long overload among them."""
CLUSTER = Cluster.uniform(nodes=32, gpus_per_node=8)


@pytest.fixture(scope="module")
def original() -> Workload:
    return generate(
        "diurnal",
        cluster=CLUSTER,
        jobs=20_000,
        depth=0.8,
        gpu_correlation=0.5,
        estimates="human",
        estimate_error=0.7,
        users=40,
        seed=9,
    )


@pytest.fixture(scope="module")
def fitted(original) -> FittedGenerator:
    return fit(original)


def test_a_generated_workload_is_found_again(original, fitted):
    close = report(original, fitted.generate(seed=1))
    assert close.run_distance < 0.02
    assert close.work_distance < 0.02
    assert close.gap_distance < 0.04
    assert close.gpu_mix_distance < 0.02
    assert close.demand[1] == pytest.approx(close.demand[0], rel=0.1)
    assert close.jobs_per_day[1] == pytest.approx(close.jobs_per_day[0], rel=0.05)
    assert close.hour_of_day_correlation > 0.95
    assert close.accuracy_distance < 0.05
    # Its users do not repeat themselves, and neither do the fitted ones.
    assert close.user_run_correlation == pytest.approx((0, 0), abs=0.05)
    assert close.same_user[1] == pytest.approx(close.same_user[0], abs=0.03)


@pytest.fixture(scope="module", params=list(LOGS))
def log(request) -> tuple[str, Workload, FittedGenerator]:
    path = SHARED / LOGS[request.param]
    if not path.is_file():
        pytest.skip("shared trace files are not here")
    trace = load_trace(path)
    return request.param, trace, fit(trace)


def test_real_logs(log):
    name, trace, generator = log
    assert generator.mean_work == pytest.approx(trace.work / len(trace), rel=0.02)
    close = report(trace, generator.generate(seed=2))
    assert close.run_distance < 0.04
    assert close.work_distance < 0.04
    assert close.gap_distance < 0.12
    assert close.gpu_mix_distance < 0.03
    for level, ratio in close.run_quantile_ratios.items():
        assert 0.75 < ratio < 1.35, level
    assert close.demand[1] == pytest.approx(close.demand[0], rel=0.15)
    assert close.jobs_per_day[1] == pytest.approx(close.jobs_per_day[0], rel=0.15)
    assert close.hour_of_day_correlation > (0.75 if name == "philly" else 0.9)
    assert close.user_run_correlation[1] == pytest.approx(close.user_run_correlation[0], abs=0.15)
    assert close.user_gpus_repeated[1] == pytest.approx(close.user_gpus_repeated[0], abs=0.05)
    assert close.same_user[1] == pytest.approx(close.same_user[0], abs=0.05)
    assert close.top_user[1] == pytest.approx(close.top_user[0], rel=0.25)
    if close.accuracy_distance is not None:
        assert close.accuracy_distance < 0.15
    assert all(far < 0.05 for far in close.requests.values())
    assert (name in ("philly", "ctc", "hpc2n")) == ("pool" in close.requests)


def test_bursts_are_as_strong_as_in_the_log(log):
    _, trace, generator = log
    made = [report(trace, generator.generate(seed=seed)) for seed in range(5)]
    hourly = [close.hourly_dispersion[1] for close in made]
    daily = [close.daily_dispersion[1] for close in made]
    assert np.median(hourly) == pytest.approx(made[0].hourly_dispersion[0], rel=0.25)
    assert np.median(daily) == pytest.approx(made[0].daily_dispersion[0], rel=0.4)


def test_a_fit_is_as_hard_for_a_scheduler_as_its_log(log):
    name, trace, generator = log
    waits = check_waits(trace, [generator.generate(seed=seed) for seed in range(5)])
    assert waits.original > 0
    assert 1 / FACTOR[name] < waits.ratio < FACTOR[name]
    widest = int(trace.gpus.max())
    assert waits.gpus == max(widest, int(np.ceil(trace.work / trace.submit[-1] / 0.8)))
    assert waits.load * waits.gpus == pytest.approx(trace.work / trace.submit[-1])


def test_what_jobs_ask_for_is_found_again():
    path = SHARED / "alibaba_gpu_v2023" / "openb_pod_list_gpuspec10.csv.gz"
    if not path.is_file():
        pytest.skip("shared trace files are not here")
    trace = load_trace(path)
    made = fit(trace).generate(seed=3)
    close = report(trace, made)
    assert {"GPU types", "GPU types, with GPUs", "priority", "CPUs", "memory"} <= set(
        close.requests
    )
    assert all(far < 0.1 for far in close.requests.values()), close.requests
    assert made.gpu_type_sets == trace.gpu_type_sets


def test_requests_go_with_users_and_sizes():
    workload = generate("poisson", cluster=CLUSTER, jobs=4000, seed=5, users=6)
    pool = (workload.user % 3).astype(np.int32)  # every user has a pool
    memory = workload.gpus.astype(np.int64) * 1000
    trace = Workload.from_columns(
        submit=workload.submit,
        run=workload.run,
        gpus=workload.gpus,
        user=workload.user,
        pool=pool,
        pool_names=("a", "b", "c"),
        memory_mib=memory,
        cpus=np.where(workload.gpus == 8, 64, 2 * workload.gpus),
        priority=workload.priority,
        deadline=workload.submit + 3 * workload.run,
    )
    made = fit(trace).generate(seed=1)
    assert made.pool_names == ("a", "b", "c")
    assert all(len(np.unique(made.pool[made.user == user])) == 1 for user in np.unique(made.user))
    np.testing.assert_array_equal(made.memory_mib, made.gpus * 1000)
    np.testing.assert_array_equal(made.cpus, np.where(made.gpus == 8, 64, 2 * made.gpus))
    np.testing.assert_allclose(made.deadline, made.submit + 3 * made.run)
    close = report(trace, made)
    assert close.requests["pool"] < 0.07
    assert close.requests["priority"] < 0.05
    assert close.requests["deadline, in run times"] == 0
    plain = report(workload, fit(workload).generate(seed=1))
    assert "pool" not in plain.requests


def test_jobs_without_gpus_and_on_parts_of_one():
    random = np.random.default_rng(0)
    gpus = random.choice([0, 1, 2], 2000, p=[0.2, 0.7, 0.1])
    milli = np.where((gpus == 1) & (random.random(2000) < 0.5), 250, 1000)
    trace = Workload.from_columns(
        submit=np.cumsum(random.exponential(60, 2000)),
        run=np.rint(random.lognormal(6, 1, 2000)) + 1,
        gpus=gpus,
        gpu_milli=milli,
        cpus=4,
    )
    made = fit(trace).generate(seed=1)
    close = report(trace, made)
    assert close.gpu_mix_distance < 0.04
    assert close.requests["part of a GPU"] < 0.04
    assert (made.cpus == 4).all()
    assert close.demand[1] == pytest.approx(close.demand[0], rel=0.15)


def test_load_is_a_dial(fitted):
    workload = fitted.generate(20_000, cluster=CLUSTER, load=0.5)
    assert offered_load(workload, CLUSTER) == pytest.approx(0.5, rel=0.1)
    assert workload.provenance["load"] == 0.5
    with pytest.raises(ConfigError, match="no cluster is given"):
        fitted.generate(load=0.5)
    with pytest.raises(ConfigError, match="load is -1"):
        fitted.generate(load=-1, cluster=CLUSTER)


def test_reproducible_and_different(fitted):
    first, second = fitted.generate(500, 3), fitted.generate(500, 3)
    for column in ("submit", "run", "gpus", "estimate", "user"):
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))
    assert not np.array_equal(first.run, fitted.generate(500, 4).run)
    assert len(fitted.generate()) == fitted.jobs == 20_000


def test_episodes(fitted):
    batch = episodes(fitted, cluster=CLUSTER, count=6, jobs=100, seed=3)
    assert (np.diff(batch.columns["submit"], axis=1) >= 0).all()
    np.testing.assert_array_equal(batch[0].run, fitted.generate(100, 3).run)
    later = episodes(fitted, cluster=CLUSTER, count=2, jobs=100, seed=3, first=4)
    for key, table in later.columns.items():
        np.testing.assert_array_equal(table, batch.columns[key][4:])
    with pytest.raises(ConfigError, match="unknown dial 'users'"):
        episodes(fitted, cluster=CLUSTER, count=1, jobs=10, users=3)


def test_the_file_is_a_workload(fitted, tmp_path):
    path = tmp_path / "mine.fit.json"
    fitted.save(path)
    assert FittedGenerator.load(path) == fitted
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.fit.json"]
    workload = resolve_workload(str(path), cluster=CLUSTER, jobs=50, seed=3)
    np.testing.assert_array_equal(workload.run, fitted.generate(50, 3).run)
    assert len(resolve_workload(str(path), cluster=CLUSTER)) == fitted.jobs
    loaded = resolve_workload(str(path), cluster=CLUSTER, jobs=5000, load=1.2)
    assert offered_load(loaded, CLUSTER) == pytest.approx(1.2, rel=0.2)
    with pytest.raises(ConfigError, match="`format=swf` given for a fitted generator"):
        resolve_workload(str(path), cluster=CLUSTER, format="swf")
    with pytest.raises(ConfigError, match="`settings` has users, given"):
        resolve_workload(str(path), cluster=CLUSTER, settings={"users": "3"})
    with pytest.raises(ConfigError):
        resolve_workload(str(tmp_path / "other.fit.json"), cluster=CLUSTER)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: b"",
        lambda text: b"\xff\xfe\x00",
        lambda text: b"[]",
        lambda text: b"{}",
        lambda text: text.replace(b'"layout": 2', b'"layout": 1'),
        lambda text: text.replace(b'"layout": 2', b'"layout": 2, "more": 3'),
        lambda text: text.replace(b'"jobs": 20000', b'"jobs": 0'),
        lambda text: text.replace(b'"jobs": 20000', b'"jobs": "many"'),
    ],
)
def test_a_damaged_file_is_refused(fitted, tmp_path, damage):
    path = tmp_path / "mine.fit.json"
    fitted.save(path)
    before = path.read_bytes()
    path.write_bytes(damage(before))
    assert path.read_bytes() != before
    with pytest.raises(TraceError) as caught:
        FittedGenerator.load(path)
    assert caught.value.where == str(path)
    assert "berthline traces fit" in caught.value.expected


@pytest.mark.parametrize(
    "field",
    [
        {"mean_gap": 0.0},
        {"mean_work": -1.0},
        {"hourly": [1.0] * 23},
        {"daily": [0.0] * 7},
        {"day": Level(-1.0, 0.0, 0.0)},
        {"day": Level(0.1, 1.5, 0.0)},
        {"weeks": []},
        {"weeks": [Week(0.0, 0.0)]},
        {"series_scale": 0.0},
        {"requests": [Request(3, -1, 0.0, 0.0, 0.0, -1.0, 1000)]},
        {"users": []},
        {"classes": []},
        {"limits": []},
        {"gaps": [0.0]},
        {"bursts": Bursts(-0.5, 3.0, 0.0)},
        {"bursts": Bursts(0.5, 0.0, 0.0)},
    ],
)
def test_numbers_that_make_no_sense_are_refused(fitted, tmp_path, field):
    path = tmp_path / "mine.fit.json"
    msgspec.structs.replace(fitted, **field).save(path)
    with pytest.raises(TraceError, match="invalid numbers"):
        FittedGenerator.load(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(TraceError, match="cannot read"):
        FittedGenerator.load(tmp_path / "none.fit.json")


def test_nothing_of_a_job_or_a_user_is_kept(fitted, original):
    text = msgspec.json.encode(fitted).decode()
    assert not any(f'"{name}"' in text for name in original.user_names)
    assert json.loads(text)["name"] == "diurnal"


def test_too_little_to_learn_from_is_refused():
    few = generate("poisson", cluster=CLUSTER, jobs=50)
    with pytest.raises(TraceError, match="too few to fit"):
        fit(few)
    with pytest.raises(TraceError, match="too few to fit"):
        fit(generate("batch", cluster=CLUSTER, jobs=500))


def test_the_least_that_can_be_learned_from():
    small = fit(generate("poisson", cluster=CLUSTER, jobs=100))
    assert len(small.generate(seed=1)) == 100
    same = Workload.from_columns(submit=np.arange(200.0) * 60, run=np.full(200, 7.0), gpus=1)
    made = fit(same).generate(seed=1)
    assert (made.run == 7).all()
    assert (made.gpus == 1).all()
    assert np.isnan(made.estimate).all()


def test_some_users_state_nothing():
    workload = generate("poisson", cluster=CLUSTER, jobs=5000, seed=1)
    estimate = workload.estimate.copy()
    estimate[::4] = np.nan
    columns = {"submit": workload.submit, "run": workload.run, "gpus": workload.gpus}
    made = fit(Workload.from_columns(**columns, estimate=estimate)).generate(seed=2)
    assert np.isnan(made.estimate).mean() == pytest.approx(0.25, abs=0.03)


def test_series_and_the_clock():
    is_first, length = series_of(np.array([3, 3, 1, 2, 2, 2], np.int32))
    assert is_first.tolist() == [True, False, True, True, False, False]
    assert length.tolist() == [2, 2, 1, 3, 3, 3]
    monday = 1_577_664_000.0  # 2019-12-30 00:00 UTC
    for provenance, hour in (
        ({}, 0.0),
        ({"origin_unix_time": monday + 25.5 * 3600}, 25.5),
        ({"origin_unix_time": monday, "time_zone": "nowhere"}, 0.0),
    ):
        workload = Workload.from_columns(submit=[0, 1], run=1, gpus=1, provenance=provenance)
        assert local_hour_of_week(workload) == hour


def test_where_series_begin():
    length = np.array(
        [[2, 9, 1, 3, 1, 1, 4, 1], [1, 1, 1, 1, 1, 1, 1, 1], [50, 1, 1, 1, 1, 1, 1, 1]]
    )
    begins = [sorted(set(row)) for row in starts_of(length).tolist()]
    assert begins == [[0, 2, 3, 6], list(range(8)), [0]]


def test_whose_a_job_repeats():
    user = np.array([[0, 1, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1]])
    chance = np.array([[0.1, 0.1, 0.2, 0.9, 0.3, 0.1], [0.1, 0.1, 0.6, 0.1, 0.5, 0.1]])
    origin = np.empty_like(user)
    _native.repeat_origins(user, chance, 0.5, 2, origin)
    assert origin.tolist() == [[0, 1, 0, 3, 1, 3], [0, 0, 2, 3, 4, 2]]


def test_a_slow_episode_does_not_depend_on_others(fitted):
    """Its weeks may be so slow that jobs come long after they would without levels."""
    weeks = [Week(rate, 0.0) for rate in (0.001, 0.001, 3.0, 3.0, 3.0)]
    slow = msgspec.structs.replace(fitted, weeks=weeks)
    together = slow.episodes(count=30, jobs=60, seed=1).columns
    lengths = together["submit"][:, -1]
    assert lengths.max() > 10 * np.median(lengths)
    for number in range(30):
        alone = slow.episodes(count=1, first=number, jobs=60, seed=1).columns
        for name, table in alone.items():
            np.testing.assert_array_equal(table[0], together[name][number], err_msg=name)


def test_a_report_is_a_table_and_plain_data(original, fitted):
    close = report(original, fitted.generate(1000))
    rows = close.rows()
    assert all(len(row) == 4 for row in rows)
    assert any(what == "run time p50" for what, *_ in rows)
    assert json.loads(json.dumps(close.as_dict()))["gpu_mix_distance"] == close.gpu_mix_distance
    same = report(original, original)
    assert same.run_distance == same.gap_distance == same.gpu_mix_distance == 0
    assert set(same.run_quantile_ratios.values()) == {1.0}
