"""whatif reconstructs a simulated log: the cluster, the scheduler, and what others would do."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.evaluate.whatif.sacct_text import sacct_text, whole_seconds

import berthline as bl
from berthline.errors import TraceError
from berthline.evaluate.compare.judge import TRADE
from berthline.evaluate.statistics.paired import Ratio, verdict
from berthline.evaluate.whatif.candidate_clusters import settings_of
from berthline.evaluate.whatif.candidate_models import MODELS, models_for, with_placement
from berthline.evaluate.whatif.hidden_limits import _limits_of_users
from berthline.evaluate.whatif.judged_days import DAY
from berthline.evaluate.whatif.keep_answer import cluster_of
from berthline.evaluate.whatif.log_excerpt import HEAD, eligible_since, make_excerpt
from berthline.evaluate.whatif.outcome import DOUBT, said
from berthline.evaluate.whatif.whatif import whatif
from berthline.evaluate.whatif.whatif_result import AgainstToday
from berthline.evaluate.whatif.whatif_words import begins_words
from berthline.model.history import History
from berthline.model.limits import Quota
from berthline.model.schedule import START
from berthline.model.write_cluster_file import write_cluster_file

if TYPE_CHECKING:
    from pathlib import Path

NODES, GPUS = 6, 8
CLUSTER = f"uniform:{NODES}x{GPUS}"
JOBS = 2500


@functools.cache
def jobs(seed: int = 3) -> bl.Workload:
    """Return three weeks of jobs with limits, on a cluster that they nearly fill."""
    return whole_seconds(
        bl.generate(
            "poisson",
            cluster=CLUSTER,
            jobs=JOBS,
            load=0.95,
            seed=seed,
            estimates="human",
            estimate_error=1,
            run_median=5000,
            run_high=172_800,
        )
    )


@functools.cache
def result(scheduler: str) -> bl.Result:
    return bl.simulate(jobs(), CLUSTER, scheduler)


def log(tmp_path: Path, text: str) -> bl.Workload:
    path = tmp_path / "jobs.sacct"
    path.write_text(text)
    return bl.load_trace(path, running_jobs="keep")


def last_week(workload: bl.Workload) -> tuple[float, float]:
    end = float(workload.submit[-1]) + 1
    return end - 7 * DAY, end


@pytest.mark.parametrize(
    "scheduler", ["fcfs+easy", "fcfs+skip", "fcfs", "sjf+easy", "fcfs+easy@worst-fit"]
)
def test_the_scheduler_and_the_cluster_of_a_simulated_log_are_found(
    tmp_path, scheduler, monkeypatch
):
    """From the middle of the log, where jobs run and wait, and on days it was not chosen on."""
    monkeypatch.setattr("berthline.evaluate.whatif.judged_days.LEAD", 7 * DAY)
    workload = log(tmp_path, sacct_text(result(scheduler)))
    begin, end = last_week(workload)
    found = whatif(workload, begin=begin, end=end)
    assert found.today == scheduler
    assert found.cluster.gpus == NODES * GPUS
    assert found.cluster.nodes == NODES
    assert found.replay.running_at_begin > 0
    assert found.split.how == "the 7 days before the period"
    assert found.replay.lead_seconds == 7 * DAY
    assert (found.cluster.available, found.cluster.user_limits) == (1.0, {})
    assert found.fidelity.error_factor == pytest.approx(1, abs=0.001)
    assert found.fidelity.rank_correlation == pytest.approx(1, abs=0.001)
    assert found.error_seconds < 1
    other = next(each for each in found.models if each.scheduler != scheduler)
    assert other.distance > 1.01  # the others can be distinguished
    assert next(each.scheduler for each in found.outcomes) == scheduler


def test_alternatives_are_what_a_simulation_gives(tmp_path):
    """For a whole log, which begins on an empty cluster, both are the same simulation."""
    workload = log(tmp_path, sacct_text(result("fcfs+easy")))
    end = float(workload.submit[-1]) + 1
    found = whatif(workload, begin=0.0, end=end, schedulers=["sjf+easy", "smallest-area+easy"])
    assert found.split.how == "every other day of the period"
    assert found.replay.jobs == JOBS
    for each in found.outcomes:
        direct = bl.simulate(jobs(), CLUSTER, each.scheduler).metrics()
        assert each.wait.mean == pytest.approx(direct.wait.mean, abs=1e-6)
        assert each.jct.p99 == pytest.approx(direct.jct.p99, abs=1e-6)
        assert each.bounded_slowdown.mean == pytest.approx(direct.bounded_slowdown.mean)
        assert each.makespan == pytest.approx(direct.makespan, abs=1e-6)
    shorter = found.outcomes[1]
    assert shorter.against_today.jct.high < 1
    assert shorter.against_today.verdict.startswith("better by")
    assert shorter.against_today.could_explain == 0


def test_alternatives_place_jobs_as_today(tmp_path):
    """What is compared is the order and the discipline, unless an alternative says otherwise."""
    workload = log(tmp_path, sacct_text(result("fcfs+easy@worst-fit")))
    begin, end = last_week(workload)
    asked = ["sjf+easy", "sjf+easy@first-fit"]
    found = whatif(workload, begin=begin, end=end, schedulers=asked)
    assert [each.scheduler for each in found.outcomes[1:]] == [
        "sjf+easy@worst-fit",
        "sjf+easy@first-fit",
    ]
    assert found.outcomes[1].wait != found.outcomes[2].wait
    assert with_placement("[wait@x]+easy!srpt", "best-fit") == "[wait@x]+easy@best-fit!srpt"


def test_groups_add_up_to_the_whole(tmp_path):
    workload = log(tmp_path, sacct_text(result("fcfs+easy")))
    begin, end = last_week(workload)
    found = whatif(workload, begin=begin, end=end, schedulers=["sjf+easy"])
    today, other = found.outcomes
    for groups in (other.by_user, other.by_size):
        assert sum(group.jobs for group in groups.values()) == found.replay.jobs
        change = sum(group.wait_change * group.jobs for group in groups.values())
        assert change / found.replay.jobs == pytest.approx(other.against_today.wait_change)
    assert other.wait.mean - today.wait.mean == pytest.approx(other.against_today.wait_change)
    assert other.against_today.users_longer <= len(other.by_user)


def test_recorded_waits_decide_on_the_model_and_on_nothing_else(tmp_path):
    """Starts half an hour late move the fidelity, not the difference between schedulers."""
    workload = log(tmp_path, sacct_text(result("fcfs+easy")))
    cluster = bl.Cluster.parse(CLUSTER)
    late = workload.history.start + np.where(workload.history.start > 0, 1800.0, 0.0)
    delayed = bl.Workload.from_columns(
        submit=workload.submit,
        run=workload.run,
        gpus=workload.gpus,
        estimate=workload.estimate,
        user=workload.user,
        user_names=workload.user_names,
        history=History(late),
        rebase=False,
    )
    span = {"begin": 0.0, "end": float(workload.submit[-1]) + 1, "schedulers": ["sjf+easy"]}
    exact = whatif(workload, cluster=cluster, today="fcfs+easy", **span)
    found = whatif(delayed, cluster=cluster, today="fcfs+easy", **span)
    assert exact.error_seconds < 1
    assert found.error_seconds == pytest.approx(1800, abs=30)
    assert found.outcomes[1].wait.mean == pytest.approx(exact.outcomes[1].wait.mean)
    against = found.outcomes[1].against_today
    assert against.could_explain == pytest.approx(found.error_seconds / abs(against.wait_change))


def test_partitions_apart_are_simulated_apart(tmp_path):
    """Two partitions with separate nodes: the head of one blocks no job of the other."""
    texts = []
    for name, seed in (("a", 3), ("b", 5)):
        part = jobs(seed)
        run = bl.simulate(part, CLUSTER, "fcfs")
        rows = sacct_text(run, node_name=lambda node, name=name: f"{name}{node}").splitlines()
        texts.append([line.replace("|gpu|", f"|{name}|", 1) for line in rows[1:]])
        header = rows[0]
    workload = log(tmp_path, "\n".join([header, *texts[0], *texts[1]]) + "\n")
    begin, end = last_week(workload)
    found = whatif(workload, begin=begin, end=end, schedulers=["fcfs+easy"])
    assert found.cluster.pools == ["a", "b"]
    assert found.cluster.gpus == 2 * NODES * GPUS
    assert found.today == "fcfs"
    assert found.fidelity.error_factor == pytest.approx(1, abs=0.001)


@pytest.mark.parametrize(
    ("processors", "names"), [(6, ["as inferred", "partitions apart"]), (5, ["as inferred"])]
)
def test_queues_that_held_more_than_there_is_share_the_nodes(tmp_path, processors, names):
    """Each of the two queues held three processors at some time."""
    head = f"; MaxProcs: {processors}\n; Queue: 1 day\n; Queue: 2 night\n"
    rows = [
        f"{job} {submit} 5 50 3 -1 -1 3 60 -1 1 1 1 -1 {queue} -1 -1 -1\n"
        for job, submit, queue in ((1, 0, 1), (2, 100, 2))
    ]
    path = tmp_path / "log.swf"
    path.write_text(head + "".join(rows))
    found = settings_of(bl.load_trace(path), None, 0.0, 1000.0)
    assert [each.name for each in found] == names


def test_a_log_taken_while_jobs_run_and_wait(tmp_path):
    taken = 14 * DAY
    workload = log(tmp_path, sacct_text(result("fcfs+easy"), taken_at=taken))
    end = float(workload.submit[-1]) + 1
    found = whatif(workload, begin=end - 5 * DAY, end=end, schedulers=["sjf+easy"])
    assert found.today == "fcfs+easy"
    assert found.replay.still_running > 0
    assert found.replay.never_started > 0


def test_replay__begins_with_what_ran_and_what_waited(tmp_path):
    workload = log(tmp_path, sacct_text(result("fcfs+easy")))
    start, over = workload.history.start, workload.history.start + workload.run
    begin = float(np.quantile(workload.submit, 0.6))
    replay = make_excerpt(workload, workload.pool * 0 - 1, (), begin=begin, end=begin + DAY)
    assert replay.running == ((start < begin) & (over > begin)).sum()
    assert replay.queued == ((workload.submit < begin) & (start >= begin)).sum() > 0
    first = replay.workload.submit[: replay.running]
    assert (first == 0).all()
    left = np.sort(replay.workload.run[: replay.running]) - HEAD
    assert left == pytest.approx(np.sort((over - begin)[(start < begin) & (over > begin)]))
    later = replay.since[replay.running + replay.queued :]
    assert (later >= begin).all()
    assert (later < begin + DAY).all()


def test_jobs_count_from_when_they_could_start():
    workload = bl.Workload.from_columns(
        submit=[0.0, 0.0, 0.0],
        run=[1.0, 1.0, 1.0],
        gpus=[1, 1, 1],
        history=History(np.full(3, 50.0), eligible=np.array([20.0, np.nan, 70.0])),
    )
    # A job never becomes eligible after its start, even if two clocks disagree.
    assert eligible_since(workload).tolist() == [20.0, 0.0, 50.0]


def test_a_log_without_starts_is_refused():
    with pytest.raises(TraceError, match="does not say when jobs started"):
        whatif(jobs(), begin=0.0, end=DAY)


def test_a_period_with_too_few_jobs_is_refused(tmp_path):
    workload = log(tmp_path, sacct_text(result("fcfs+easy")))
    with pytest.raises(TraceError, match="of the period can be used"):
        whatif(workload, begin=7 * DAY, end=7 * DAY + 600.0)


def test_models__need_no_more_than_is_known():
    assert set(models_for(jobs(), "estimate")) == set(MODELS)
    unknown = models_for(jobs(), "none")
    assert "fcfs+skip" in unknown
    assert not any("easy" in text or "conservative" in text for text in unknown)


@pytest.mark.parametrize(
    ("jct", "slowdown", "share", "text"),
    [
        (0.8, 0.5, 0.1, "better by 20 % [19, 21]"),
        (0.8, 0.5, 0.7, "better by 20 % [19, 21]" + DOUBT),
        (1.2, 0.5, 0.1, TRADE),
        (1.2, 1.5, 0.1, "worse by 20 % [19, 21]"),
        (1.0, 1.0, None, "no change"),
    ],
)
def test_verdict__jct_decides_and_doubt_is_told(jct, slowdown, share, text):
    ratios = [
        Ratio(ratio=value, low=value - 0.01, high=value + 0.01, windows=7)
        for value in (jct, slowdown)
    ]
    against = AgainstToday(
        wait_change=0.0 if share is None else -10.0,
        could_explain=share,
        jct=ratios[0],
        bounded_slowdown=ratios[1],
        verdict="",
        users_longer=0,
        users_shorter=0,
    )
    assert said(against, verdict(ratios[0])) == text


def test_a_corrected_file_of_the_inferred_cluster_gives_the_same_answer(tmp_path):
    """Its pools and nodes are those of the log, whatever partitions are called."""
    text = sacct_text(result("fcfs+easy"))
    rows = text.splitlines()
    rows[1:] = [
        line.replace("|gpu|", "|short|" if number % 2 else "|long|", 1)
        for number, line in enumerate(rows[1:])
    ]
    other = sacct_text(bl.simulate(jobs(5), CLUSTER, "fcfs+easy"), node_name=lambda n: f"b{n}")
    rows += [line.replace("|gpu|", "|b|", 1) for line in other.splitlines()[1:]]
    workload = log(tmp_path, "\n".join(rows) + "\n")
    begin, end = last_week(workload)
    span = {"begin": begin, "end": end, "today": "fcfs+skip", "schedulers": ["sjf+skip"]}
    inferred = whatif(workload, **span)
    cluster = cluster_of(workload, inferred)
    assert cluster.pool_names == ("b", "long+short")
    given = whatif(workload, cluster=cluster, **span)
    assert given.cluster.findings == []
    assert cluster_of(workload, given) is None
    assert [each.wait for each in given.outcomes] == [each.wait for each in inferred.outcomes]
    assert given.idle_waits == inferred.idle_waits
    assert 0 < given.idle_waits.share < 1


def test_the_state_at_the_period_is_told_apart_from_that_at_the_begin_of_the_replay(tmp_path):
    workload = log(tmp_path, sacct_text(result("fcfs+easy")))
    begin, end = last_week(workload)
    start, over = workload.history.start, workload.history.start + workload.run
    replay = whatif(workload, begin=begin, end=end, schedulers=["sjf+easy"]).replay
    assert replay.lead_seconds == begin  # the log is shorter than what is used to choose
    assert (replay.running_at_begin, replay.queued_at_begin) == (0, 0)
    assert replay.running_at_period == ((start < begin) & (over > begin)).sum() > 0
    assert replay.queued_at_period == ((workload.submit < begin) & (start >= begin)).sum() > 0
    told = begins_words(replay)
    assert told.startswith("15 days before the period, with 0 jobs running and 0 waiting")
    assert f"{replay.running_at_period} jobs were running" in told
    whole = whatif(workload, begin=0.0, end=end, schedulers=["sjf+easy"]).replay
    assert begins_words(whole) == "with 0 jobs running and 0 waiting; none of them is measured"


def without_nodes(run: bl.Result, **provenance: object) -> bl.Workload:
    """Return the jobs of a run with their recorded starts, and no lists of nodes."""
    log, jobs = run.log, run.workload
    start = np.full(len(jobs), np.nan)
    started = np.flatnonzero(log.kind == START)
    start[log.job[started]] = log.time[started]
    return dataclasses.replace(jobs, history=History(start), provenance=provenance)


def test_gpus_that_were_never_available_are_found(tmp_path):
    """The header names more GPUs than jobs could use; the file of the cluster has those."""
    one = f"uniform:1x{NODES * GPUS}"
    workload = without_nodes(bl.simulate(jobs(), one, "fcfs+easy"), max_procs=NODES * GPUS / 0.8)
    begin, end = last_week(workload)
    found = whatif(workload, begin=begin, end=end, schedulers=["sjf+easy"])
    assert (found.today, found.cluster.available) == ("fcfs+easy", 0.8)
    assert found.cluster.gpus == NODES * GPUS / 0.8
    assert found.fidelity.error_factor == pytest.approx(1, abs=0.001)
    assert "available" in {finding.what for finding in found.cluster.findings}
    cluster = cluster_of(workload, found)
    assert cluster.total_gpus == NODES * GPUS
    again = whatif(
        workload,
        begin=begin,
        end=end,
        cluster=write_cluster_file(cluster, tmp_path / "cluster.toml"),
        today="fcfs+easy",
        schedulers=["sjf+easy"],
    )
    assert [each.wait for each in again.outcomes] == [each.wait for each in found.outcomes]
    assert again.idle_waits == found.idle_waits


def test_limits_for_each_user_are_found():
    """No user ever holds more than 16 GPUs, unless one job does."""
    one = bl.Cluster.parse(f"uniform:1x{NODES * GPUS}")
    users = set(jobs().user_names)
    limited = dataclasses.replace(
        one, quotas=tuple(Quota(gpus=16, user=user) for user in sorted(users))
    )
    small = dataclasses.replace(jobs(), gpus=np.minimum(jobs().gpus, 16))
    workload = without_nodes(bl.simulate(small, limited, "fcfs+easy"), max_procs=NODES * GPUS)
    begin, end = last_week(workload)
    found = whatif(workload, begin=begin, end=end, schedulers=["sjf+easy"])
    assert found.today == "fcfs+easy"
    assert set(found.cluster.user_limits.values()) == {16.0}
    assert found.fidelity.error_factor == pytest.approx(1, abs=0.001)
    quotas = cluster_of(workload, found).quotas
    assert {quota.user: quota.gpus for quota in quotas} == found.cluster.user_limits


def test_a_user_whose_job_is_wider_than_the_limit_may_run_it():
    work = bl.Workload.from_columns(
        submit=[0.0] * 4,
        run=[9.0] * 4,
        gpus=[8, 2, 2, 2],
        user=[0, 0, 1, 1],
        user_names=("a", "b"),
    )
    assert _limits_of_users(work, 3.0) == {"a": 8.0, "b": 3.0}
    assert _limits_of_users(work, 4.0) == {"a": 8.0}  # b's jobs together are 4
