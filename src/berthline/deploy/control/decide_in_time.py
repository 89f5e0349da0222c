"""A decision within a deadline; a fallback decides when the scheduler is late or fails."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from berthline.errors import BerthlineError
from berthline.sim.snapshots.decide import decide

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.model.snapshot import Snapshot
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.snapshots.decide import Action

LATE, FAILED, STRANGE, WAITED = "late", "failed", "strange", "max_wait"
FALLBACKS = {
    LATE: "the scheduler took longer than its deadline, or still does",
    FAILED: "the scheduler raised an error",
    STRANGE: "the state is outside what the policy was trained on",
    WAITED: "a job waits longer than max_wait, so the oldest goes first",
}
"""Why the fallback decides, by the name in the journal and in metrics."""


class Made(NamedTuple):
    """A decision that was made.

    Attributes:
        actions: its rows.
        by: the text of the scheduler that decided.
        fallback: one of FALLBACKS; empty = the scheduler itself decided.
        words: what went wrong.
    """

    actions: tuple[Action, ...]
    by: str
    fallback: str = ""
    words: str = ""


class Decider:
    """Asks a scheduler, and its fallback if that is late or fails.

    A call that is late cannot be ended: it goes on in its thread, and until it is over the fallback
    decides.

    Args:
        scheduler: who decides.
        fallback: a rule, which decides without a deadline.
        knowledge: what the scheduler knows about run times.
        deadline: seconds.
        detector: returns why a snapshot is outside training; empty = it is not.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        fallback: Scheduler,
        *,
        knowledge: str,
        deadline: float,
        detector: Callable[[Snapshot], str] | None = None,
    ) -> None:
        self.scheduler, self.fallback = scheduler, fallback
        self.knowledge, self.deadline, self.detector = knowledge, deadline, detector
        self._late: threading.Thread | None = None

    def decide(self, snapshot: Snapshot, *, oldest_first: bool = False) -> Made:
        """Return the decision of a snapshot's instant.

        Args:
            snapshot: the state.
            oldest_first: a job has waited too long: the fallback decides.
        """
        why, words = "", ""
        if oldest_first:
            by = OLDEST_FIRST if self.knowledge != "none" else OLDEST_FIRST_BLINDLY
            return self._fall_back(snapshot, by, WAITED, "")
        if self._late is not None and self._late.is_alive():
            why, words = LATE, "an earlier decision is not over"
        elif self.detector is not None and (words := self.detector(snapshot)):
            why = STRANGE
        else:
            self._late = None
            found = self._ask(snapshot)
            if isinstance(found, tuple):
                return Made(found, str(self.scheduler))
            why, words = (LATE, "") if found is None else (FAILED, found)
        return self._fall_back(snapshot, str(self.fallback), why, words)

    def _fall_back(self, snapshot: Snapshot, by: str, why: str, words: str) -> Made:
        """Let a rule decide; if it cannot, the simplest one, which needs to know nothing."""
        try:
            return Made(actions_of(snapshot, by, self.knowledge), by, why, words)
        except BerthlineError as error:
            words = f"{words}; {by}: {error.what}".removeprefix("; ")
            by = OLDEST_FIRST_BLINDLY
            return Made(actions_of(snapshot, by, self.knowledge), by, why, words)

    def _ask(self, snapshot: Snapshot) -> tuple[Action, ...] | str | None:
        """Return the rows, what went wrong, or None if it takes too long."""
        box: list[tuple[Action, ...] | str] = []

        def run() -> None:
            try:
                box.append(actions_of(snapshot, self.scheduler, self.knowledge))
            except BerthlineError as error:
                box.append(error.what)
            except Exception as error:
                box.append(f"{type(error).__name__}: {error}")

        if self.scheduler.learned is None and _is_quick(self.scheduler):
            run()  # a rule in the core: a thread of its own would only cost time
            return box[0]
        thread = threading.Thread(target=run, name="decision", daemon=True)
        began = time.monotonic()
        thread.start()
        thread.join(self.deadline)
        if thread.is_alive() or time.monotonic() - began > self.deadline:
            self._late = thread
            return None
        return box[0]


OLDEST_FIRST, OLDEST_FIRST_BLINDLY = "fcfs+easy", "fcfs"
"""The second needs no run times."""


def _is_quick(scheduler: Scheduler) -> bool:
    """Whether a rule always decides in milliseconds, whatever the queue."""
    return scheduler.discipline in ("strict", "skip", "easy") and scheduler.placement != "milp"


def actions_of(
    snapshot: Snapshot, scheduler: Scheduler | str, knowledge: str
) -> tuple[Action, ...]:
    """Return the rows of a decision."""
    if not len(snapshot.workload):
        return ()
    return decide(snapshot, scheduler, knowledge=knowledge).actions
