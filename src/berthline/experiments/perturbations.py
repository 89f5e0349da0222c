"""Perturbations: a workload and its cluster with one thing changed.

The unchanged pair is the *clean twin*: the same jobs, in the same order, so that both can be
compared run by run. A perturbation is a text, `KIND:VALUE`:

    arrival-noise:10%                 every time between submissions changes by up to 10 %
    run-times:x2, run-times:lognormal run times change, what is stated about them does not
    estimates:x2, estimates:lognormal what is stated changes, run times do not
    phase-shift:6h                    the peak of the day comes 6 h later
    bursts:x2                         bursts of submissions are twice as fast
    capacity-dip:30%/6h               30 % of the nodes are down for 6 h
    drift:base+bursty+diurnal         three phases of submissions, each with a shape of its own

Every kind has a stream of random numbers of its own, counted by job or node. So kinds do not change
each other's draws, and a stronger perturbation of a kind is a weaker one with larger numbers.
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from berthline import _native
from berthline.errors import ConfigError, unknown_name
from berthline.model.limits import Outage
from berthline.model.workload import Workload
from berthline.model.workload_columns import COLUMN_TYPES
from berthline.random_streams import stream_key, uniform_column
from berthline.traces.generators.arrivals import DAY, HOUR, Cycle, diurnal, on_off

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.model.cluster import Cluster

Times = npt.NDArray[np.float64]

BEGINS = 1 / 3
"""A capacity dip, and the second phase of a drift, begin after this share of the submissions: of
the time in which jobs are submitted, and of the jobs."""

SIGMA = 0.7
"""Of lognormal factors, whose mean is 1."""

JOBS_OF_SLOT, BURST = 10, 1.5
"""Submissions are counted in slots of this many jobs on average; with more than 1.5 times as many,
a slot belongs to a burst."""

PHASES = ("base", "bursty", "bursty-high", "diurnal", "shifted-diurnal")
_HIGHEST_DEPTH = 0.95
_TURNS = 4  # of high and low rates in a bursty phase
_FASTER = 2.0  # the rate of a bursty-high phase, relative to the others


class Kind(NamedTuple):
    """A kind of perturbation.

    Attributes:
        meaning: what it changes, in one sentence.
        form: of its value.
        shipped: the values of the suite `robustness`.
        pattern: that its value matches.
        change: makes the perturbed pair.
        begins: when it begins, as a share of the time of submissions.
    """

    meaning: str
    form: str
    shipped: tuple[str, ...]
    pattern: re.Pattern[str]
    change: Callable[[re.Match[str], Workload, Cluster, int], tuple[Workload, Cluster]]
    begins: float = 0.0


def perturb(text: str, workload: Workload, cluster: Cluster, seed: int) -> tuple[Workload, Cluster]:
    """Return a workload and a cluster with one thing changed.

    Args:
        text: the perturbation, `KIND:VALUE`; empty = none.
        workload: the clean jobs.
        cluster: the clean nodes.
        seed: selects the random numbers; the same for all perturbations of a twin.

    Raises:
        ConfigError: the perturbation is unknown, or cannot be applied here.

    Example:
        >>> from berthline import Cluster, generate
        >>> cluster = Cluster.parse("uniform:10x1:V100")
        >>> jobs, dipped = perturb("capacity-dip:30%/1h", generate(cluster=cluster), cluster, 0)
        >>> len(dipped.outages[0].nodes), dipped.outages[0].up - dipped.outages[0].down
        (3, 3600.0)
    """
    if not text:
        return workload, cluster
    kind, value = _parsed(text)
    jobs, nodes = kind.change(value, workload, cluster, seed)
    if jobs is not workload:
        perturbation = {"text": text, "seed": seed}
        provenance = {**jobs.provenance, "perturbation": perturbation}
        jobs = dataclasses.replace(jobs, provenance=provenance)
    return jobs, nodes


def check_perturbation(text: str) -> None:
    """Check that a text is a perturbation, or empty.

    Raises:
        ConfigError: it is not.
    """
    if text:
        _parsed(text)


def begins_at(text: str) -> float:
    """Return when a perturbation begins, as a share of the time in which jobs are submitted."""
    return _parsed(text)[0].begins if text else 0.0


def kind_of(text: str) -> str:
    """Return the kind of a perturbation."""
    return text.partition(":")[0]


def _parsed(text: str) -> tuple[Kind, re.Match[str]]:
    name, _, value = text.partition(":")
    kind = KINDS.get(name)
    if kind is None:
        what, expected, hint = unknown_name("perturbation", name, KINDS)
        raise ConfigError(what, where=f"perturbation {text!r}", expected=expected, hint=hint)
    match = kind.pattern.fullmatch(value)
    if match is None or not _is_possible(match):
        raise ConfigError(
            f"the value of {name} is {value!r}",
            where=f"perturbation {text!r}",
            expected=kind.form,
            hint=f"such as {name}:{_nearest(value, kind.shipped)}",
        )
    return kind, match


def _is_possible(match: re.Match[str]) -> bool:
    """Whether the numbers of a value are in range: shares below 100 %, others above 0."""
    groups = match.groupdict()
    if (share := groups.get("percent")) is not None and not 0 < float(share) < 100:
        return False
    others = [groups[name] for name in ("factor", "hours", "period") if groups.get(name)]
    return all(0 < float(number) <= 1e6 for number in others)


def _nearest(value: str, shipped: tuple[str, ...]) -> str:
    _, _, hint = unknown_name("value", value, shipped)
    near = re.search(r"'(.+)'", hint)
    return near[1] if near else shipped[0]


def _changed(workload: Workload, **columns: npt.NDArray[Any]) -> Workload:
    """Return the jobs with some columns replaced, in the same order.

    What was recorded when they ran is left out: it happened to the clean jobs.
    """
    own = {name: columns.get(name, getattr(workload, name)).copy() for name in COLUMN_TYPES}
    if "submit" in columns:
        own["deadline"] += own["submit"] - workload.submit
    return Workload.from_columns(
        **own,
        user_names=workload.user_names,
        pool_names=workload.pool_names,
        gpu_type_sets=workload.gpu_type_sets,
        ran_on_types=workload.ran_on_types,
        reference_type=workload.reference_type,
        names=workload.names,
        name=workload.name,
        provenance=workload.provenance,
        rebase=False,  # outages and energy rates are on this clock
    )


def _draws(seed: int, kind: str, size: int) -> Times:
    return uniform_column(stream_key(seed, f"perturb/{kind}"), size)


# --- arrivals ------------------------------------------------------------------------------------


def _arrival_noise(
    value: re.Match[str], workload: Workload, cluster: Cluster, seed: int
) -> tuple[Workload, Cluster]:
    """Formula: gap' = gap x (1 + p u), u uniform in [-1, 1) for each job; the first stays."""
    spread = float(value["percent"]) / 100
    factor = 1 + spread * (2 * _draws(seed, "arrival-noise", len(workload)) - 1)
    gaps = np.diff(workload.submit) * factor[1:]
    submit = workload.submit[0] + np.concatenate(([0.0], np.cumsum(gaps)))
    return _changed(workload, submit=submit), cluster


