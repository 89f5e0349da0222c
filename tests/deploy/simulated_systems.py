"""Simulated systems and controllers for tests."""

from __future__ import annotations

import berthline as bl
from berthline.deploy.control.controller import Controller
from berthline.deploy.control.decide_in_time import Decider
from berthline.deploy.control.deploy_settings import RuleSettings, Settings
from berthline.deploy.journal.journal_file import JournalWriter
from berthline.deploy.systems.simulated.simulated_adapter import SimulatedAdapter
from berthline.deploy.systems.simulated.simulated_cluster import SimulatedCluster
from berthline.policies.scheduler import Scheduler

CLUSTER = bl.Cluster.uniform(nodes=4, gpus_per_node=8)


def jobs(*rows, **columns):
    """Return a workload of (submit, run, gpus)."""
    submit, run, gpus = zip(*rows, strict=True)
    columns.setdefault("estimate", run)
    return bl.Workload.from_columns(submit=submit, run=run, gpus=gpus, rebase=False, **columns)


def generated(seed=0, num_jobs=100, cluster=CLUSTER, load=0.9):
    return bl.generate("synthetic", cluster=cluster, jobs=num_jobs, load=load, seed=seed)


def system(workload, cluster=CLUSTER, **options):
    return SimulatedAdapter(SimulatedCluster(workload, cluster, **options))


def controller(adapter, directory, scheduler="fcfs+easy", mode="act", say=None, **rules):
    journal = JournalWriter(directory, adapter.name)
    settings = Settings(schema=1, rules=RuleSettings(**rules))
    decider = Decider(
        Scheduler.parse(scheduler),
        Scheduler.parse(settings.fallback),
        knowledge="estimate",
        deadline=settings.rules.decision_deadline,
    )
    return Controller(adapter, journal, decider, settings, mode=mode, say=say)


def play(control, adapter, cycles, every=15.0):
    """Make some cycles and return them."""
    made = []
    for _ in range(cycles):
        made.append(control.cycle())
        adapter.wait(every)
    return made
