"""The answer of whatif in sentences, for the command line and the report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from berthline.evaluate.metrics.starvation import starves_words
from berthline.evaluate.whatif.fidelity import CANNOT, grade
from berthline.evaluate.whatif.judged_days import DAY
from berthline.evaluate.whatif.outcome import DOUBT, DOUBTFUL

if TYPE_CHECKING:
    from berthline.evaluate.whatif.idle_waits import IdleWaits
    from berthline.evaluate.whatif.whatif_result import Replayed, SchedulerOutcome, WhatIf

NOT_CORRECTED = "but not after correction"
"""Part of a verdict that holds only for a single comparison."""

TOO_SHORT = (
    "Waits are those of this period only. In a longer run a scheduler can leave jobs behind for "
    "months: compare it over the whole log before you use it."
)

ADVICE = {
    "good": "differences can be trusted",
    "fair": "large differences can be trusted, small ones cannot",
    "poor": "take differences as hints; naming the nodes or today's scheduler may help",
    CANNOT: "hardly any job waited, so every model that starts jobs at once would look right",
}
"""What the grade of a model means."""


def in_short(found: WhatIf) -> list[str]:
    """Return the answer in a few sentences, the most important first."""
    best = best_alternative(found)
    if best is None or best.against_today is None:
        told = ["no alternative has a better mean JCT than today's scheduler beyond chance."]
        today, nearest = found.outcomes[0], min(found.outcomes, key=lambda each: each.jct.mean)
        if nearest.jct.mean < today.jct.mean:
            told.append(
                f"The lowest is that of {nearest.scheduler}: {hours(nearest.jct.mean)} h, "
                f"against {hours(today.jct.mean)} h; a longer period may show more."
            )
    else:
        against = best.against_today
        users = f"{against.users_shorter:,} user{'s' if against.users_shorter != 1 else ''}"
        told = [
            f"{best.scheduler} does best: mean JCT {against.verdict.removesuffix(DOUBT)}; "
            f"{users} would wait less, {against.users_longer:,} longer."
        ]
        if against.could_explain is not None and against.could_explain >= DOUBTFUL:
            told.append("But half of that change or more may be the error of the model.")
    starving = starves_words({each.scheduler: each.starvation for each in found.outcomes})
    if starving:
        told.append(f"Not safe as it is: {starving}.")
    word = grade(found.fidelity)
    told.append(f"The model of today's scheduler {graded(word)}: {ADVICE[word]}.")
    return told


def idle_words(found: IdleWaits) -> str:
    """Return, in sentences, how much recorded waiting the GPUs in use do not explain."""
    told = (
        f"{100 * found.share:.0f} % of the recorded waiting time passed while the job's GPUs were "
        "free. "
    )
    if found.share == 0:
        return told.strip()
    return (
        f"{told}Of all waiting time, {100 * found.standstill:.0f} % passed while no job at all "
        "started for an hour or more (an outage or a reservation?), "
        f"{100 * found.own_jobs:.0f} % while the user had other jobs running (a limit for each "
        f"user?), {100 * found.others:.0f} % otherwise: GPUs kept for larger jobs, other limits, "
        "or packing. A log does not show which."
    )


def closest_others(found: WhatIf, most: int = 3) -> list[tuple[str, float]]:
    """Return the closest schedulers besides the chosen one, each with its least distance."""
    least: dict[str, float] = {}
    for model in found.models:
        if model.scheduler != found.today:
            least[model.scheduler] = min(least.get(model.scheduler, math.inf), model.distance)
    return sorted(least.items(), key=lambda item: item[1])[:most]


def begins_words(replay: Replayed) -> str:
    """Return from which state the replay begins."""
    told = (
        f"{replay.running_at_begin:,} jobs running and {replay.queued_at_begin:,} waiting; none of "
        "them is measured"
    )
    days = replay.lead_seconds / DAY
    if not days:
        return f"with {told}"
    return (
        f"{days:.2g} days before the period, with {told}. When the period began, "
        f"{replay.running_at_period:,} jobs were running and {replay.queued_at_period:,} waiting"
    )


def graded(word: str) -> str:
    """Return a grade as the end of a sentence about a model.

    Example:
        >>> graded("fair"), graded(CANNOT)
        ('is fair', 'cannot be judged')
    """
    return word if word == CANNOT else f"is {word}"


def best_alternative(found: WhatIf) -> SchedulerOutcome | None:
    """Return the alternative with the best JCT, if it is better than today's beyond chance."""
    better = [
        (each.against_today.jct.ratio, each)
        for each in found.outcomes
        if each.against_today is not None
        and each.against_today.jct.ratio is not None
        and each.against_today.verdict.startswith("better")
        and NOT_CORRECTED not in each.against_today.verdict
    ]
    return min(better, key=lambda item: item[0])[1] if better else None


def hours(seconds: float) -> str:
    """Return seconds as hours, with as many digits as are useful.

    Example:
        >>> hours(5400), hours(-36000)
        ('1.50', '-10.0')
    """
    value = seconds / 3600
    return f"{value:,.{0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2}f}"
