"""The generated parts of the page about tasks: what is to be gained in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markdown_text import code, table

if TYPE_CHECKING:
    from berthline.tasks.task_judge import Measurement, Row
    from berthline.tasks.task_table import Task


def seats() -> str:
    """Return what is to be gained in each environment with its default options."""
    from berthline.env.registration import SEATS
    from berthline.tasks.published_scores import published_scores

    scores = published_scores()
    rows = []
    for name in SEATS:
        found = scores.get(f"{name}-v0")
        if found is not None:
            rows.append(
                (
                    code(found.name),
                    f"{found.decisions:,.0f}",
                    f"{found.choices:.0%}",
                    _value(found.random),
                    _value(found.first),
                    f"{_value(found.best)}, {code(found.best.name)}",
                    "" if found.bound is None else f"{found.bound:.3f}",
                )
            )
    names = ("environment", "decisions", "with a choice", "random", "first", "best rule", "bound")
    return table(names, rows)


def tasks() -> str:
    """Return an overview of the frozen tasks."""
    from berthline.tasks.published_scores import published_scores
    from berthline.tasks.task_table import TASKS

    scores, rows = published_scores(), []
    for task in TASKS.values():
        found = scores.get(task.name)
        if found is None:
            continue
        learned = max(found.policies, key=lambda row: row.value, default=None)
        rows.append(
            (
                f"[{task.name}](#{task.name.lower()})",
                task.meaning,
                _value(found.random),
                _value(found.first),
                _value(found.best),
                "" if learned is None else f"{_value(learned)} ({_against(learned)})",
                "" if found.bound is None else f"{found.bound:.3f}",
            )
        )
    names = ("task", "the agent decides", "random", "first", "best rule", "best network", "bound")
    return table(names, rows)


def each_task() -> str:
    """Return a section for each frozen task."""
    from berthline.tasks.published_scores import published_scores
    from berthline.tasks.task_table import TASKS

    scores = published_scores()
    return "\n\n".join(_section(task, scores.get(task.name)) for task in TASKS.values())


def _section(task: Task, found: Measurement | None) -> str:
    from berthline.env.make_plan import make_plan
    from berthline.env.options import resolve_options
    from berthline.env.questions import QUESTIONS
    from berthline.tasks.task_table import task_id

    plan = make_plan(task.seat, resolve_options(task.seat, task.options))
    shapes = ", ".join(
        f"`{name}` {' x '.join(map(str, shape))}" for name, shape in plan.table_shapes().items()
    )
    options = task.options
    load = f" at a load of {options['load']:g}"
    terms = "; ".join(
        f"{code(term.formula)} ({term.occasion}) x {term.weight:g}" for term in plan.reward.terms
    )
    facts = [
        ("jobs", f"{options['episode_jobs']:,} of {code(options['workload'])}{load}"),
        ("cluster", f"{code(options['cluster'])}, {plan.cluster.total_gpus} GPUs"),
        ("run times", f"{code(options['knowledge'])}"),
        ("everything else", f"{code(str(plan.scheduler))}"),
        ("asked", QUESTIONS[task.seat].asked.replace("(#", "(mdp.md#")),
        ("actions", _actions(plan)),
        ("sees", shapes),
        ("reward", f"{terms}; minus the return is: {task.unit}"),
    ]
    parts = [
        f"### {task.name}",
        f"`{task_id(task.name)}`: {task.meaning}. To be learned: {task.lesson}.",
        table(("", ""), facts),
    ]
    if found is not None:
        parts.append(
            f"{found.decisions:,.0f} decisions in an episode, {found.choices:.0%} of them with a "
            f"choice; means of {found.episodes} episodes from seed {found.seed:,}:"
        )
        parts.append(table(("policy", "return", "95 % interval", "best rule"), _rows(found)))
        if not found.policies:
            parts.append("No network is shipped for it so far.")
        parts.append(f"`berthline bench tasks --task {task.name}` makes these rows.")
    return "\n\n".join(parts)


def _actions(plan: Any) -> str:
    if plan.seat == "pickplace":
        return f"{plan.num_actions} rows x {plan.cluster.num_nodes} nodes"
    return f"{plan.num_actions}"


def _rows(found: Measurement) -> list[tuple[str, ...]]:
    rows = [(row.name, row) for row in (found.random, found.first)]
    rows += [(code(row.name), row) for row in found.policies]
    shown = [
        (name, _value(row), f"{row.low:.3f} to {row.high:.3f}", _against(row)) for name, row in rows
    ]
    best = found.best
    label = f"best of {found.rules} rules: {code(best.name)}"
    shown.append((label, _value(best), f"{best.low:.3f} to {best.high:.3f}", ""))
    if found.bound is not None:
        shown.append(("bound: no policy exceeds it", f"{found.bound:.3f}", "", ""))
    return shown


def _value(row: Row) -> str:
    return f"{row.value:.3f}"


def _against(row: Row) -> str:
    if row.against is None:
        return ""
    return f"{row.against:+.1%} ({row.against_low:+.1%} to {row.against_high:+.1%})"


PARTS = {"seats": seats, "tasks": tasks, "each task": each_task}
