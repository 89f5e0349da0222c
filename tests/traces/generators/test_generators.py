"""The named generators, and many episodes at once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

import berthline as bl
from berthline.errors import ConfigError
from berthline.model.cluster import Cluster
from berthline.traces.generators import episodes as episodes_module
from berthline.traces.generators.synthetic import GENERATORS, episodes, generate
from berthline.traces.load import load_trace
from berthline.traces.offered_load import offered_load
from berthline.traces.workload_argument import resolve_workload

SWF = SHARED_TRACES / "swf"
CLUSTER = Cluster.uniform(nodes=32, gpus_per_node=8)
COUNTED = [name for name in GENERATORS if name != "synthetic"]
LOADED = [name for name in GENERATORS if name != "batch"]


def test_the_generators_there_are():
    assert set(GENERATORS) == {
        "synthetic",
        "poisson",
        "bursty",
        "on-off",
        "diurnal",
        "shifted-diurnal",
        "batch",
        "lublin",
        "heavy-tailed",
        "drl-scheduler",
        "rlmetadqn",
        "drift",
        "openb",
        "lsf",
    }


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_makes_jobs_that_can_be_simulated(name):
    workload = generate(name, cluster=CLUSTER, jobs=300, seed=4)
    assert len(workload) == 300
    assert workload.provenance["generator"] == name
    assert (workload.run == np.rint(workload.run)).all()
    assert (workload.submit == np.rint(workload.submit)).all()
    assert (workload.estimate >= 1).all()
    assert (workload.deadline >= workload.submit).all()
    result = bl.simulate(workload, CLUSTER, "fcfs+easy", knowledge="estimate")
    assert result.metrics().jobs.completed == 300
    again = generate(name, cluster=CLUSTER, jobs=300, seed=4)
    np.testing.assert_array_equal(workload.submit, again.submit)


@pytest.mark.parametrize("name", LOADED)
@pytest.mark.parametrize("load", [0.4, 1.5])
def test_the_load_is_what_was_asked_for(name, load):
    workload = generate(name, cluster=CLUSTER, jobs=60_000, load=load, seed=2)
    tolerance = 0.15 if name == "lublin" else 0.05  # its gaps vary most
    assert offered_load(workload, CLUSTER) == pytest.approx(load, rel=tolerance)
    assert workload.provenance["load"] == load


@pytest.mark.parametrize("name", ["heavy-tailed", "drl-scheduler", "rlmetadqn", "lsf"])
def test_without_a_load_it_is_the_originals_rate(name):
    workload = generate(name, cluster=CLUSTER, jobs=40_000)
    assert workload.provenance["load"] == pytest.approx(offered_load(workload, CLUSTER), rel=0.03)


def test_a_batch_takes_no_load():
    assert (generate("batch", cluster=CLUSTER).submit == 0).all()
    with pytest.raises(ConfigError, match=r"load is 0\.9"):
        generate("batch", cluster=CLUSTER, load=0.9)


def test_the_same_seed_gives_the_same_jobs_at_other_times():
    mixes = [
        generate(n, cluster=CLUSTER, jobs=500) for n in ("poisson", "bursty", "diurnal", "batch")
    ]
    for other in mixes[1:]:
        for column in ("run", "gpus", "user", "priority", "estimate"):
            np.testing.assert_array_equal(getattr(other, column), getattr(mixes[0], column))
        assert not np.array_equal(other.submit, mixes[0].submit)


@pytest.mark.parametrize(
    ("dial", "value", "columns"),
    [
        ("run_sigma", 1.0, {"run", "estimate", "deadline", "submit"}),
        ("gpu_mix", "1-4", {"gpus", "submit", "deadline"}),
        ("gpu_correlation", 0.5, {"gpus", "submit", "deadline"}),
        ("users", 3, {"user"}),
        ("priorities", 9, {"priority"}),
        ("priority_correlation", 0.5, {"priority"}),
        ("estimates", "human", {"estimate"}),
        ("deadline_low", 1.0, {"deadline"}),
    ],
)
def test_a_dial_changes_what_follows_from_it_and_nothing_else(dial, value, columns):
    plain = generate("poisson", cluster=CLUSTER, jobs=500, seed=5)
    turned = generate("poisson", cluster=CLUSTER, jobs=500, seed=5, **{dial: value})
    for column in ("submit", "run", "gpus", "estimate", "priority", "deadline", "user"):
        same = np.array_equal(getattr(plain, column), getattr(turned, column))
        assert same == (column not in columns), column


def test_heavy_tailed_jobs_are_the_look_ahead_systems():
    workload = generate("heavy-tailed", cluster=CLUSTER, jobs=20_000, seed=3)
    assert workload.submit.max() <= 10_000
    part = workload.run / 10_000
    # g = round(0.3 * uniform + 0.7 * (1 + floor(part ** 0.6 * 7))): bounds over all of chance.
    by_run = 1 + np.floor(part**0.6 * 7)
    assert (workload.gpus >= np.rint(0.3 * 1 + 0.7 * by_run) - 1e-9).all()
    assert (workload.gpus <= np.rint(0.3 * 8 + 0.7 * by_run) + 1e-9).all()
    by_run = 1 + np.floor((1 - part) ** 0.8 * 9)
    assert (workload.priority >= np.rint(0.4 * 1 + 0.6 * by_run) - 1e-9).all()
    assert (workload.priority <= np.rint(0.4 * 10 + 0.6 * by_run) + 1e-9).all()
    small = generate("heavy-tailed", cluster=Cluster.uniform(nodes=1, gpus_per_node=4), jobs=5000)
    assert small.gpus.max() <= 4


def test_heavy_tailed_jobs_with_uniform_run_times():
    """The look-ahead system's other run times are 5 to 20 % of the longest one it measures by."""
    dials = {"run_times": "uniform", "run_low": 500, "run_high": 2000, "longest": 10_000}
    workload = generate("heavy-tailed", cluster=CLUSTER, jobs=20_000, seed=3, **dials)
    assert (workload.run.min(), workload.run.max()) == (500, 2000)
    assert 9_500 < workload.submit.max() <= 10_000
    by_run = 1 + np.floor((workload.run / 10_000) ** 0.6 * 7)
    assert set(by_run) == {2, 3}
    assert (workload.gpus >= np.rint(0.3 * 1 + 0.7 * by_run)).all()
    assert (workload.gpus <= np.rint(0.3 * 8 + 0.7 * by_run)).all()
    by_run = 1 + np.floor((1 - workload.run / 10_000) ** 0.8 * 9)
    assert (workload.priority >= np.rint(0.4 * 1 + 0.6 * by_run)).all()


