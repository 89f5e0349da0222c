"""What `berthline explain --submit` and `--calibrate` print."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from berthline.cli.conditions import header_of
from berthline.cli.explain.forecast_words import drawn_from, interval_in_words
from berthline.cli.output import (
    NARROWEST,
    clock,
    counted,
    new_table,
    note_dropped_rows,
    number,
    percent,
    print_facts,
    print_json,
    print_table,
    progress,
)
from berthline.errors import ConfigError
from berthline.evaluate.forecast.asked_job import asked_job
from berthline.evaluate.forecast.calibrate import calibrate, verdict
from berthline.evaluate.forecast.correction import FEWEST_INSTANTS
from berthline.evaluate.forecast.forecast import forecast
from berthline.model.schedule import REJECT, REJECT_REASONS
from berthline.sim.reasons.reason_codes import Reason
from berthline.sim.simulate import simulate

if TYPE_CHECKING:
    from berthline.cli.explain.command import Explain
    from berthline.evaluate.forecast.calibrate import Calibration
    from berthline.evaluate.forecast.correction import Correction
    from berthline.model.workload import Workload
    from berthline.sim.simulate import Result


BEFORE_ONE = 40
"""Instants whose forecasts correct a single one."""


def show_asked(result: Result, options: Explain, *, again: str) -> int:
    """Print when one more job would start."""
    assert options.submit is not None
    asked = asked_job(options.submit, result.cluster)
    at = _instant(result, options.at)
    reason = _reject_reason(result, asked)
    found = correction = None
    if reason is None:
        if not options.draws:
            raise ConfigError("--draws is 0", expected="1 or more, with --submit")
        with progress("one more job") as report:
            if options.calibrate:
                correction = calibrate(
                    result,
                    points=options.points or BEFORE_ONE,
                    draws=options.draws,
                    seed=options.seed,
                    until=at,
                    progress=lambda done, of: report(done, of, "earlier forecasts"),
                ).correction
            snapshot = result.snapshot(at)
            found = forecast(
                snapshot,
                result.scheduler,
                history=result,
                asked=asked,
                jobs=[],
                correction=correction,
                draws=options.draws,
                seed=options.seed,
                progress=lambda done, of: report(done, of, "simulating what may come"),
            ).of(-1)
    if options.json:
        note_dropped_rows(result.workload)
        print_json(
            {
                "submit": options.submit,
                "at": at,
                "scheduler": str(result.scheduler),
                "workload": result.workload.name,
                "cluster": result.cluster.name,
                "knowledge": result.knowledge,
                "reject_reason": reason,
                "correction": correction,
                "forecast": found,
            }
        )
        return 0
    print(f"one more job under {result.scheduler}: {options.submit}")
    _show_run(result)
    if found is None:
        print(f"\n{Reason.REJECTED}: {reason}")
    else:
        print(f"\nSubmitted at {clock(at)}, it would start {interval_in_words(found)}")
        print(f"it would wait {clock(found.median - at)} in half of them")
        if found.not_started:
            print(
                f"in {percent(found.not_started)} of them it does not start in the time simulated"
            )
        print(f"  {drawn_from(found)}")
        if options.calibrate:
            print(f"  {_corrected_by(correction)}")
    print(f"\nagain      {again}")
    return 0


def _show_run(result: Result) -> None:
    print(
        f"{result.workload.name} on {result.cluster.name}, knowledge {result.knowledge}\n"
        f"{header_of({}, result.run_times)}"
    )


def _instant(result: Result, at: float | None) -> float:
    """Return when the job is submitted."""
    log = result.log
    last = float(log.horizon if np.isfinite(log.horizon) else log.time.max(initial=0.0))
    if at is None:
        return last if np.isfinite(log.horizon) else float(result.workload.submit[-1])
    if not 0 <= at <= last:
        raise ConfigError(
            f"--at is {at:g} s", where=result.workload.name, expected=f"0 to {last:g} s of the run"
        )
    return at


def _reject_reason(result: Result, asked: Workload) -> str | None:
    """Return why a job can never run on the cluster; None = it can."""
    log = simulate(asked, result.cluster, "fcfs+skip", knowledge="none", horizon=1e-9).log
    rejected = np.flatnonzero(log.kind == REJECT)
    return REJECT_REASONS[log.detail[rejected[0]]] if len(rejected) else None


def show_calibration(result: Result, options: Explain, *, points: int, again: str) -> int:
    """Print how often starts were inside forecast intervals."""
    with progress("calibrating") as report:
        found = calibrate(
            result,
            points=points,
            draws=options.draws,
            seed=options.seed,
            progress=lambda done, of: report(done, of, "forecasts"),
        )
    if options.json:
        note_dropped_rows(result.workload)
        told: dict[str, Any] = {
            "scheduler": str(result.scheduler),
            "workload": result.workload.name,
            "cluster": result.cluster.name,
            "knowledge": result.knowledge,
            **msgspec.to_builtins(found),
            "verdict": verdict(found),
        }
        print_json(told)
        return 0
    print(f"how often forecasts of starts were right under {result.scheduler}")
    _show_run(result)
    _show_facts(found)
    table = new_table(
        "forecast wait", "forecasts", "inside", "earlier", "later", "no end", "median length"
    )
    for row in (*found.by_place, found.all):
        table.add_row(
            row.name,
            number(row.forecasts),
            percent(row.inside),
            percent(row.earlier),
            percent(row.later),
            percent(row.open),
            clock(row.width),
        )
    print_table(table)
    print("\n" + textwrap.fill(verdict(found), NARROWEST))
    if found.corrected is not None and found.uncorrected is not None:
        print(
            textwrap.fill(
                "corrected by what earlier forecasts of the run missed: "
                f"{found.corrected.inside:.0%} of "
                f"{counted(found.corrected.forecasts, 'start')} inside; "
                f"{found.uncorrected.inside:.0%} of the same without",
                NARROWEST,
            )
        )
        print(textwrap.fill(_corrected_by(found.correction), NARROWEST))
    print(f"\nagain      {again}")
    return 0


def _corrected_by(found: Correction | None) -> str:
    """Return in words by how much intervals are stretched."""
    if found is None:
        return f"not corrected: fewer than {FEWEST_INSTANTS} instants of the run say by how much"
    return (
        f"intervals are {found.earlier:.2f} times as long before the median and "
        f"{found.later:.2f} times after it, as earlier forecasts call for"
    )


def _show_facts(found: Calibration) -> None:
    print_facts(
        {
            "instants": number(found.points),
            "forecasts": f"{number(found.all.forecasts)}, {counted(found.draws, 'run')} each",
            "should be inside": f"{found.level:.0%}",
        }
    )
    print()
