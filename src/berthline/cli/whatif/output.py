"""What `berthline whatif` prints: how far to trust it, what would change, and for whom."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from berthline.cli.compare.whole_runs import STARVED
from berthline.cli.output import (
    BEST,
    NARROWEST,
    counted,
    fold_scheduler,
    new_table,
    number,
    print_facts,
    print_table,
    trace_facts,
)
from berthline.evaluate.metrics.starvation import wait_words
from berthline.evaluate.whatif.outcome import DOUBT
from berthline.evaluate.whatif.whatif_words import (
    TOO_SHORT,
    begins_words,
    closest_others,
    idle_words,
    in_short,
)
from berthline.evaluate.whatif.whatif_words import hours as _hours
from berthline.one_line import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.table import Table

    from berthline.evaluate.whatif.fidelity import Fidelity
    from berthline.evaluate.whatif.whatif_result import GroupOutcome, SchedulerOutcome, WhatIf
    from berthline.model.workload import Workload

MOST_SIZES = 7
MOST_USERS = 3
"""Users shown on each side; `--json` has all."""

_INDENT = 12
_KNOWN = {
    "none": "nothing about run times, as the log has no time limits",
    "estimate": "the time limits, as on the cluster",
    "predicted": "run times predicted from each user's earlier jobs",
    "exact": "the true run times, which no real scheduler knows",
}


def show(
    found: WhatIf, workload: Workload, *, period: tuple[str, str], results: str, again: str
) -> None:
    """Print the answer as text."""
    replay = found.replay
    print(
        f"{found.log}, {period[0]} to {period[1]}: {counted(replay.jobs, 'job')} of "
        f"{counted(replay.users, 'user')}\n"
        "read-only: nothing leaves this machine, nothing on the cluster is touched\n"
    )
    _show_summary(found)
    _show_inputs(found)
    _show_fidelity(found)
    print(
        "\nWhat each scheduler would have done to these jobs; the first is today's, as\n"
        f"modelled, not as recorded. Times in hours; {BEST} best\n"
    )
    print_table(_values(found.outcomes))
    print(f"\nThe longest waits\n{STARVED}\n")
    print_table(_longest_waits(found.outcomes))
    print("\nMean JCT against today's, with 95 % intervals over days of this period:\n")
    print_table(_differences(found))
    print(
        "\nwait mean: its change, in hours; may be model: the share of it that the\n"
        "model's error could explain; users: how many would wait longer, how many less"
    )
    print("\nMean wait by size (GPUs of a job), in hours\n")
    _show_sizes(found)
    print("\nUsers who would wait longer, or less: change in mean wait, in hours\n")
    print_table(_users(found.outcomes))
    _show_doubts(found)
    print()
    page = f"berthline report {results}" if results else ""
    print_facts({**trace_facts(workload), "results": results, "page": page, "again": again})


def _show_summary(found: WhatIf) -> None:
    """Print the answer in one or two sentences."""
    _fact("in short", " ".join(in_short(found)))
    print()


def _show_inputs(found: WhatIf) -> None:
    cluster, replay = found.cluster, found.replay
    how = "inferred from the log" if cluster.findings else cluster.name
    _fact(
        "cluster",
        f"{counted(cluster.gpus, 'GPU')} on {counted(cluster.nodes, 'node')}, {how}",
    )
    for finding in cluster.findings:
        _fact(
            f"  {finding.what}",
            f"{finding.found} ({finding.evidence}). But: {finding.uncertainty}.",
        )
    _fact("knows", _KNOWN[found.knowledge])
    _fact("begins", begins_words(replay))
    for count, text in (
        (replay.eligible_later, "became eligible after submission; waits count from then on"),
        (replay.start_unknown, "without a recorded start: left out"),
        (replay.too_large, "too large for the cluster: left out"),
        (replay.still_running, "still running when the log was taken: assumed to end there"),
        (replay.never_started, "not started when the log was taken: left out"),
    ):
        if count:
            _fact("", f"{counted(count, 'job')} {text}")


def _show_fidelity(found: WhatIf) -> None:
    from berthline.evaluate.whatif.fidelity import grade, mean_error_factor

    best = found.models[0]
    if found.today_given:
        _fact("today", f"{found.today}, as given")
    else:
        _fact(
            "today",
            f"{found.today}: {best.meaning}. The closest of {len(found.models)} models, with and "
            "without limits that a log does not show, on "
            f"{found.split.how} ({counted(found.split.chosen_jobs, 'job')}).",
        )
        error = best.fidelity.error_factor
        others = [f"{text} ({far:.2f})" for text, far in closest_others(found)]
        _fact(
            "",
            f"Off by a factor of {error:.2f} in single waits, {best.size_error_factor:.2f} in "
            f"means by size and {mean_error_factor(best.fidelity):.2f} in the mean, together "
            f"{best.distance:.2f}; next: {', '.join(others)}.",
        )
        equal = sum(model.distance == best.distance for model in found.models[1:])
        if equal:
            _fact("", f"{counted(equal, 'other')} equally close: they cannot be distinguished.")
    _fact("fidelity", f"{grade(found.fidelity)}, as follows")
    print(
        f"\nRecorded and modelled waits of {counted(found.split.judged_jobs, 'job')} "
        f"({'not ' if 'same jobs' not in found.split.how else ''}those it was chosen on), "
        "hours\n"
    )
    table = new_table(
        "GPUs",
        "jobs",
        "mean\nrecorded",
        "mean\nmodelled",
        "median\nrecorded",
        "median\nmodelled",
        "rank\ncorr.",
        "within\n2x, %",
    )
    rows = list(found.fidelity_by_size.items())
    for label, each in [("all", found.fidelity), *(rows if len(rows) > 1 else [])]:
        table.add_row(_short(label), number(each.jobs), *_waits(each))
    print_table(table)
    if found.idle_waits is not None:
        print()
        _fact("of waits", idle_words(found.idle_waits))


def _waits(each: Fidelity) -> tuple[str, ...]:
    return (
        _hours(each.recorded_mean),
        _hours(each.simulated_mean),
        _hours(each.recorded_median),
        _hours(each.simulated_median),
        number(each.rank_correlation, 2),
        number(100 * each.within_2x),
    )


def _values(outcomes: Sequence[SchedulerOutcome]) -> Table:
    table = new_table(
        "scheduler",
        "JCT\nmean",
        "JCT\np99",
        "bounded\nslowdown",
        "wait\nmean",
        "wait\np95",
        "GPU\nuse, %",
        "makespan",
    )
    columns: tuple[
        tuple[Callable[[SchedulerOutcome], float], Callable[[float], str], bool], ...
    ] = (
        (lambda o: o.jct.mean, _hours, False),
        (lambda o: o.jct.p99, _hours, False),
        (lambda o: o.bounded_slowdown.mean, lambda x: number(x, 1), False),
        (lambda o: o.wait.mean, _hours, False),
        (lambda o: o.wait.p95, _hours, False),
        (lambda o: o.utilization, lambda x: number(100 * x, 1), True),
        (lambda o: o.makespan, _hours, False),
    )
    best = [(max if high else min)(read(o) for o in outcomes) for read, _, high in columns]
    for each in outcomes:
        cells = [
            (BEST if read(each) == top else "") + write(read(each))
            for (read, write, _), top in zip(columns, best, strict=True)
        ]
        today = "" if each.against_today else "\n  (today, modelled)"
        table.add_row(fold_scheduler(each.scheduler, 23) + today, *cells)
    return table


def _longest_waits(outcomes: Sequence[SchedulerOutcome]) -> Table:
    table = new_table("scheduler", "longest\nwait", "starved\njobs", "left\nbehind")
    for each in outcomes:
        found = each.starvation
        table.add_row(
            fold_scheduler(each.scheduler),
            wait_words(found.wait),
            number(found.starved),
            number(found.left_behind),
        )
    return table


def _differences(found: WhatIf) -> Table:
    table = new_table("scheduler")
    table.columns[0].no_wrap = True
    table.add_column("JCT mean", vertical="bottom")
    for head in ("wait\nmean", "may be\nmodel", "users:\nlonger", "\nless"):
        table.add_column(head, justify="right", no_wrap=True, vertical="bottom")
    for each in found.outcomes:
        against = each.against_today
        if against is not None:
            share = against.could_explain
            table.add_row(
                fold_scheduler(each.scheduler, 23),
                against.verdict.removesuffix(DOUBT),
                _signed(against.wait_change),
                "-" if share is None else f"{100 * share:.0f} %",
                number(against.users_longer),
                number(against.users_shorter),
            )
    return table


def _show_sizes(found: WhatIf) -> None:
    first = found.outcomes[0].by_size
    sizes = sorted(first, key=lambda size: -first[size].jobs)[:MOST_SIZES]
    sizes = [size for size in first if size in sizes]
    table = new_table("scheduler", *(_short(size) for size in sizes))
    table.add_row("jobs", *(number(first[size].jobs) for size in sizes))
    for each in found.outcomes:
        table.add_row(
            fold_scheduler(each.scheduler, 23),
            *(_hours(each.by_size[size].wait_mean) for size in sizes),
        )
    errors = (first[size].wait_error for size in sizes)
    table.add_row("model's error, +-", *("-" if e is None else _hours(e) for e in errors))
    print_table(table)
    if len(first) > len(sizes):
        print(f"the {len(sizes)} sizes with the most jobs, of {len(first)}; --json has all")


def _users(outcomes: Sequence[SchedulerOutcome]) -> Table:
    table = new_table("scheduler")
    for head in ("longer", "less"):
        table.add_column(head, overflow="fold", ratio=1)
    for each in outcomes:
        if each.against_today is not None:
            ranked = sorted(each.by_user.items(), key=lambda item: -_total(item[1]))
            longer = [item for item in ranked if item[1].wait_change > 60][:MOST_USERS]
            less = [item for item in ranked[::-1] if item[1].wait_change < -60][:MOST_USERS]
            table.add_row(fold_scheduler(each.scheduler, 23), _named(longer), _named(less))
    return table


def _total(group: GroupOutcome) -> float:
    return group.wait_change * group.jobs


def _named(users: Sequence[tuple[str, GroupOutcome]]) -> str:
    return (
        "\n".join(
            f"{one_line(user)[:16]} {_signed(group.wait_change)} ({counted(group.jobs, 'job')})"
            for user, group in users
        )
        or "no one"
    )


def _show_doubts(found: WhatIf) -> None:
    print()
    if found.user_error_seconds is not None:
        _fact(
            "users",
            "ordered by change x jobs. For a single user the model is off by "
            f"{_hours(found.user_error_seconds)} h (median); smaller changes mean nothing.",
        )
    if found.left_out:
        _fact(
            "left out",
            f"{', '.join(found.left_out)}, which takes long on a log of this size; to add it: "
            "--schedulers.",
        )
    _fact("starvation", TOO_SHORT)
    _fact(
        "error",
        f"the model is off by {_hours(found.error_seconds)} h in the mean wait of a day; a "
        "change of that size could come from the model, not the scheduler.",
    )


def _fact(name: str, text: str) -> None:
    """Print a fact, wrapped under its name."""
    lines = textwrap.wrap(text, NARROWEST - _INDENT, break_long_words=False) or [""]
    print(f"{name:<{_INDENT}}{lines[0]}")
    for line in lines[1:]:
        print(" " * _INDENT + line)


def _signed(seconds: float) -> str:
    return ("+" if seconds > 0 else "") + _hours(seconds)


def _short(size: str) -> str:
    """Return a size class in short form: `3 to 4 GPUs` is 3-4."""
    return size.replace(" to ", "-").removesuffix(" GPUs").removesuffix(" GPU")