def test_the_longest_run_time_is_run_high_unless_set():
    plain = generate("heavy-tailed", cluster=CLUSTER, jobs=500, run_high=50_000)
    same = generate("heavy-tailed", cluster=CLUSTER, jobs=500, run_high=50_000, longest=50_000)
    for column in ("submit", "run", "gpus", "priority"):
        np.testing.assert_array_equal(getattr(plain, column), getattr(same, column))


def test_drl_scheduler_jobs():
    cluster = Cluster.parse("drl-scheduler")
    workload = generate("drl-scheduler", cluster=cluster, jobs=50_000)
    assert len(workload) / workload.submit[-1] == pytest.approx(2.5, rel=0.03)
    assert set(workload.priority) == {0.5, 1.0, 2.5, 5.0}
    assert set(workload.gpus) == set(range(1, 9))
    assert set(workload.user) == {0, 1, 2}
    assert workload.run.min() == 1
    assert offered_load(workload, cluster) == pytest.approx(630, rel=0.03)


@pytest.mark.parametrize(
    ("shape", "intensity", "per_minute"),
    [
        ("base", "low", 1.0),
        ("base", "super-high", 6.0),
        ("bursty", "medium", 3.3),
        ("diurnal", "high", 4.0),
        ("shifted-diurnal", "medium", 2.0),
    ],
)
def test_rlmetadqn_jobs(shape, intensity, per_minute):
    workload = generate("rlmetadqn", cluster=CLUSTER, jobs=40_000, shape=shape, intensity=intensity)
    assert len(workload) / workload.submit[-1] * 60 == pytest.approx(per_minute, rel=0.03)
    assert (workload.gpus == 1).all()
    assert (workload.run.min(), workload.run.max()) == (30, 900)
    slack = (workload.deadline - workload.submit) / workload.run
    assert slack.min() >= 1.2 - 1e-9
    assert slack.max() <= 2.0 + 1e-9
    assert set(workload.priority) == {0, 1, 2, 3}


