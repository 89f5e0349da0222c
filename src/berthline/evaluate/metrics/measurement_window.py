"""Measurement window: the part of a run that metrics cover.

A run starts on an empty cluster and ends on one that empties; neither shows the steady state. A
window excludes them explicitly: only jobs submitted in it count, with everything that happens to
them later, and time averages cover the window only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError
from berthline.time_text import seconds_in

if TYPE_CHECKING:
    from berthline.model.workload import FloatColumn, Workload


class MeasurementWindow(NamedTuple):
    """From `begin` to before `stop`, in seconds on the workload's clock."""

    begin: float = 0.0
    stop: float = math.inf

    @classmethod
    def parse(cls, text: str) -> MeasurementWindow:
        """Return the window that FROM:TO names; one side may be omitted.

        Raises:
            ConfigError: it is not such a pair, or contains no time.

        Example:
            >>> MeasurementWindow.parse("86400:")
            MeasurementWindow(begin=86400.0, stop=inf)
        """
        begin, colon, stop = text.partition(":")
        first = seconds_in(begin) if begin else 0.0
        last = seconds_in(stop) if stop else math.inf
        if first is None or last is None or not colon:
            return cls.checked((math.nan, math.nan), text)
        return cls.checked((first, last), text)

    @classmethod
    def checked(cls, pair: tuple[float, float], text: str = "") -> MeasurementWindow:
        """Return the window from one time to another.

        Raises:
            ConfigError: it contains no time.
        """
        begin, stop = pair
        if not 0 <= begin < stop:
            raise ConfigError(
                f"the measurement window is {text or f'{begin:g}:{stop:g}'}",
                expected="FROM:TO, FROM before TO, such as 86400:172800, 1d:30d or 1d:",
            )
        return cls(float(begin), float(stop))

    def in_words(self) -> str:
        """Return what the window counts.

        Example:
            >>> MeasurementWindow(86400, 172800).in_words()
            'jobs submitted from 86,400 s to 172,800 s; time averages over the same span'
        """
        until = f"to {self.stop:,.10g} s" if self.stop < math.inf else "on"
        return f"jobs submitted from {self.begin:,.10g} s {until}; time averages over the same span"

    @classmethod
    def of_run(
        cls, measure: tuple[float, float] | None, begins: float | None = None
    ) -> MeasurementWindow | None:
        """Return what is measured of a run; None = all of it.

        Args:
            measure: the window that was asked for; None = the whole run.
            begins: the instant of the snapshot that the run began with; None = it began empty.

        Raises:
            ConfigError: the window contains no time, or none of the run.
        """
        window = None if measure is None else cls.checked(measure)
        if begins is None:
            return window
        if window is None:
            return SinceSnapshot(begins)
        if window.stop <= begins:
            raise ConfigError(
                f"the measurement window ends at {window.stop:,.10g} s, before the run begins",
                expected=f"a time after the snapshot, which is at {begins:,.10g} s",
            )
        return SinceSnapshot(begins, window.stop) if window.begin <= begins else window

    def check_jobs(self, workload: Workload) -> None:
        """Raise if no job counts.

        Raises:
            ConfigError: none is submitted in the window.
        """
        if len(workload) and not self.submitted(workload).any():
            submit = workload.submit
            raise ConfigError(
                "no job is submitted in the measurement window",
                where=workload.name,
                expected=f"a window with jobs: they are submitted from {submit[0]:,.10g} s to "
                f"{submit[-1]:,.10g} s",
            )

    def has(self, time: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Return which of some times are in the window."""
        inside: npt.NDArray[np.bool_] = (time >= self.begin) & (time < self.stop)
        return inside

    def submitted(self, workload: Workload) -> npt.NDArray[np.bool_]:
        """Return which jobs count."""
        return self.has(workload.submit)

    def clock(self, time: FloatColumn) -> FloatColumn:
        """Return how much of the window has passed by each time; a clock for `stretches`."""
        return np.clip(time, self.begin, self.stop)


class SinceSnapshot(MeasurementWindow):
    """From the instant of a snapshot: its jobs count too, although they were submitted before."""

    __slots__ = ()

    def in_words(self) -> str:
        """Return what the window counts."""
        if self.stop < math.inf:
            return (
                f"jobs not over at {self.begin:,.10g} s and those submitted until "
                f"{self.stop:,.10g} s; time averages over the same span"
            )
        return f"jobs not over at {self.begin:,.10g} s and later ones; time averages from then"

    def submitted(self, workload: Workload) -> npt.NDArray[np.bool_]:
        """Return which jobs count."""
        counted: npt.NDArray[np.bool_] = workload.submit < self.stop
        return counted
