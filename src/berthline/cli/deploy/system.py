"""`berthline deploy SYSTEM`: a controller beside a system, until it is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from berthline.cli.options import parse_options
from berthline.cli.output import counted, note, print_facts, print_json
from berthline.deploy.control.promotion import check_promotion
from berthline.deploy.control.run_controller import check_options, run_controller
from berthline.deploy.systems.contract import HELD, RUNNING, WAITING
from berthline.deploy.systems.system_table import find_system
from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from berthline.deploy.control.controller import Controller
    from berthline.deploy.control.run_controller import Deployed
    from berthline.deploy.journal.journal_records import CycleRecord


def deploy_system(name: str, argv: list[str]) -> int:
    """Run a controller beside a system."""
    module = find_system(name)
    options = parse_options(module.Options, argv, verb=f"deploy {name}")
    check_options(options)
    Scheduler.parse(options.scheduler)
    adapter = module.connect(options, Path(options.journal))
    found = run_controller(adapter, options, may_act=check_promotion, say=note, each=_show_cycle)
    if options.json:
        print_json(found)
    else:
        show_deployed(found)
    return 0


def _show_cycle(controller: Controller, cycle: CycleRecord) -> None:
    """Tell on stderr what a cycle did."""
    if cycle.fault:
        note(f"cycle {cycle.number}, {cycle.time:,.0f} s: nothing done: {cycle.fault}")
        return
    states = [job.record.state for job in controller.last_jobs.values()]
    waiting = states.count(WAITING) + states.count(HELD)
    starts = sum(row.kind in ("start", "resume") for row in cycle.decision)
    words = f"{waiting} waiting, {states.count(RUNNING)} running, {counted(starts, 'start')}"
    if cycle.actions:
        words += f", {counted(len(cycle.actions), 'action')}"
    if cycle.fallback:
        words += f"; fallback: {cycle.fallback}"
    note(f"cycle {cycle.number}, {cycle.time:,.0f} s, {cycle.mode}: {words}")


def show_deployed(found: Deployed) -> None:
    """Print what a controller did."""
    agreed = f"{found.agreed_starts} of {counted(found.native_starts, 'native start')}"
    print_facts(
        {
            "system": found.system,
            "scheduler": found.scheduler,
            "mode at the end": found.mode,
            "cycles": f"{found.cycles:,}",
            "faults": _listed(found.faults),
            "fallbacks": _listed(found.fallbacks),
            "rules": _listed(found.rules),
            "actions": _listed(found.actions),
            "ours agreed with": agreed if found.native_starts else "",
            "still held by us": str(found.left_held or ""),
            "journal": found.journal,
        }
    )


def _listed(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in sorted(numbers.items()))