def test_lsf_jobs_come_every_second_and_have_memory():
    workload = generate("lsf", cluster=CLUSTER, jobs=5000)
    seconds, counts = np.unique(workload.submit, return_counts=True)
    assert seconds.tolist() == list(range(len(seconds)))
    assert counts.max() <= 50
    assert set(workload.memory_mib) == {512, 768, 1024, 1536, 2048, 3072, 4096}
    assert (workload.run.min(), workload.run.max()) == (20, 120)
    assert set(workload.gpus) == {1, 2, 3, 4}


def test_memory_of_lsf_jobs():
    dials = {"memory_low": 3072, "memory_high": 12_000}
    workload = generate("lsf", cluster=CLUSTER, jobs=4000, **dials)
    sizes, counts = np.unique(workload.memory_mib, return_counts=True)
    assert sizes.tolist() == [3072, 4096, 6144, 8192]
    assert counts / 4000 == pytest.approx(0.25, abs=0.03)
    with pytest.raises(ConfigError, match="memory_low is 5000 and memory_high is 6000"):
        generate("lsf", cluster=CLUSTER, jobs=10, memory_low=5000, memory_high=6000)


@pytest.mark.skipif(not SWF.is_dir(), reason="shared trace files are not here")
def test_lublin_jobs_are_like_those_of_the_model():
    original = load_trace(SWF / "lublin_256.swf.gz")
    workload = generate("lublin", cluster=CLUSTER, jobs=10_000, seed=1)
    levels = [0.1, 0.25, 0.5, 0.75, 0.9, 0.99]
    ratio = np.quantile(workload.run, levels) / np.quantile(original.run, levels)
    assert ratio.min() > 0.8
    assert ratio.max() < 1.25
    assert workload.gpus.mean() == pytest.approx(original.gpus.mean(), rel=0.05)
    assert (workload.gpus == 1).mean() == pytest.approx((original.gpus == 1).mean(), abs=0.02)


def test_lublin_follows_the_time_of_day_and_fits_any_cluster():
    hours = generate("lublin", cluster=CLUSTER, jobs=50_000).submit % 86_400 / 3600
    counts = np.histogram(hours, bins=24, range=(0, 24))[0]
    assert 11 <= np.argmax(counts) <= 16
    assert counts.max() > 5 * counts.min()
    flat = generate("lublin", cluster=CLUSTER, jobs=50_000, daily_cycle="off").submit
    flat_counts = np.histogram(flat % 86_400, bins=24)[0]
    assert flat_counts.max() < 2 * flat_counts.min()
    for gpus in (1, 2, 3, 100):
        cluster = Cluster.uniform(nodes=1, gpus_per_node=gpus)
        workload = generate("lublin", cluster=cluster, jobs=2000)
        assert workload.gpus.max() == gpus


def test_lublin_shares_of_nothing_and_of_all():
    for serial, power, sizes in ((1.0, 0.5, {1}), (0.0, 1.0, {2**k for k in range(1, 9)})):
        jobs = generate(
            "lublin", cluster=CLUSTER, jobs=5000, serial_share=serial, power_share=power
        )
        assert set(jobs.gpus.tolist()) <= sizes
    wide = Cluster.uniform(nodes=500, gpus_per_node=8)
    assert np.isfinite(generate("lublin", cluster=wide, jobs=5000).run).all()


