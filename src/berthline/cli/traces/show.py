"""`berthline traces show`: the card of a trace, as tables and as a figure."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.options import Format, Json, parse_options
from berthline.cli.output import (
    clock,
    counted,
    new_table,
    note,
    number,
    percent,
    print_facts,
    print_json,
    print_table,
    seconds,
)
from berthline.cli.traces.file import ClusterOption, FormatOptions, Map, TraceFile, load_file
from berthline.model.gpu_types import RECORDED

if TYPE_CHECKING:
    from berthline.evaluate.trace_checks.card import OnCluster, Pressure, Quantiles, Size, TraceCard
    from berthline.model.provenance import Origin

_MOST_SIZES = 12
_MOST_PRESSURES = 12
_FACT_WIDTH = 69
_DAY = 86_400
_SHOWS_HOURS, _SHOWS_WEEKS = 3 * _DAY, 14 * _DAY
"""Seconds a trace must cover before its hours, and its weekends, are meaningful."""


class Show(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Show what is in a trace: jobs, sizes, run times, load, and what is missing.

    Examples:
      berthline traces show trace.swf
      berthline traces show trace.swf --cluster uniform:8x8:V100 --json
      berthline traces show trace.swf --cluster helios-venus --figure card.png
    """

    file: TraceFile
    format: Format = None
    map: Map = None
    set: FormatOptions = ()
    cluster: ClusterOption = None
    figure: Annotated[str | None, arg(metavar="FILE.png", help_behavior_hint="")] = None
    """Also draw a figure: png, pdf or svg. Needs the extra `report`."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Show, argv, verb="traces show")
    from berthline.evaluate.trace_checks.card import trace_card
    from berthline.traces.cluster_argument import resolve_cluster

    if options.figure is not None:
        from berthline.report.figures.drawing import check_figure_file

        check_figure_file(options.figure, needed_for="--figure")
    cluster = None if options.cluster is None else resolve_cluster(options.cluster, note)
    workload = load_file(options.file, options.format, options.map, options.set)
    card = trace_card(workload, cluster)
    if options.figure is not None:
        from berthline.report.figures.trace_card_figure import draw_trace_card

        draw_trace_card(workload, card, options.figure)
    if options.json:
        print_json(card)
        return 0
    show(card)
    if options.figure is not None:
        print()
        print_facts({"figure": options.figure})
    return 0


def show(card: TraceCard) -> None:
    """Print a card as text."""
    print(f"{card.name}{f' ({card.format})' if card.format else ''}\n")
    table = new_table("", "mean", "p10", "p50", "p90", "p99", "max")
    _add(table, "run time, s", card.run)
    if card.estimates.factor:
        _add(table, "estimate / run time", card.estimates.factor, digits=1)
    print_table(table)
    print()
    _facts(
        {
            "jobs": f"{number(card.jobs)}"
            + (f" of {counted(card.users, 'user')}" if card.users else "")
            + (f" in {counted(card.pools, 'pool')}" if card.pools else ""),
            "rows": _rows(card.rows, card.dropped),
            "rounded": _rounded(card.rounded),
            "origin": _origin(card.origin),
            "span": _span(card),
            "arrivals": _arrivals(card),
            "estimates": _estimates(card),
            "parts": f"{counted(card.jobs_on_parts, 'job')} on a part of one GPU"
            if card.jobs_on_parts
            else "",
            "CPUs only": f"{counted(card.jobs_without_gpus, 'job')} without GPUs"
            if card.jobs_without_gpus
            else "",
            "work": counted(round(card.gpu_hours), "GPU-hour"),
            "demand": f"{counted(round(card.demand_mean), 'GPU')} at once on average, "
            f"{number(card.demand_p95)} at p95, {number(card.demand_max)} at most "
            "(if no job waited)",
            "records": "" if card.impossible_use is None else card.impossible_use.in_words(),
            "run times": _recorded_on(card.run_times_on),
            "missing": ", ".join(card.missing),
        }
    )
    print()
    _show_sizes(card.sizes)
    if card.cluster:
        print()
        _show_cluster(card.cluster)


def _facts(facts: dict[str, str]) -> None:
    """Print facts, with long ones wrapped to 80 columns."""
    folded = {}
    for name, text in facts.items():
        lines = textwrap.wrap(text, _FACT_WIDTH, break_long_words=False)
        folded[name] = f"\n{' ' * 11}".join(lines)
    print_facts(folded)


def _add(table: object, label: str, spread: Quantiles, digits: int | None = None) -> None:
    values = (spread.mean, spread.p10, spread.p50, spread.p90, spread.p99, spread.max)
    cells = [seconds(value) if digits is None else number(value, digits) for value in values]
    table.add_row(label, *cells)  # type: ignore[attr-defined]  # a rich Table


def _rows(rows: int | None, dropped: dict[str, int]) -> str:
    if rows is None:
        return ""
    total = sum(dropped.values())
    if not total:
        return f"{number(rows)}, none left out"
    reasons = "; ".join(f"{number(count)} {why}" for why, count in dropped.items())
    were = "was" if total == 1 else "were"
    return f"{number(rows)}; {number(total)} {were} left out: {reasons}"


def _rounded(rounded: dict[str, int]) -> str:
    return "; ".join(f"{counted(n, 'job')}: {what}" for what, n in rounded.items() if n)


def _origin(origin: Origin | None) -> str:
    """Return the file that the jobs were first read from, and what was left out there."""
    if origin is None:
        return ""
    rows = _rows(origin.rows, origin.dropped)
    parts = [
        f"{origin.path} ({origin.format})".strip() if origin.path else origin.format,
        f"rows {rows}" if rows else "",
        _rounded(origin.rounded),
    ]
    return "; ".join(filter(None, parts))


def _recorded_on(types: dict[str, int]) -> str:
    """Return the GPU types that run times were recorded on, in words; empty if none is known."""
    if set(types) <= {RECORDED}:
        return ""
    return "recorded on " + ", ".join(
        f"{'unknown types' if name == RECORDED else name} ({counted(jobs, 'job')})"
        for name, jobs in types.items()
    )


def _span(card: TraceCard) -> str:
    days = f"{number(card.span_seconds / _DAY, 1)} days"
    span = days if card.span_seconds >= _DAY else clock(card.span_seconds)
    if not card.first:
        return f"{span}, dates not known"
    return f"{span}, {card.first} to {card.last} {card.time_zone}"


def _arrivals(card: TraceCard) -> str:
    found = card.arrivals
    words = [
        f"{counted(round(found.per_day), 'job')} a day, {number(found.busiest_day)} on the busiest",
        f"at most {number(found.most_at_once)} at one instant",
    ]
    if found.gap_cv is not None:
        words.append(f"burstiness {number(found.gap_cv, 1)} (1 = Poisson)")
    if found.by_weekday and card.span_seconds >= _SHOWS_HOURS:
        mean = sum(found.by_hour) / 24
        busiest, quietest = max(found.by_hour), min(found.by_hour)
        words.append(
            f"busiest hour {found.by_hour.index(busiest)} h ({number(busiest / mean, 1)} x the "
            f"mean), quietest {found.by_hour.index(quietest)} h ({number(quietest / mean, 1)} x)"
        )
        workday, weekend = sum(found.by_weekday[:5]) / 5, sum(found.by_weekday[5:]) / 2
        if workday and card.span_seconds >= _SHOWS_WEEKS:
            words.append(f"a weekend day has {number(weekend / workday, 2)} x a workday's jobs")
    return "; ".join(words)


def _estimates(card: TraceCard) -> str:
    found = card.estimates
    if not found.jobs:
        return "none"
    have = f"{counted(found.jobs, 'job')} {'has' if found.jobs == 1 else 'have'} one"
    return f"{have}; {number(found.too_short)} ran longer than estimated"


def _show_sizes(sizes: list[Size]) -> None:
    table = new_table("GPUs per job", "jobs", "of jobs", "of GPU-hours")
    kept = sorted(sizes, key=lambda size: -size.jobs)[:_MOST_SIZES]
    for size in sorted(kept, key=lambda size: (size.gpus, not size.is_part)):
        table.add_row(
            "part of one" if size.is_part else number(size.gpus),
            number(size.jobs),
            percent(size.job_share),
            percent(size.work_share),
        )
    rest = [size for size in sizes if size not in kept]
    if rest:
        low, high = min(size.gpus for size in rest), max(size.gpus for size in rest)
        table.add_row(
            f"{counted(len(rest), 'more size')}, {number(low)} to {number(high)}",
            number(sum(size.jobs for size in rest)),
            percent(sum(size.job_share for size in rest)),
            percent(sum(size.work_share for size in rest)),
        )
    print_table(table)


def _show_cluster(found: OnCluster) -> None:
    above = f"demand is above capacity {percent(found.time_above)} of the time"
    load = "all jobs arrive at once" if found.load is None else f"load {number(found.load, 3)}"
    impossible = "; ".join(f"{number(n)} {why}" for why, n in found.impossible.items())
    _facts(
        {
            "cluster": f"{found.name}, {counted(found.gpus, 'GPU')}: {load}; {above}",
            "run times": "" if found.run_times is None else found.run_times.in_words(),
            "impossible": impossible or "none: the cluster can run every job",
        }
    )
    for title, entries in (("GPU type", found.by_gpu_type), ("pool", found.by_pool)):
        if entries:
            print()
            _show_pressures(title, entries)


def _show_pressures(title: str, entries: list[Pressure]) -> None:
    table = new_table(title, "jobs", "GPUs", "mean demand", "p95", "demand / GPUs")
    for entry in entries[:_MOST_PRESSURES]:
        table.add_row(
            entry.name,
            number(entry.jobs),
            number(entry.gpus),
            number(entry.demand_mean, 1),
            number(entry.demand_p95),
            number(entry.oversubscription, 2),
        )
    print_table(table)
    if len(entries) > _MOST_PRESSURES:
        print(f"and {len(entries) - _MOST_PRESSURES} more with less demand; --json has all")