def _phase_shift(
    value: re.Match[str],
    workload: Workload,
    cluster: Cluster,
    seed: int,  # noqa: ARG001 - one signature
) -> tuple[Workload, Cluster]:
    """Formula: t' = L(s, L(0, t)), L(0, .) the times without the daily cycle.

    The cycle is the first harmonic of the submissions in whole days: 1 + d cos(2 pi t / day - a).
    It is taken out and put back with its peak later. A trace is treated like generated jobs.
    """
    period = float(value["period"] or DAY)
    submit = workload.submit
    whole = math.floor(submit[-1] / period) * period
    if not whole:
        raise ConfigError(
            f"jobs are submitted for {submit[-1]:,.0f} s",
            where=f"perturbation 'phase-shift:{value[0]}' of {workload.name}",
            expected=f"a whole period of {period:,.0f} s: a shorter one has no daily cycle",
            hint=f"another period: phase-shift:{value['hours']}h:period=SECONDS",
        )
    mean = np.exp(-2j * np.pi / period * submit[submit < whole]).mean()
    depth = min(2 * abs(mean), _HIGHEST_DEPTH)
    place = 0.25 + np.angle(mean) / (2 * np.pi)
    later = float(value["hours"]) * HOUR / DAY
    even = diurnal(period=period, depth=depth, shift=place).unbend(submit)
    shifted = diurnal(period=period, depth=depth, shift=place - later).bend(even)
    return _changed(workload, submit=np.maximum.accumulate(shifted)), cluster


