"""The clock of the reference simulator: a SimPy environment that also takes absolute times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import simpy

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock(simpy.Environment):
    """A SimPy environment that calls functions after a delay or at a time.

    A function planned before its time is called before all functions that are planned at that
    time, so `after(0, ...)` runs when everything due now has run. Among functions planned before
    their common time the order is not defined: `at` may plan its function in two steps. The
    simulator does not depend on it: they only put events on the agenda of the instant, which is
    sorted by kind and id before anything happens (`Simulation.do_what_is_due`).
    """

    def after(self, delay: float, callback: Callable[[object], None]) -> None:
        """Call a function at the time `now + delay`."""
        self.timeout(delay).callbacks.append(callback)

    def at(self, time: float, callback: Callable[[object], None]) -> None:
        """Call a function at exactly this time.

        SimPy adds a delay to the current time, and `now + (time - now)` may differ from `time` in
        the last bit. It never does if `now >= time / 2`, because then the difference is exact
        (Sterbenz's lemma). So where it would differ, wait for half of the delay first.
        """
        delay = time - self.now
        if self.now + delay == time:
            self.after(delay, callback)
        else:
            self.after(delay / 2, lambda _: self.at(time, callback))
