"""Keys of runs: the same in every process, different for everything that affects a run."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
from tests.experiments.suites.small_suite import small_plan

from berthline.experiments.suites.planned_runs import PlannedRuns
from berthline.experiments.suites.suite_work import MemoryStore, SuiteWork

KEYS = """
from berthline.experiments.suites.planned_runs import PlannedRuns
from berthline.experiments.suites.suite_plan import find_suite
from berthline.experiments.suites.suite_work import MemoryStore, SuiteWork
planned = PlannedRuns(find_suite("core"))
work = SuiteWork(planned, MemoryStore())
unit = planned.units[0]
print([work.key_of(unit, run).hex() for run in planned.runs_of(unit)])
"""


def test_keys_are_the_same_in_every_process() -> None:
    found = set()
    for seed in range(1, 4):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        code = f"import sys; sys.path[:] = {sys.path!r}\n{KEYS}"
        found.add(
            subprocess.run(
                [sys.executable, "-c", code],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
    assert len(found) == 1


def keys(**changes: object) -> list[bytes]:
    planned = PlannedRuns(msgspec.structs.replace(small_plan(), **changes))
    work = SuiteWork(planned, MemoryStore())
    return [work.key_of(unit, run) for unit in planned.units for run in planned.runs_of(unit)]


def test_every_run_has_a_key_of_its_own() -> None:
    own = keys()
    assert len(set(own)) == len(own)
    assert keys() == own
    for changes in ({"seed": 1}, {"knowledge": "exact"}, {"costs": True}, {"jobs_table": False}):
        assert not set(keys(**changes)) & set(own), changes
    # What is chosen of a plan, and in which order, does not matter.
    assert set(keys(only="base-*")) < set(own)
    assert set(keys(schedulers=["sjf+easy", "random+skip", "fcfs"])) == set(own)