def test_the_common_workloads_dial_says_what_it_does():
    dials = {dial.name: dial for dial in GENERATORS["synthetic"].dials}
    assert "estimates" not in dials
    for model in ("lognormal", "human", "factor"):
        assert model not in dials["estimate_error"].meaning


def test_dials_from_the_command_line_are_text():
    workload = resolve_workload(
        "rlmetadqn", cluster=CLUSTER, jobs=10, settings={"shape": "bursty", "gpu_mix": "1:1,2:1"}
    )
    assert workload.provenance["dials"]["shape"] == "bursty"
    with pytest.raises(ConfigError) as caught:
        resolve_workload("rlmetadqn", cluster=CLUSTER, settings={"shape": "brusty"})
    assert caught.value.hint == "did you mean 'bursty'?"
    assert caught.value.where == "generator 'rlmetadqn'"


# --- many episodes -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COUNTED)
def test_episode_0_is_the_generated_workload(name):
    batch = episodes(name, cluster=CLUSTER, count=3, jobs=50, seed=8)
    alone = generate(name, cluster=CLUSTER, jobs=50, seed=8)
    for column in batch.columns:
        np.testing.assert_array_equal(getattr(batch[0], column), getattr(alone, column))
    assert batch[0].provenance == alone.provenance
    assert batch[2].provenance["episode"] == 2


@pytest.mark.parametrize("name", GENERATORS)
def test_an_episode_depends_on_its_number_alone(name, monkeypatch):
    many = episodes(name, cluster=CLUSTER, count=20, jobs=30, seed=6)
    monkeypatch.setattr(episodes_module, "_BLOCK", 100)  # drawn three at a time,
    monkeypatch.setattr(episodes_module, "_FEW_BLOCKS", 1)  # even these few
    some = episodes(name, cluster=CLUSTER, count=5, jobs=30, seed=6, first=11)
    for key, table in some.columns.items():
        np.testing.assert_array_equal(table, many.columns[key][11:16])
    assert [w.provenance["episode"] for w in some] == [11, 12, 13, 14, 15]


@pytest.mark.parametrize("name", GENERATORS)
def test_episodes_are_sorted_and_differ(name):
    batch = episodes(name, cluster=CLUSTER, count=8, jobs=100)
    assert len(batch) == 8
    assert (np.diff(batch.columns["submit"], axis=1) >= 0).all()
    assert len(np.unique(batch.columns["run"][:, :5], axis=0)) == 8
    assert batch.columns["gpus"].dtype == np.int32


def test_a_synthetic_episode_has_the_distributions_of_the_common_workload():
    batch = episodes("synthetic", cluster=CLUSTER, count=50, jobs=400, load=0.9)
    alone = generate("synthetic", cluster=CLUSTER, jobs=20_000, load=0.9)
    assert np.median(batch.columns["run"]) == pytest.approx(np.median(alone.run), rel=0.05)
    assert batch.columns["gpus"].mean() == pytest.approx(alone.gpus.mean(), rel=0.03)
    ends = batch.columns["submit"][:, -1].mean()
    assert ends / 400 == pytest.approx(alone.submit[-1] / 20_000, rel=0.05)


def test_wrong_numbers_of_episodes_are_refused():
    for wrong in ({"count": 0}, {"first": -1}, {"jobs": 0}, {"seed": -1}, {"users": 0}, {"x": 1}):
        given = {"count": 2, "jobs": 5, **wrong}
        with pytest.raises(ConfigError):
            episodes("poisson", cluster=CLUSTER, **given)
    with pytest.raises(ConfigError, match="unknown generator 'nope'"):
        episodes("nope", cluster=CLUSTER, count=1, jobs=1)


def test_a_generator_itself_will_do():
    batch = episodes(GENERATORS["lsf"], cluster=CLUSTER, count=2, jobs=10)
    np.testing.assert_array_equal(
        batch.columns["run"], episodes("lsf", cluster=CLUSTER, count=2, jobs=10).columns["run"]
    )
