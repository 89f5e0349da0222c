"""The text that `berthline explain` prints."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from berthline.cli.conditions import header_of
from berthline.cli.explain.forecast_words import drawn_from, interval_in_words
from berthline.cli.output import (
    NARROWEST,
    clock,
    counted,
    new_table,
    number,
    percent,
    print_facts,
    print_table,
    trace_facts,
)
from berthline.evaluate.metrics.job_table import job_table
from berthline.model.workload_rows import job_name
from berthline.one_line import one_line
from berthline.sim.reasons.reason_codes import MEANINGS, Reason

if TYPE_CHECKING:
    from berthline.evaluate.explain.explain import Explanation, Moment
    from berthline.evaluate.explain.overtakers import Overtaker
    from berthline.evaluate.explain.unblock import Change
    from berthline.evaluate.explain.wait_timeline import Interval
    from berthline.evaluate.forecast.job_forecast import JobForecast
    from berthline.model.workload import Workload
    from berthline.sim.reasons.waiting_order import Valued
    from berthline.sim.simulate import Result

UNITS = {"gpus": "GPU", "cpus": "CPU", "memory_mib": "MiB"}


def show(result: Result, explanation: Explanation, changes: list[Change], *, top: int) -> None:
    """Print an explanation."""
    _show_job(result, explanation)
    if explanation.reject_reason is not None:
        print(f"\n{Reason.REJECTED}: {explanation.reject_reason}")
    elif not explanation.wait:
        print("\nIt started at the instant it was submitted.")
    else:
        _show_reasons(explanation)
        _show_timeline(result.workload, explanation, most=2 * top)
        if explanation.moment is not None:
            _show_ahead(explanation.moment)
        _show_overtakers(result.workload, explanation)
        if explanation.forecast is not None:
            _show_forecast(explanation, explanation.forecast)
    if changes:
        _show_changes(changes)


def _show_job(result: Result, explanation: Explanation) -> None:
    workload, job = result.workload, explanation.job
    table = job_table(result.log, workload)
    print(f"job {one_line(job_name(workload, job))} under {result.scheduler}")
    print(
        f"{workload.name} on {result.cluster.name}, knowledge {result.knowledge}\n"
        f"{header_of({}, result.run_times)}"
    )
    estimate = float(workload.estimate[job])
    start, finish = float(table.start[job]), float(table.finish[job])
    asked = f"{workload.gpu_amount[job]:g} GPUs" if workload.gpu_amount[job] != 1 else "1 GPU"
    for value, name in ((workload.cpus[job], "CPUs"), (workload.memory_mib[job], "MiB")):
        asked += f", {number(int(value))} {name}" if value else ""
    asked += (
        ""
        if workload.pool[job] < 0
        else f", pool {one_line(workload.pool_names[workload.pool[job]])}"
    )
    types = int(workload.gpu_types[job])
    asked += "" if types < 0 else f", {workload.gpu_type_sets[types]}"
    user = one_line(workload.user_names[workload.user[job]])
    waits = counted(len(explanation.waits), "time")
    print_facts(
        {
            "asks for": f"{asked}; user {user}",
            "run time": clock(float(workload.run[job]))
            + ("" if math.isnan(estimate) else f", estimate {clock(estimate)}"),
            "submitted": clock(float(workload.submit[job])),
            "started": "never" if math.isnan(start) else clock(start),
            "finished": "" if math.isnan(finish) else clock(finish),
            "waited": f"{clock(explanation.wait)}"
            + (f", {waits}" if len(explanation.waits) > 1 else ""),
            **trace_facts(workload),
        }
    )


def _show_reasons(explanation: Explanation) -> None:
    print("\nWhy")
    for reason, seconds in explanation.reasons.items():
        share = percent(seconds / explanation.wait)
        print(f"  {share:>7}  {reason}: {MEANINGS[Reason(reason)]}")


def _show_timeline(workload: Workload, explanation: Explanation, *, most: int) -> None:
    table = new_table("from", "lasted", "place", "reason", title="\nTimeline")
    table.columns[3].justify = "left"
    table.add_column("as it began", overflow="fold")
    for column in table.columns:
        column.vertical = "top"
    waits = {wait.begin: wait for wait in explanation.waits}
    shown = explanation.timeline[:most]
    for interval in shown:
        wait = waits.get(interval.begin)
        after = ""
        if wait is not None and wait.after != "submitted":
            by = "" if wait.by is None else f", job {one_line(job_name(workload, wait.by))}"
            after = f"{wait.after}{by}; "
        table.add_row(
            clock(interval.begin),
            clock(interval.seconds),
            _place(interval),
            interval.reason.value,
            after + sentence(workload, explanation.job, interval),
        )
    print_table(table)
    hidden = len(explanation.timeline) - len(shown)
    if hidden:
        print(f"{counted(hidden, 'more row')}: --top {len(explanation.timeline) // 2 + 1}")
    if explanation.looked_at < explanation.points:
        print(
            f"{number(explanation.looked_at)} of {counted(explanation.points, 'decision point')} "
            "were examined; --points 0 examines all"
        )


def _place(interval: Interval) -> str:
    """Return the place in the queue, at the beginning, and at the end if it has changed."""
    first = _of(interval.position, interval.queue)
    last = _of(interval.last_position, interval.last_queue)
    return first if first == last else f"{first} to {last}"


def _of(position: int, queue: int) -> str:
    # A job that must stay out of the queue still has a place in it.
    return f"{position}/{max(queue, position)}"


def sentence(workload: Workload, job: int, interval: Interval) -> str:
    """Return the numbers behind a reason, in words."""
    reason, need = interval.reason, float(workload.gpu_amount[job])
    short = ", ".join(
        f"{number(amount, 0 if amount == int(amount) else 2)} "
        f"{UNITS[name]}{'s' if name != 'memory_mib' and amount != 1 else ''}"
        for name, amount in interval.short.items()
    )
    named = (
        "" if interval.blocker is None else f"job {one_line(job_name(workload, interval.blocker))}"
    )
    others = f" and {counted(interval.blockers - 1, 'other')}" if interval.blockers > 1 else ""
    if reason in (Reason.WAITING_FOR_GPUS, Reason.POOL_FULL, Reason.GPU_TYPE_FULL):
        gpus = "GPU" if need == 1 else "GPUs"
        return f"{interval.free_gpus:g} of {need:g} {gpus} free, {short.split()[0]} short"
    if reason == Reason.FRAGMENTED:
        return f"{interval.free_gpus:g} GPUs free, {interval.detail}"
    if reason in (Reason.CPUS_SHORT, Reason.MEMORY_SHORT):
        return f"{short} short where it would go" if short else "no node has room"
    if reason == Reason.BEHIND_IN_ORDER:
        fit = "it would fit" if interval.fits else f"{short} also short" if short else ""
        return f"{named}{others} before it" + (f"; {fit}" if fit else "")
    if reason == Reason.HEAD_RESERVATION:
        late, until = clock(interval.late or 0), clock(interval.until or 0)
        return f"could end {late} after {named} is due to start, {until}{others}"
    if reason == Reason.EARLIER_RESERVATIONS:
        return interval.detail or f"{named}{others} before it has a reservation it could delay"
    if reason == Reason.GATE_CLOSED:
        return f"the gate gives {number(interval.value, 2)}; it opens at 0"
    if reason in (Reason.DECISION_TICK, Reason.REQUEUE_DELAY, Reason.RETRY_DELAY):
        return f"until {clock(interval.until or 0)}"
    return interval.detail


def _show_ahead(moment: Moment) -> None:
    place = _of(moment.position, moment.queue)
    text = f"Ahead at {clock(moment.time)}: place {place}, by {moment.order} (smallest first)"
    print("\n" + textwrap.fill(text, NARROWEST, subsequent_indent="  "))
    if moment.ahead:
        _print_values([moment.own, *moment.ahead])
        rest = moment.ahead_in_all - len(moment.ahead)
        if rest > 0:
            print(f"and {counted(rest, 'more job')} between")
    if moment.gate is not None:
        words = ", ".join(f"{word} {_plain(value)}" for word, value in moment.gate.words.items())
        print(f"its gate gives {_plain(moment.gate.value)}: {words}")
    if moment.expected_start is not None and moment.expected_start > moment.time:
        print(f"alone, by the estimates, it could start at {clock(moment.expected_start)}")


def _print_values(rows: list[Valued]) -> None:
    """Print values of the order's formula with their parts: terms, or words if it is not a sum.

    Each job has a column, the waiting job first, because the texts of terms are long.
    """
    by_terms = len(rows[0].terms) > 1
    table = new_table(
        "job", *(f"{one_line(row.name)}{'' if n else ' (this)'}" for n, row in enumerate(rows))
    )
    for part in rows[0].terms if by_terms else rows[0].words:
        values = (row.terms if by_terms else row.words for row in rows)
        table.add_row(part, *(_plain(value[part]) for value in values))
    if by_terms or len(rows[0].words) > 1 or rows[0].value != next(iter(rows[0].words.values()), 0):
        table.add_row("value", *(_plain(row.value) for row in rows))
    print_table(table)


def _show_overtakers(workload: Workload, explanation: Explanation) -> None:
    if not explanation.overtakers:
        return
    title = (
        f"\nMeanwhile on its nodes: {counted(explanation.started_meanwhile, 'start')}; "
        "these used the most"
    )
    table = new_table("job", "started", "GPU-hours", "submitted", "why it came first", title=title)
    table.columns[4].justify = "left"
    table.columns[4].no_wrap = False
    for column in table.columns:
        column.vertical = "top"
    for other in explanation.overtakers:
        table.add_row(
            one_line(job_name(workload, other.job)),
            clock(other.time),
            number(other.gpu_seconds / 3600, 1),
            "later" if other.came_later else "earlier",
            _why_first(other),
        )
    print_table(table)


def _why_first(other: Overtaker) -> str:
    value, own = _plain(other.value.value), _plain(other.own.value)
    if other.is_ahead:
        if other.value.value == other.own.value:
            return f"equal ({value}), submitted first"
        return f"ahead in order: {value} against {own}"
    return f"passed it; {value} against {own}"


def _show_forecast(explanation: Explanation, forecast: JobForecast) -> None:
    first = next((w for w in explanation.waits if w.begin <= forecast.time < w.end), None)
    started = first is not None and first.started
    really = f"; it started {clock(first.end)}" if started and first is not None else ""
    when = f"As known at {clock(forecast.time)}, it would start {interval_in_words(forecast)}"
    print(f"\n{when}{really}\n  {drawn_from(forecast)}")


def _show_changes(changes: list[Change]) -> None:
    table = new_table(
        "with", "by", "starts", "waits less", "others wait", title="\nWhat would have helped"
    )
    for change in changes:
        if change.error:
            table.add_row(f"{change.change}: {change.error}", change.who, "-", "-", "-")
            continue
        table.add_row(
            change.change,
            change.who,
            "never" if change.start is None else clock(change.start),
            "-" if change.sooner is None else _signed(change.sooner),
            "-" if change.others_wait is None else f"{change.others_wait:+z,.0f} s",
        )
    print_table(table)
    print("each row is a run of the simulator; others: change in their mean wait")


def _signed(seconds: float) -> str:
    return clock(seconds) if seconds >= 0 else f"-{clock(-seconds)}"


def _plain(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return number(value)
    return f"{value:,.4g}" if abs(value) < 1e4 else number(value, 1)
