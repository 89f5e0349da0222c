"""Search spaces: a scheduler's text with open parameters, and the range of each.

    order     [log2(estimate + 1) + {g} * log2(gpus + 1) - {w} * log2(wait + 60)]+easy
    g = 0:3   w = 0:2

Every point of a space is a scheduler that can be used anywhere. Numbers are rounded to three
figures before a scheduler runs, so that its text is exactly what was measured.
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import TYPE_CHECKING

import numpy as np

from berthline.errors import ConfigError, unknown_name
from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

_OPEN = re.compile(r"\{([a-z_][a-z_0-9]*)\}", re.IGNORECASE)
_RANGE = "NAME=LOW:HIGH[:log][:START], such as T=600:36000:log"


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a search space.

    Attributes:
        name: as in the text, without braces.
        low: lowest value.
        high: highest value.
        start: where the search begins.
        is_log: whether the scale is logarithmic.
        meaning: what it does.
    """

    name: str
    low: float
    high: float
    start: float
    is_log: bool = False
    meaning: str = ""

    def value(self, share: float) -> float:
        """Return the value at a share of the range, rounded to three figures."""
        share = min(max(share, 0.0), 1.0)
        if self.is_log:
            value = math.exp(
                math.log(self.low) + share * (math.log(self.high) - math.log(self.low))
            )
        else:
            value = self.low + share * (self.high - self.low)
        return min(max(float(f"{value:.3g}"), self.low), self.high)

    def share(self, value: float) -> float:
        """Return the position of a value in the range, as a share."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """A family of schedulers.

    Attributes:
        name: its name.
        text: a scheduler with `{name}` for each open parameter.
        parameters: the open parameters.
        meaning: what is tuned.
    """

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    meaning: str = ""

    @property
    def start(self) -> npt.NDArray[np.float64]:
        """Where the search begins, as shares of the ranges."""
        return np.array([p.share(p.start) for p in self.parameters])

    @property
    def preempts(self) -> bool:
        """Whether its schedulers preempt jobs."""
        return Scheduler.parse(self.scheduler(self.start)).preemption is not None

    def values(self, point: Iterable[float]) -> dict[str, float]:
        """Return the parameters at a point, which is given as shares of the ranges."""
        return {p.name: p.value(x) for p, x in zip(self.parameters, point, strict=True)}

    def scheduler(self, point: Iterable[float]) -> str:
        """Return the scheduler at a point."""
        return self.written(self.values(point))

    def written(self, values: Mapping[str, float]) -> str:
        """Return the scheduler with these numbers."""
        text = _OPEN.sub(lambda match: _digits(values[match[1]]), self.text)
        # "+ -" is "-"; a change of sign is exact.
        return text.replace("+ -", "- ").replace("- -", "+ ")

    def check(self) -> None:
        """Check that the start is a scheduler.

        Raises:
            ConfigError: an open parameter has no range, or a range has no open parameter.
            PolicyError: the text is not a scheduler.
        """
        named = set(_OPEN.findall(self.text))
        ranged = {p.name for p in self.parameters}
        if not named:
            raise ConfigError(
                "no number is left open",
                where=self.text,
                expected="names in braces, such as [estimate * gpus ** {p}]+easy",
            )
        if named != ranged:
            missing, unused = sorted(named - ranged), sorted(ranged - named)
            raise ConfigError(
                f"no range for {', '.join(missing)}"
                if missing
                else f"{', '.join(unused)} is not in the text",
                where=self.text,
                expected=f"`params` for every name in braces: {_RANGE}",
            )
        Scheduler.parse(self.scheduler(self.start))


_LONG = Parameter("T", 60.0, 86400.0, 14400.0, is_log=True, meaning="longer jobs are held")
_SHARE = Parameter("r", 0.0, 0.6, 0.1, meaning="share of GPUs they must leave free")
_QUEUE = Parameter("q", -0.2, 0.2, 0.0, meaning="added to r per doubling of the queue")
_LENGTH = Parameter("l", -0.1, 0.1, 0.0, meaning="added to r per doubling of the job's length")
_SIZE = Parameter("g", 0.0, 1.5, 0.5, meaning="weight of the size: 0 is sjf, 1 smallest area")

SPACES: dict[str, SearchSpace] = {
    space.name: space
    for space in (
        SearchSpace(
            "order",
            "[log2(estimate + 1) + {g} * log2(gpus + 1) - {w} * log2(wait + 60)"
            " + {h} * gpus / total_gpus]+easy",
            (
                Parameter("g", -1.0, 3.0, 1.0, meaning="weight of the size; the estimate's is 1"),
                Parameter("w", 0.0, 2.0, 0.0, meaning="weight of the wait"),
                Parameter("h", -8.0, 8.0, 0.0, meaning="weight of the share of the cluster"),
            ),
            "a log-linear order with EASY; starts at smallest-area",
        ),
        SearchSpace(
            "gate",
            "[estimate * gpus ** {g}]+easy?[where(estimate > {T}, pool_free_gpus - gpus"
            " - pool_total_gpus * clip({r} + {q} * log2(1 + queued_gpus / total_gpus)"
            " + {l} * log2(estimate / {T}), 0, 0.9), 0)]",
            (_SIZE, _LONG, _SHARE, _QUEUE, _LENGTH),
            "a gate on EASY; starts at an express lane",
        ),
        SearchSpace(
            "hold",
            "[estimate * gpus ** {g}]+easy@best-fit?[where(estimate > {T}, pool_free_gpus - gpus"
            " - pool_total_gpus * clip({r} + {l} * log2(estimate / {T}) + {s} * log2(gpus + 1)"
            " - {w} * log2(1 + wait / estimate) + {q} * log2(1 + queued_gpus / total_gpus)"
            " + {d} * log2(1 + queued_work / total_gpus / 3600)"
            " + {b} * log2(1 + arrival_burstiness) + {f} * fragmentation, 0, 0.9), 0)]",
            (
                dataclasses.replace(_SIZE, start=1.0),
                dataclasses.replace(_LONG, start=3600.0),
                _SHARE,
                dataclasses.replace(_LENGTH, start=0.02),
                Parameter("s", -0.1, 0.1, 0.0, meaning="added to r per doubling of the job's size"),
                Parameter("w", 0.0, 0.4, 0.08, meaning="subtracted from r as the job waits"),
                dataclasses.replace(_QUEUE, start=-0.04),
                Parameter("d", -0.1, 0.1, 0.0, meaning="added to r per doubling of queued work"),
                Parameter("b", -0.1, 0.1, 0.0, meaning="added to r as arrivals become bursty"),
                Parameter("f", -0.3, 0.3, 0.0, meaning="added to r as nodes are fragmented"),
            ),
            "a gate on EASY that reads the job, its wait, the queue, bursts and the nodes",
        ),
        SearchSpace(
            "lane",
            "[estimate * gpus ** {g}]+easy?express-lane:T={T}:r={r}",
            (_SIZE, _LONG, _SHARE),
            "the express lane: its two parameters and the order",
        ),
        SearchSpace(
            "preempt",
            "fcfs+skip!index:a={a}:s={s}:w={w}:margin={margin}:min_run={min_run}",
            (
                Parameter("a", 0.0, 3.0, 1.0, meaning="weight of attained service"),
                Parameter("s", -1.0, 3.0, 0.0, meaning="weight of the size"),
                Parameter("w", 0.0, 2.0, 0.5, meaning="weight of the wait"),
                Parameter("margin", 0.0, 8.0, 2.0, meaning="lead needed to preempt a job"),
                Parameter(
                    "min_run",
                    30.0,
                    7200.0,
                    60.0,
                    is_log=True,
                    meaning="seconds before a job may be preempted",
                ),
            ),
            "which job preempts which, without run times",
        ),
    )
}

_GATE = SPACES["hold"]
SPACES["hold-preempt"] = SearchSpace(
    "hold-preempt",
    # The length of a preempted job is its remaining time.
    _GATE.text.replace("estimate", "remaining")
    + "![log2(remaining + {c}) + {a} * log2(gpus + 1) - {v} * log2(wait + 60)]"
    ":margin={margin}:min_run={min_run}",
    (
        *_GATE.parameters,
        Parameter(
            "c", 1.0, 20_000.0, 10.0, is_log=True, meaning="remaining times below c nearly tie"
        ),
        Parameter("a", -1.0, 3.0, 0.5, meaning="weight of the size in the index"),
        Parameter("v", 0.0, 1.0, 0.0, meaning="weight of the wait in the index"),
        Parameter("margin", 0.0, 8.0, 0.5, meaning="lead needed to preempt a job"),
        Parameter(
            "min_run",
            1.0,
            7200.0,
            10.0,
            is_log=True,
            meaning="seconds before a job may be preempted",
        ),
    ),
    "the gate of hold, and which job preempts which, by remaining run times",
)


def read_space(name: str | None, text: str | None, ranges: Iterable[str]) -> SearchSpace:
    """Return a named space, or one for a given text.

    Args:
        name: of SPACES; `ranges` may change its ranges.
        text: a scheduler with names in braces.
        ranges: one `NAME=LOW:HIGH[:log][:START]` for each name.

    Raises:
        ConfigError: there is no such space, or a range is malformed.
        PolicyError: the text is not a scheduler.
    """
    given = [read_parameter(entry) for entry in ranges]
    names = [p.name for p in given]
    for twice in {x for x in names if names.count(x) > 1}:
        raise ConfigError(f"parameter {twice} is given twice", expected="each parameter once")
    if text is not None:
        space = SearchSpace("own", text, tuple(given), "a scheduler given as text")
    else:
        if name not in SPACES:
            what, expected, hint = unknown_name("search space", str(name), SPACES)
            raise ConfigError(what, expected=expected, hint=hint)
        space = SPACES[name]
        changed = {p.name: p for p in given}
        for other in changed.keys() - {p.name for p in space.parameters}:
            raise ConfigError(
                f"the space {name!r} has no parameter {other!r}",
                expected="one of " + ", ".join(p.name for p in space.parameters),
            )
        parameters = tuple(changed.get(p.name, p) for p in space.parameters)
        space = dataclasses.replace(space, parameters=parameters)
    space.check()
    return space


def read_parameter(text: str) -> Parameter:
    """Return the parameter for `NAME=LOW:HIGH[:log][:START]`.

    Raises:
        ConfigError: it is malformed.

    Example:
        >>> read_parameter("T=100:10000:log").start
        1000.0
    """
    name, equals, rest = (part.strip() for part in text.partition("="))
    parts = rest.split(":")
    is_log = "log" in parts
    try:
        numbers = [float(part) for part in parts if part != "log"]
        low, high = numbers[:2]
        middle = math.sqrt(low * high) if is_log and low > 0 else (low + high) / 2
        (start,) = numbers[2:] or [middle]
    except ValueError:
        raise ConfigError(f"cannot read the range {text!r}", expected=_RANGE) from None
    is_good = math.isfinite(low) and math.isfinite(high) and low < high and low <= start <= high
    if not equals or not _OPEN.fullmatch(f"{{{name}}}") or not is_good or (is_log and low <= 0):
        raise ConfigError(
            f"cannot read the range {text!r}",
            expected=f"{_RANGE}; LOW below HIGH, START between them, LOW above 0 with log",
        )
    return Parameter(name, low, high, start, is_log)


def _digits(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