def _bursts(
    value: re.Match[str],
    workload: Workload,
    cluster: Cluster,
    seed: int,  # noqa: ARG001
) -> tuple[Workload, Cluster]:
    """Formula: t' = a + (t - a) / k for jobs of a burst that begins at a; others stay.

    So a burst is k times as fast, and a lull follows it: the load does not change.
    """
    factor = float(value["factor"])
    submit = workload.submit.copy()
    slots = max(1, len(submit) // JOBS_OF_SLOT)
    edges = np.linspace(submit[0], submit[-1], slots + 1)
    if edges[-1] == edges[0]:
        return workload, cluster  # all at once
    counts, _ = np.histogram(submit, edges)
    dense = np.concatenate(([False], counts > BURST * len(submit) / slots, [False]))
    changes = np.flatnonzero(dense[1:] != dense[:-1])
    for first, last in changes.reshape(-1, 2).tolist():
        inside = (submit >= edges[first]) & (submit < edges[last])
        submit[inside] = edges[first] + (submit[inside] - edges[first]) / factor
    return _changed(workload, submit=submit), cluster


def _drift(
    value: re.Match[str],
    workload: Workload,
    cluster: Cluster,
    seed: int,  # noqa: ARG001
) -> tuple[Workload, Cluster]:
    """Give each third of the jobs the shape of a phase; each lasts as long as in the clean twin.

    Bursty is four turns of x3 and x0.3, diurnal one sine. Bursty-high lasts half as long.
    """
    submit = workload.submit
    jobs = len(submit)
    bounds = [jobs * number // 3 for number in range(4)]
    ends = np.append(submit, submit[-1] + (submit[-1] - submit[0]) / max(1, jobs - 1))
    moved, begin = np.empty(jobs), submit[0]
    for phase, first, last in zip(value[0].split("+"), bounds[:-1], bounds[1:], strict=True):
        length = ends[last] - ends[first]
        place = (submit[first:last] - ends[first]) / (length or 1.0)
        lasts = length / (_FASTER if phase == "bursty-high" else 1)
        cycle = _CYCLES.get(phase)
        moved[first:last] = begin + lasts * (place if cycle is None else cycle.bend(place))
        begin += lasts
    return _changed(workload, submit=np.maximum.accumulate(moved)), cluster


_BURSTS = on_off(high=3.0, low=0.3, seconds=0.5 / _TURNS)
_CYCLES: Mapping[str, Cycle] = {
    "bursty": _BURSTS,
    "bursty-high": _BURSTS,
    "diurnal": diurnal(period=1.0, depth=0.5),
    "shifted-diurnal": diurnal(period=1.0, depth=0.5, shift=0.25),
}


# --- what is known of jobs, and the jobs ---------------------------------------------------------


def _factors(value: re.Match[str], kind: str, jobs: int, seed: int) -> Times | float:
    """Return factors: one for all, or exp(s z - s^2 / 2) with z standard normal for each job."""
    if value["factor"]:
        return float(value["factor"])
    normal = np.maximum(_draws(seed, kind, jobs), 2.0**-53)
    _native.normal_quantiles(normal, normal)
    return np.asarray(np.exp(SIGMA * normal - SIGMA**2 / 2))


def _run_times(
    value: re.Match[str], workload: Workload, cluster: Cluster, seed: int
) -> tuple[Workload, Cluster]:
    run = workload.run * _factors(value, "run-times", len(workload), seed)
    return _changed(workload, run=run), cluster


def _estimates(
    value: re.Match[str], workload: Workload, cluster: Cluster, seed: int
) -> tuple[Workload, Cluster]:
    if np.isnan(workload.estimate).all():
        raise ConfigError(
            "no job has an estimate",
            where=f"perturbation 'estimates:{value[0]}' of {workload.name}",
            expected="estimates to distort",
            hint=f"run-times:{value[0]} changes the run times themselves",
        )
    estimate = workload.estimate * _factors(value, "estimates", len(workload), seed)
    return _changed(workload, estimate=estimate), cluster


# --- nodes ---------------------------------------------------------------------------------------


def _capacity_dip(
    value: re.Match[str], workload: Workload, cluster: Cluster, seed: int
) -> tuple[Workload, Cluster]:
    """Take the nodes with the smallest draws: those of a small dip are among those of a large."""
    share, nodes = float(value["percent"]) / 100, cluster.num_nodes
    if nodes < 2:
        raise ConfigError(
            f"{cluster.name} has one node",
            where=f"perturbation 'capacity-dip:{value[0]}'",
            expected="two nodes or more: a dip leaves some of them",
            hint=f"as many GPUs on nodes of one each: uniform:{cluster.total_gpus}x1",
        )
    count = min(max(1, math.floor(share * nodes + 0.5)), nodes - 1)
    chosen = np.argsort(_draws(seed, "capacity-dip", nodes), kind="stable")[:count]
    first, last = float(workload.submit[0]), float(workload.submit[-1])
    down = first + BEGINS * (last - first)
    outage = Outage(
        down=down,
        up=down + float(value["hours"]) * HOUR,
        nodes=tuple(sorted(int(node) for node in chosen)),
    )
    return workload, dataclasses.replace(cluster, outages=(*cluster.outages, outage))


_NUMBER = r"\d+(?:\.\d+)?"
_FACTOR = rf"x(?P<factor>{_NUMBER})"
_DISTORTION = re.compile(rf"{_FACTOR}|(?P<lognormal>lognormal)")
_PHASE = "|".join(map(re.escape, PHASES))

KINDS: Mapping[str, Kind] = {
    "arrival-noise": Kind(
        "times between submissions change by up to this share, each on its own",
        "a share, such as 10%",
        ("5%", "10%", "20%"),
        re.compile(rf"(?P<percent>{_NUMBER})%"),
        _arrival_noise,
    ),
    "run-times": Kind(
        "run times change, estimates do not",
        "a factor, such as x2; or lognormal",
        ("x0.5", "x2", "lognormal"),
        _DISTORTION,
        _run_times,
    ),
    "estimates": Kind(
        "estimates change, run times do not",
        "a factor, such as x2; or lognormal",
        ("lognormal",),
        _DISTORTION,
        _estimates,
    ),
    "phase-shift": Kind(
        "the peak of the daily cycle comes later",
        "hours of a day, such as 6h; or 6h:period=3600 for a cycle of 3,600 s in 24 hours of 150 s",
        ("3h", "6h", "12h"),
        re.compile(rf"(?P<hours>{_NUMBER})h(?::period=(?P<period>{_NUMBER}))?"),
        _phase_shift,
    ),
    "bursts": Kind(
        "bursts of submissions are this many times as fast, with a lull after each",
        "a factor, such as x2",
        ("x1.5", "x2", "x3"),
        re.compile(_FACTOR),
        _bursts,
    ),
    "capacity-dip": Kind(
        "this share of the nodes is down for some hours, after a third of the submissions",
        "a share and hours, such as 30%/6h",
        ("10%/1h", "30%/1h", "50%/1h", "10%/6h", "30%/6h", "50%/6h"),
        re.compile(rf"(?P<percent>{_NUMBER})%/(?P<hours>{_NUMBER})h"),
        _capacity_dip,
        BEGINS,
    ),
    "drift": Kind(
        "submissions have another shape in each third of the jobs",
        f"three of {', '.join(PHASES)}, joined by +",
        (
            "base+bursty+diurnal",
            "diurnal+shifted-diurnal+bursty",
            "base+bursty-high+diurnal",
        ),
        re.compile(rf"(?:{_PHASE})\+(?:{_PHASE})\+(?:{_PHASE})"),
        _drift,
        BEGINS,
    ),
}
"""Every kind of perturbation by its name."""
