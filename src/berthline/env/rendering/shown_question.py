"""What an environment asks, as a picture of the instant shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.env.questions import QUESTIONS
from berthline.view.playback import ShownQuestion
from berthline.view.scene import Asked, Choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from berthline.env.plan import Plan


def shown_question(
    plan: Plan,
    question: dict[str, Any],
    mask: npt.NDArray[np.bool_],
    probabilities: npt.NDArray[np.float64] | None = None,
) -> ShownQuestion:
    """Return a question as scenes show it.

    Args:
        plan: of the environment.
        question: the clock, the jobs by row, the job at hand.
        mask: which actions are allowed; for PickPlace, rows and no-op, then nodes.
        probabilities: of every entry of the mask; None = not known.
    """
    chances: Sequence[float | None] = [None] * len(mask)
    if probabilities is not None:
        chances = probabilities.tolist()
    choices = [Choice(may, chance) for may, chance in zip(mask.tolist(), chances, strict=True)]
    seat, options = plan.seat, plan.options
    jobs, running = question["jobs"], question["running"]
    at_hand = question["job_at_hand"]
    of_jobs: list[Choice] = []
    of_running: list[Choice] = []
    of_nodes: list[Choice] = []
    others: list[Choice] = []
    if seat in ("pick", "pickplace", "backfill"):
        of_jobs = choices[: len(jobs)]
        others = [_named(choices[options.window], "no job")]
        of_nodes = choices[options.window + 1 :]
    elif seat == "preempt":
        of_running = choices[: len(running)]
        others = [_named(choices[options.running_window], "no job")]
    elif seat == "gate":
        others = [_named(choices[0], "hold"), _named(choices[1], "start")]
    elif plan.menu:
        names = [str(rule.placement if seat == "place" else rule) for rule in plan.menu]
        others = [_named(one, name) for one, name in zip(choices, names, strict=True)]
    else:
        of_nodes = choices
    return ShownQuestion(
        asked=Asked(seat, QUESTIONS[seat].about, tuple(others)),
        jobs=jobs,
        running=running if seat == "preempt" else (),
        job_at_hand=at_hand if at_hand is not None and at_hand >= 0 else None,
        of_jobs=of_jobs,
        of_running=of_running,
        of_nodes=of_nodes,
    )


def of_rows_and_nodes(
    plan: Plan, pairs: npt.NDArray[Any], *, is_mask: bool
) -> npt.NDArray[np.float64]:
    """Return numbers of pairs as numbers of rows and the no-op, then of nodes.

    Args:
        plan: of an environment of PickPlace.
        pairs: a number for each pair, as in `pick_place_actions.py`, then that of the no-op.
        is_mask: whether they say what is allowed; else they are probabilities, which add up.
    """
    table = np.asarray(pairs[:-1], np.float64).reshape(plan.options.window, -1)
    rows, nodes = table.sum(axis=1), table.sum(axis=0)
    joined = np.concatenate([rows, [float(pairs[-1])], nodes])
    return np.minimum(joined, 1.0) if is_mask else joined


def action_words(plan: Plan, question: dict[str, Any], action: int, node: int = 0) -> str:
    """Return an answer to a question in words."""
    seat, options = plan.seat, plan.options
    jobs = question["jobs"]
    if seat == "preempt":
        running = question["running"]
        return f"job {running[action]} yields" if action < len(running) else "no job yields"
    if seat in ("pick", "pickplace", "backfill"):
        if action >= len(jobs) or action >= options.window:
            return "no job"
        where = f" on node {node}" if seat == "pickplace" else ""
        return f"job {jobs[action]}{where}"
    at_hand = question["job_at_hand"]
    if seat == "gate":
        return f"{'start' if action else 'hold'} job {at_hand}"
    if seat == "meta":
        return str(plan.menu[action])
    where = plan.menu[action].placement if plan.menu else f"node {action}"
    return f"job {at_hand}: {where}"


def _named(choice: Choice, text: str) -> Choice:
    return Choice(choice.is_allowed, choice.probability, text)
