"""`berthline deploy real JOURNAL`: what really happened on a node, and the same jobs simulated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from berthline.cli.deploy.status import JournalName
from berthline.cli.options import Json, parse_options
from berthline.cli.output import counted, print_facts, print_json
from berthline.deploy.journal.journal_file import JournalReader, is_journal
from berthline.deploy.journal.journal_records import ACT
from berthline.deploy.systems.node.connect_node import NODE
from berthline.evaluate.real_runs.real_words import closeness_lines, metric_lines

if TYPE_CHECKING:
    from berthline.deploy.systems.node.node_history import NodeHistory
    from berthline.evaluate.real_runs.real_metrics import RealMetrics
    from berthline.evaluate.real_runs.sim_to_real import RealRun, SimToReal

_NATIVE = "fcfs+strict"
"""The runner's own order."""


class Real(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Show what really happened on a node, and how close a simulation of its jobs comes.

    The simulation knows measured run times, and how long starts and stops take.

    Examples:
      berthline deploy real berthline-journal
      berthline deploy real berthline-journal --json
    """

    run: JournalName
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Real, argv, verb="deploy real")
    from berthline.deploy.systems.node.node_history import read_node_history
    from berthline.evaluate.real_runs.real_metrics import real_metrics
    from berthline.evaluate.real_runs.sim_to_real import RealRun, sim_to_real

    journal = Path(options.run)
    history = read_node_history(journal / NODE)
    decided = _decided(journal, history)
    run = RealRun(
        workload=history.workload,
        log=history.log,
        cluster=history.cluster,
        start_delay=_mean(history.start_delays),
        stop_delay=_mean(history.stop_delays),
        keeps_progress=history.keeps_progress,
        scheduler=decided["scheduler"],
        knowledge=decided["knowledge"],
        tick=decided["tick"],
        phase=decided["phase"],
    )
    metrics = real_metrics(run, samples=history.samples, decision_seconds=decided["seconds"])
    closeness = sim_to_real(run)
    summary = {
        "scheduler": run.scheduler,
        "knowledge": run.knowledge,
        "is_over": history.is_over,
        "starts": int(run.log.is_start.sum()),
        "starts_by_own_order": history.natively,
        "ends": history.ends,
        "telemetry": history.telemetry,
        "metrics": metrics,
        "sim_to_real": closeness,
    }
    if options.json:
        print_json(summary)
    else:
        _show(run, history, metrics, closeness)
    return 0


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _decided(journal: Path, history: NodeHistory) -> dict[str, Any]:
    """Return who decided, what it knew, how often and how fast."""
    own = {"scheduler": _NATIVE, "knowledge": "estimate", "tick": 0.0, "phase": 0.0, "seconds": []}
    if not is_journal(journal):
        return own
    cycles = [entry.cycle for entry in JournalReader(journal).entries()]
    acted = [cycle for cycle in cycles if cycle.mode == ACT]
    decided = [cycle.seconds["decide"] for cycle in cycles if "decide" in cycle.seconds]
    own["seconds"] = decided
    if len(acted) < 2 or history.natively == len(history.start_delays):
        return own
    times = [cycle.time for cycle in acted]
    return {
        "scheduler": acted[-1].scheduler,
        "knowledge": acted[-1].knowledge,
        "tick": round(float(np.median(np.diff(times))), 3),
        "phase": times[0] - history.begin,
        "seconds": decided,
    }


def _show(run: RealRun, history: NodeHistory, metrics: RealMetrics, closeness: SimToReal) -> None:
    print_facts(
        {
            "jobs": f"{counted(len(run.workload), 'job')}: "
            + ", ".join(f"{count} {end}" for end, count in history.ends.items())
            + ("" if history.is_over else "; not all have ended"),
            "decided by": f"{run.scheduler}, {_tick(run.tick)}" + _natively(run, history),
            **metric_lines(metrics),
            **closeness_lines(closeness),
        }
    )


def _natively(run: RealRun, history: NodeHistory) -> str:
    """Return how many starts were not decided by the scheduler that is simulated."""
    native, starts = history.natively, int(run.log.is_start.sum())
    if native == 0 or native == starts:
        return ""
    return f"; {native:,} of {starts:,} starts by the node's own order"


def _tick(tick: float) -> str:
    return f"every {tick:g} s" if tick else "at every event"
