"""Learned policies begin in the middle: snapshots of their runs, resuming, deciding once."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.agreement.middle_agent_runs import rest_of
from tests.learn.made_policies import save_policy

import berthline as bl
from berthline.learn.networks.networks import NetworkConfig
from berthline.policies.learned import Learned
from berthline.sim.policy_runner import policy_runner
from berthline.sim.snapshots.take import count_before_decision, take_jobs

torch.set_num_threads(1)
CLUSTER = "uniform:4x8:V100"
SEATS = {
    "pick": {"window": 16},
    "pick-wait": {"window": 16, "semantics": "wait", "discipline": "easy"},
    "pick-rank": {"window": 16, "semantics": "rank", "discipline": "easy"},
    "place": {},
    "pickplace": {"window": 8},
    "meta": {"schedulers": ["sjf+easy", "lcfs+skip", "fcfs+strict"], "every_events": 3},
    "meta-seconds": {"schedulers": ["sjf+easy", "lcfs+skip"], "every_seconds": 45.0},
    "backfill": {"window": 8},
    "gate": {"order": "sjf", "max_holds": 4, "hold_seconds": 300.0, "recheck": 120.0},
    "preempt": {"min_run": 60.0, "max_restarts": 2.0},
    "per-gpu": {"window": 16, "lookahead": "per_gpu", "lookahead_seconds": 10_000.0},
}
"""Options of each seat; names with a dash or without a seat of their own are variants."""
VARIANTS = {"pick-wait": "pick", "pick-rank": "pick", "meta-seconds": "meta", "per-gpu": "pick"}


def _jobs(seed):
    return bl.generate("synthetic", cluster=CLUSTER, jobs=150, load=1.3, seed=seed)


def _saved(path, name, kind="kernel"):
    """Write a policy with random weights; return its text."""
    seat = VARIANTS.get(name, name)
    options = {"cluster": CLUSTER, **SEATS[name]}
    save_policy(path / name, seat, options, NetworkConfig(kind=kind, hidden=(8, 8)), seed=1)
    return str(path / name)


def _later(jobs, snapshot):
    known = snapshot.memory.jobs + snapshot.num_jobs
    return take_jobs(jobs, np.arange(known, len(jobs)))


def _ids(jobs, snapshot):
    """Return the ids in the whole run of the jobs of a resumed one."""
    known = snapshot.memory.jobs + snapshot.num_jobs
    return np.concatenate([snapshot.number, np.arange(known, len(jobs))])


def _rest(log, jobs, snapshot):
    """Return the rows after a snapshot, with the ids of the whole run."""
    return rest_of(log, np.arange(len(log)) >= len(snapshot.log), _ids(jobs, snapshot))


def _expected(log, at):
    return rest_of(
        log, (np.arange(len(log)) >= count_before_decision(log, at)), np.arange(log.job.max() + 1)
    )


def _instants(log, count):
    """Return times of events and between them."""
    times = np.unique(log.time)
    chosen = np.random.default_rng(len(log)).choice(times, count)
    return [*chosen.tolist(), float(times[len(times) // 2] + 0.125)]


@pytest.mark.parametrize("name", list(SEATS))
def test_the_rest_of_a_resumed_run_is_that_of_the_whole_run(tmp_path, name):
    policy, jobs = _saved(tmp_path, name), _jobs(5)
    whole = bl.simulate(jobs, CLUSTER, policy, seed=3)
    assert whole.metrics().jobs.completed == len(jobs)
    for at in _instants(whole.log, 4):
        snapshot = whole.snapshot(at)
        resumed = bl.resume(snapshot, arrivals=_later(jobs, snapshot))
        assert _rest(resumed.log, jobs, snapshot) == _expected(whole.log, at)
    again = resumed.snapshot(at + 600.0)
    log = bl.resume(again, arrivals=_later(jobs, again)).log
    assert _rest(log, jobs, again) == _expected(whole.log, at + 600.0), "of a resumed run"


@pytest.mark.parametrize("name", list(SEATS))
def test_a_decision_is_that_of_the_run_and_needs_no_run_times(tmp_path, name):
    policy, jobs = _saved(tmp_path, name), _jobs(6)
    whole = bl.simulate(jobs, CLUSTER, policy)
    runner, decided = policy_runner(), 0
    times = np.unique(whole.log.time[whole.log.time < jobs.submit[-1]])
    for at in times[5::11].tolist():
        snapshot = whole.snapshot(at)
        over = np.isin(np.arange(snapshot.num_jobs), snapshot.log.job[snapshot.log.kind == 2])
        known = dataclasses.replace(
            snapshot.workload, run=np.where(over, snapshot.workload.run, np.nan)
        )
        live = dataclasses.replace(snapshot, workload=known)
        log = bl.decide(live).log
        expected = [row for row in _expected(whole.log, at) if row[0] == at]
        assert _rest(log, jobs, snapshot) == expected
        learned = Learned.find(policy)
        assert learned is not None
        found = runner.decide(learned, live, knowledge="estimate", seed=0)
        assert found.log.sha256() == log.sha256()
        assert found.questions >= len(expected) or name not in ("pick", "pickplace")
        decided += found.questions
    assert decided > 0


@pytest.mark.parametrize("name", ["pick", "gate", "meta-seconds"])
def test_a_horizon_ends_a_run_and_resuming_continues_it(tmp_path, name):
    policy, jobs = _saved(tmp_path, name), _jobs(7)
    whole = bl.simulate(jobs, CLUSTER, policy)
    end = float(np.median(whole.log.time)) + 0.5
    part = bl.simulate(jobs, CLUSTER, policy, horizon=end)
    assert part.log.horizon == end
    assert len(part.log) == np.count_nonzero(whole.log.time <= end)
    snapshot = part.snapshot(end)
    rest = bl.resume(snapshot, arrivals=_later(jobs, snapshot)).log
    assert _rest(rest, jobs, snapshot) == _expected(whole.log, end)


def test_a_network_in_torch_goes_on_as_well(tmp_path):
    policy, jobs = _saved(tmp_path, "gate", kind="attention"), _jobs(8)
    whole = bl.simulate(jobs, CLUSTER, policy)
    at = float(np.median(whole.log.time))
    snapshot = whole.snapshot(at)
    rest = bl.resume(snapshot, arrivals=_later(jobs, snapshot)).log
    assert _rest(rest, jobs, snapshot) == _expected(whole.log, at)


def test_another_policy_remembers_nothing_of_the_first(tmp_path):
    gate, jobs = _saved(tmp_path, "gate"), _jobs(9)
    other = _saved(tmp_path, "meta")
    snapshot = bl.simulate(jobs, CLUSTER, gate).snapshot(40_000.0)
    assert snapshot.memory.holds.any()
    resumed = bl.resume(snapshot, other, arrivals=_later(jobs, snapshot))
    assert resumed.start is not None
    assert not len(resumed.start.memory.holds)
    assert resumed.start.decides


_IMPORTS = """
import sys
import berthline as bl
snapshot = bl.simulate(
    bl.generate("synthetic", cluster="uniform:4x8:V100", jobs=60, load=1.2, seed=3),
    "uniform:4x8:V100", sys.argv[1], horizon=20_000,
).snapshot(10_000)
bl.decide(snapshot)
bl.resume(snapshot)
print(*(name for name in sys.modules if name == "torch" or name.startswith("berthline.learn")))
"""


def test_a_native_network_needs_neither_torch_nor_training_code(tmp_path):
    command = [sys.executable, "-c", _IMPORTS, _saved(tmp_path, "gate")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
