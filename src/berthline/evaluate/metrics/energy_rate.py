"""Energy rate: the price or the carbon of a kWh, as a step function of time."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from berthline.errors import ConfigError
from berthline.model.workload import FloatColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berthline.model.workload import Workload

_COLUMNS = ("time", "value")

UNIX_TIMES = 1e8
"""Times from here on are seconds since 1970: no workload begins three years after its zero."""


@dataclasses.dataclass(frozen=True, eq=False)
class EnergyRate:
    """A value per kWh that changes at given times. Prices may be negative.

    Attributes:
        times: when each value begins, in seconds on the workload's clock, ascending. A value holds
            until the next one begins; the last one holds indefinitely, unless the series repeats.
        values: per kWh, in any unit: results are in that unit.
        period: the series repeats after this many seconds, in both directions; infinity = never.

    Raises:
        ConfigError: times do not ascend, a value is not finite, or time 0 is not covered.

    Example:
        >>> night_and_day = EnergyRate(times=[0, 21_600, 79_200], values=[0.1, 0.3, 0.1],
        ...                            period=86_400)
    """

    times: FloatColumn | Sequence[float]  # (num_steps,)
    values: FloatColumn | Sequence[float]  # (num_steps,)
    period: float = math.inf

    def __post_init__(self) -> None:
        times, values = (np.array(each, dtype=np.float64) for each in (self.times, self.values))
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "values", values)
        if times.ndim != 1 or times.shape != values.shape or not times.size:
            raise ConfigError(
                f"an energy rate has {times.size} times and {values.size} values",
                expected="one time and one value for each step, and at least one step",
            )
        good = np.isfinite(times) & np.isfinite(values)
        good[1:] &= times[1:] > times[:-1]
        if not good.all():
            step = int(np.argmin(good))
            raise ConfigError(
                f"time {times[step]:g} with value {values[step]:g}",
                where=f"step {step + 1} of an energy rate",
                expected="finite numbers, each time after the one before",
            )
        if math.isnan(self.period) or self.period <= times[-1] - times[0]:
            raise ConfigError(
                f"the period of an energy rate is {self.period:g}",
                expected=f"more than the span of its times, {times[-1] - times[0]:g} seconds",
            )
        if math.isinf(self.period) and times[0] > 0:
            raise ConfigError(
                f"an energy rate begins at {times[0]:g}",
                expected="0 or earlier on the workload's clock",
                hint="subtract the time of the workload's zero, or add `energy_period`",
            )

    @classmethod
    def from_csv(
        cls, path: Path | str, *, origin: float = 0.0, period: float = math.inf
    ) -> EnergyRate:
        """Read a rate from a CSV file with the columns `time` and `value`; others are ignored.

        Args:
            path: the file; its first line names the columns.
            origin: the file's time at the zero of the workload's clock.
            period: see the class.

        Raises:
            ConfigError: the file cannot be read, or a line is not a step.
        """
        times, values = _read(Path(path))
        try:
            return cls(times=times - origin, values=values, period=period)
        except ConfigError as error:
            raise ConfigError(
                error.what, where=str(path), expected=error.expected, hint=error.hint
            ) from None

    @classmethod
    def for_workload(
        cls, path: Path | str, workload: Workload, *, period: float = math.inf
    ) -> EnergyRate:
        """Read a rate from a CSV file whose times are on the workload's clock, or Unix times.

        Times that begin in 1973 or later (`UNIX_TIMES`) are Unix times: they are put on the clock
        of a workload whose trace says when it was recorded.

        Raises:
            ConfigError: as `from_csv`; or the times are Unix times and the workload has no date.
        """
        first = float(_read(Path(path))[0][0])
        origin = 0.0
        if first >= UNIX_TIMES:
            recorded = workload.provenance.get("origin_unix_time")
            if recorded is None:
                raise ConfigError(
                    f"its times are Unix times, from {first:.0f} on, but {workload.name} has no "
                    "date to match them with",
                    where=str(path),
                    expected="seconds on the workload's clock, beginning at 0 or earlier",
                    hint="subtract the time of the workload's zero",
                )
            origin = float(recorded)
        return cls.from_csv(path, origin=origin, period=period)

    def shifted(self, seconds: float) -> EnergyRate:
        """Return the rate on a clock whose zero is `seconds` later."""
        return EnergyRate(np.asarray(self.times) - seconds, self.values, self.period)

    def integral(self, times: FloatColumn) -> FloatColumn:
        """Return the integral of the rate up to each time, up to a constant (value x seconds)."""
        begins, values = np.asarray(self.times), np.asarray(self.values)
        added_up = np.append(0.0, np.cumsum(np.diff(begins) * values[:-1]))
        since = times - begins[0]
        before: FloatColumn | float = 0.0
        if math.isfinite(self.period):
            rounds = np.floor(since / self.period)
            since = since - rounds * self.period
            last = begins[-1] - begins[0]
            before = rounds * (added_up[-1] + values[-1] * (self.period - last))
        step = np.searchsorted(begins - begins[0], since, side="right") - 1
        step = np.maximum(step, 0)
        found: FloatColumn = (
            before + added_up[step] + values[step] * (since - (begins[step] - begins[0]))
        )
        return found


def _read(path: Path) -> tuple[FloatColumn, list[float]]:
    """Return the times and values of a file."""
    times: list[float] = []
    values: list[float] = []
    for line, time, value in _steps(path):
        if times and not time > times[-1]:
            raise ConfigError(
                f"time {time:g} is not after {times[-1]:g}",
                where=f"{path}, line {line}",
                expected="ascending times",
            )
        times.append(time)
        values.append(value)
    if not times:
        raise ConfigError(
            "the file has no step", where=str(path), expected="a line below the header"
        )
    return np.array(times), values


def _steps(path: Path) -> Iterator[tuple[int, float, float]]:
    """Yield (line, time, value) of each line of the file that is not empty."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = [name.strip().lower() for name in next(lines, [])]
            missing = [name for name in _COLUMNS if name not in header]
            if missing:
                raise ConfigError(
                    f"no column {missing[0]!r}",
                    where=f"{path}, line 1",
                    expected="a header with the columns time and value",
                )
            for cells in lines:
                if not any(map(str.strip, cells)):
                    continue
                where = f"{path}, line {lines.line_num}"
                if len(cells) != len(header):
                    raise ConfigError(
                        f"the line has {len(cells)} cell{'' if len(cells) == 1 else 's'}",
                        where=where,
                        expected=f"{len(header)}, as in the first line",
                    )
                time, value = (_number(cells[header.index(name)], name, where) for name in _COLUMNS)
                yield lines.line_num, time, value
    except OSError as error:
        raise ConfigError(f"cannot read the file: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            "not a UTF-8 text file",
            where=f"{path}, byte {error.start + 1}",
            expected="text in UTF-8",
        ) from None
    except csv.Error as error:
        raise ConfigError(
            f"not CSV: {error}", where=f"{path}, line {lines.line_num}", expected="lines of cells"
        ) from None


def _number(text: str, name: str, where: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        expected = "seconds" if name == "time" else "a number per kWh"
        raise ConfigError(f"{name} is {text!r}", where=where, expected=expected)
    return found
