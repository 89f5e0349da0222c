"""Promotion: from shadow to act only with a verdict about this very scheduler that is not old."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from berthline.atomic_write import write_atomically
from berthline.errors import RefusedError

if TYPE_CHECKING:
    from pathlib import Path

    from berthline.policies.scheduler import Scheduler

VERDICT = "verdict.json"
"""In the directory of the journal."""
BETTER, NOT_WORSE, WORSE, TOO_EARLY = "better", "not worse", "worse", "too early"
ALLOWED = (BETTER, NOT_WORSE)
OLDEST_DAYS = 30.0
_DAY = 86400.0


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of ours against the native scheduler's.

    Attributes:
        ours: its value under our scheduler.
        native: its value under the model of the native one.
        ratio: of a typical block of jobs; None = a block has no ratio.
        low: lower end of its 95 % interval.
        high: upper end.
    """

    ours: float
    native: float
    ratio: float | None
    low: float | None
    high: float | None


class PromotionVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What `berthline deploy judge` found.

    Attributes:
        journal: its directory.
        verdict: better, not worse, worse or too early.
        words: the verdict in a sentence.
        more_hours: of a journal that is too short: how much longer it should be.
        scheduler: ours, with the hash of its policy.
        native: the model of the native scheduler.
        written: Unix time.
        hours: the length of the journal.
        jobs: counted jobs: submitted and finished in it.
        jct_mean: mean time from submission to the end.
        wait_p99: the wait that 99 % do not exceed.
        bounded_slowdown_mean: mean bounded slowdown.
        wait_recorded: mean wait of these jobs, as it happened.
        wait_modelled: as the model of the native scheduler has it.
        wait_error: median difference of a job's wait between the two.
    """

    journal: str
    verdict: str
    words: str
    more_hours: float
    scheduler: str
    native: str
    written: float
    hours: float
    jobs: int
    jct_mean: Compared
    wait_p99: Compared
    bounded_slowdown_mean: Compared
    wait_recorded: float
    wait_modelled: float
    wait_error: float


def keep_judgement(directory: Path, judgement: PromotionVerdict) -> None:
    """Write a verdict into the directory of its journal."""
    content = msgspec.json.format(msgspec.json.encode(judgement), indent=2)
    write_atomically(directory / VERDICT, content)


def check_promotion(scheduler: Scheduler, directory: Path) -> None:
    """Raise unless there is a verdict that lets a scheduler act.

    Raises:
        RefusedError: there is none, it is old, about another scheduler, or it says no.
    """
    command = f"berthline deploy judge {directory}"
    hint = f"run in shadow first and then: {command}; or give a reason: `override=REASON`"
    try:
        found = msgspec.json.decode((directory / VERDICT).read_bytes(), type=PromotionVerdict)
    except (OSError, msgspec.MsgspecError):
        raise RefusedError(
            "there is no verdict that lets this scheduler act", where=str(directory), hint=hint
        ) from None
    days = (time.time() - found.written) / _DAY
    why = ""
    if found.scheduler != str(scheduler):
        why = f"the verdict is about {found.scheduler}, not {scheduler}"
    elif not -1.0 <= days <= OLDEST_DAYS:
        why = f"the verdict is {days:.0f} days old"
    elif found.verdict not in ALLOWED:
        why = f"the verdict is: {found.words}"
    if why:
        raise RefusedError(
            why,
            where=str(directory / VERDICT),
            expected=f"{' or '.join(ALLOWED)}, at most {OLDEST_DAYS:.0f} days old, about this"
            " scheduler and policy",
            hint=hint,
        )
