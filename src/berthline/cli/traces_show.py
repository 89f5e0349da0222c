"""`berthline traces show`: the card of a trace, as tables and as a figure."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.options import Format, Json, parse_options
from berthline.cli.output import (
    new_table,
    number,
    percent,
    print_facts,
    print_json,
    print_table,
    seconds,
)
from berthline.cli.traces_file import ClusterOption, FormatOptions, Map, TraceFile, load_file

if TYPE_CHECKING:
    from berthline.traces.card import OnCluster, Pressure, Quantiles, Size, TraceCard

_MOST_SIZES = 12
_MOST_PRESSURES = 12
_FACT_WIDTH = 69
_SHOWS_HOURS, _SHOWS_WEEKS = 3 * 86_400, 14 * 86_400
"""Seconds a trace must cover before its hours, and its weekends, tell something."""


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
    """Also draw it: png, pdf or svg. Needs the extra `report`."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Show, argv, verb="traces show")
    from berthline.traces.card import trace_card
    from berthline.traces.cluster_argument import resolve_cluster

    if options.figure is not None:
        from berthline.report.figures import check_figure_file

        check_figure_file(options.figure, needed_for="--figure")
    cluster = None if options.cluster is None else resolve_cluster(options.cluster)
    workload = load_file(options.file, options.format, options.map, options.set)
    card = trace_card(workload, cluster)
    if options.figure is not None:
        from berthline.report.trace_card_figure import draw_trace_card

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
    """Print a card for people."""
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
            + (f" of {number(card.users)} users" if card.users else "")
            + (f" in {number(card.pools)} pools" if card.pools else ""),
            "rows": _rows(card),
            "rounded": "; ".join(
                f"{number(n)} jobs: {what}" for what, n in card.rounded.items() if n
            ),
            "span": _span(card),
            "arrivals": _arrivals(card),
            "estimates": _estimates(card),
            "work": f"{number(card.gpu_hours)} GPU-hours",
            "demand": f"{number(card.demand_mean)} GPUs at once on average, "
            f"{number(card.demand_p95)} at p95, {number(card.demand_max)} at most "
            "(if no job waited)",
            "missing": ", ".join(card.missing),
        }
    )
    print()
    _show_sizes(card.sizes)
    if card.cluster:
        print()
        _show_cluster(card.cluster)


def _facts(facts: dict[str, str]) -> None:
    """Print facts, the long ones on several lines, all of 80 columns."""
    folded = {}
    for name, text in facts.items():
        lines = textwrap.wrap(text, _FACT_WIDTH, break_long_words=False)
        folded[name] = f"\n{' ' * 11}".join(lines)
    print_facts(folded)


def _add(table: object, label: str, spread: Quantiles, digits: int | None = None) -> None:
    values = (spread.mean, spread.p10, spread.p50, spread.p90, spread.p99, spread.max)
    cells = [seconds(value) if digits is None else number(value, digits) for value in values]
    table.add_row(label, *cells)  # type: ignore[attr-defined]  # a rich Table


def _rows(card: TraceCard) -> str:
    if card.rows is None:
        return ""
    dropped = sum(card.dropped.values())
    if not dropped:
        return f"{number(card.rows)}, none left out"
    reasons = "; ".join(f"{number(count)} {why}" for why, count in card.dropped.items())
    return f"{number(card.rows)}, of which {number(dropped)} were left out: {reasons}"


def _span(card: TraceCard) -> str:
    days = f"{number(card.span_seconds / 86_400, 1)} days"
    if not card.first:
        return f"{days}, dates not known"
    return f"{days}, {card.first} to {card.last} {card.time_zone}"


def _arrivals(card: TraceCard) -> str:
    found = card.arrivals
    words = [
        f"{number(found.per_day)} jobs a day, {number(found.busiest_day)} on the busiest",
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
    return f"{number(found.jobs)} jobs have one; {number(found.too_short)} ran longer than theirs"


def _show_sizes(sizes: list[Size]) -> None:
    table = new_table("GPUs per job", "jobs", "of jobs", "of GPU-hours")
    kept = sorted(sizes, key=lambda size: -size.jobs)[:_MOST_SIZES]
    for size in sorted(kept, key=lambda size: size.gpus):
        table.add_row(
            number(size.gpus), number(size.jobs), percent(size.job_share), percent(size.work_share)
        )
    rest = [size for size in sizes if size not in kept]
    if rest:
        low, high = min(size.gpus for size in rest), max(size.gpus for size in rest)
        table.add_row(
            f"{len(rest)} more sizes, {number(low)} to {number(high)}",
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
            "cluster": f"{found.name}, {number(found.gpus)} GPUs: {load}; {above}",
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
