"""How a fitted generator draws its jobs: submissions, then users, then sizes and run times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.model.workload import WHOLE_GPU
from berthline.traces.draws import Draws, Gap, Table, normal_quantile
from berthline.traces.fitted_arrivals import (
    LONG_EPISODE,
    Indices,
    at_places,
    burst_work,
    draw_submissions,
    heavy_variance,
    last_start,
    normal_share,
    starts_of,
)
from berthline.traces.gpu_mix import limits_of

if TYPE_CHECKING:
    from berthline.traces.episodes import Columns
    from berthline.traces.fitted import FittedGenerator, UserHabits

JITTER = 0.15
"""Standard deviation of a repeated run time about the one it repeats, in normal ranks."""

SERIES_LEVELS = np.concatenate(
    (np.linspace(0.0, 0.9, 19), 1.0 - np.geomspace(0.07, 0.002, 8), [1.0])
)
"""Probabilities at which quantiles of the length of series are kept."""

_LONGEST_RUN = 1e9
_FARTHEST_OFF = 2.0
_FARTHEST = 8.0  # normal points


def draw_columns(fitted: FittedGenerator, draws: Draws, mean_gap: Gap) -> Columns:
    """Return the columns of some episodes.

    Of long ones the load is what the mean gap makes it, however heavy the users drawn happen to be:
    they are drawn once more, with another gap.
    """
    columns = draw_once(fitted, draws, mean_gap)
    is_long = columns["submit"][:, -1] >= LONG_EPISODE
    if not is_long.any():
        return columns
    off = work_of(columns).mean(axis=1) / fitted.mean_work
    off = np.where(is_long, np.clip(off, 1 / _FARTHEST_OFF, _FARTHEST_OFF), 1.0)
    return draw_once(fitted, draws, mean_gap * off[:, None])


def work_of(columns: Columns) -> Table:
    """Return the GPU-seconds of jobs."""
    part = columns["gpu_milli"] / WHOLE_GPU if "gpu_milli" in columns else 1.0
    return np.asarray(columns["run"] * columns["gpus"] * part)


def draw_once(fitted: FittedGenerator, draws: Draws, mean_gap: Gap) -> Columns:
    """Return the columns of some episodes, with mean gaps as given for all or for each."""
    submit, heavy = draw_submissions(fitted, draws, mean_gap)
    habit, user = draw_users(fitted, draws)
    size_class, ranks, steady = _draw_ranks(fitted, draws, heavy, habit, user)
    run = _run_times(fitted, size_class, ranks)
    columns: dict[str, npt.NDArray[Any]] = {
        "submit": submit,
        "run": run,
        "gpus": _gpus(fitted, draws, size_class, steady),
        "estimate": _stated(fitted, draws, run, steady),
        "user": user.astype(np.int32),
    }
    if fitted.requests:
        which = _requests(fitted, at_places(draws.uniform("request"), steady), habit, size_class)
        columns.update(_asked(fitted, which, columns))
    return columns


def _with_heavy(fitted: FittedGenerator, own: Table, heavy: Table) -> Table:
    """Return standard normal numbers, of which a part is how heavy the time is."""
    score = math.sqrt(max(0.0, 1.0 - heavy_variance(fitted))) * own + heavy
    if fitted.bursts.work == 0:
        return score
    # Jobs in bursts and others make two normal distributions; of both, each has its share.
    grid = np.linspace(-_FARTHEST, _FARTHEST, 1201)
    scale = math.sqrt(1.0 - fitted.bursts.work**2)
    alone, together = (normal_share((grid - mean) / scale) for mean in burst_work(fitted.bursts))
    share = (1.0 - fitted.bursts.share) * alone + fitted.bursts.share * together
    return np.interp(score, grid, normal_quantile(share))


def draw_users(fitted: FittedGenerator, draws: Draws) -> tuple[Indices, Indices]:
    """Return each job's habits and user."""
    counts = np.array([person.count for person in fitted.users])
    lengths = np.array([person.series for person in fitted.users])
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    limits, _ = limits_of(series_shares(fitted.users))
    habit = np.searchsorted(limits, draws.uniform("user"), side="right")
    user = first[habit] + (draws.uniform("user of many") * counts[habit]).astype(np.intp)
    length = _interpolated(lengths, habit, draws.uniform("series")) * fitted.series_scale
    # Rounded by chance, so that the mean stays.
    length = np.maximum(1.0, np.floor(length + draws.uniform("series end")))
    start = starts_of(length.astype(np.intp))
    return at_places(habit, start), at_places(user, start)


def series_shares(users: list[UserHabits]) -> npt.NDArray[np.float64]:
    """Return which part of all series is a user's; the user's share is one of jobs."""
    shares = np.array([person.share for person in users])
    even = (np.arange(4096) + 0.5) / 4096
    mean = np.array([np.interp(even, SERIES_LEVELS, person.series).mean() for person in users])
    return np.asarray(shares / mean / (shares / mean).sum())


def _interpolated(tables: npt.NDArray[np.float64], which: Indices, u: Table) -> Table:
    """Return quantiles at `u` of one of several distributions for each place."""
    place = np.clip(np.searchsorted(SERIES_LEVELS, u, side="right") - 1, 0, len(SERIES_LEVELS) - 2)
    low, high = SERIES_LEVELS[place], SERIES_LEVELS[place + 1]
    start, end = tables[which, place], tables[which, place + 1]
    return np.asarray(start + (end - start) * (u - low) / (high - low))


def _draw_ranks(
    fitted: FittedGenerator,
    draws: Draws,
    heavy: Table,
    habit: Indices,
    user: Indices,
) -> tuple[Indices, Table, Indices]:
    """Return each job's size class, its run time's normal rank, and the job whose it repeats."""
    mix = np.zeros((len(fitted.users), len(fitted.classes)))
    for number, person in enumerate(fitted.users):
        for which, share in person.classes.items():
            mix[number, which] = share
    limits = np.cumsum(mix / mix.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    u = draws.uniform("gpus")
    size_class = np.zeros(u.shape, np.intp)
    for column in limits.T:
        size_class += u >= column[habit]
    # In the order of (user, job), what a user repeats comes just before.
    order = np.argsort(user, axis=1, kind="stable")
    back = np.argsort(order, axis=1, kind="stable")
    in_order = at_places(user, order)
    is_first = np.ones(user.shape, np.bool_)
    is_first[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    chance = at_places(draws.uniform("repeat"), order)
    anew = last_start(is_first | (chance >= fitted.repeat_size))
    size_origin = at_places(at_places(order, anew), back)
    anew = last_start(is_first | (chance >= fitted.repeat_run))
    steady = at_places(at_places(order, anew), back)
    own = math.sqrt(1 - JITTER**2) * at_places(draws.normal("run"), steady)
    own += JITTER * draws.normal("jitter")
    own = _with_heavy(fitted, own, heavy)
    level = np.array([person.level for person in fitted.users])
    spread = np.array([person.spread for person in fitted.users])
    ranks = level[habit] + spread[habit] * own
    return at_places(size_class, size_origin), ranks, steady


def _run_times(fitted: FittedGenerator, size_class: Indices, ranks: Table) -> Table:
    run = np.empty(ranks.shape)
    for number, kind in enumerate(fitted.classes):
        here = size_class == number
        run[here] = np.exp(np.interp(ranks[here], kind.ranks, np.log(kind.run)))
    return np.clip(np.rint(run), 1.0, _LONGEST_RUN)


def _gpus(
    fitted: FittedGenerator, draws: Draws, size_class: Indices, steady: Indices
) -> npt.NDArray[np.int32]:
    u = at_places(draws.uniform("size"), steady)
    gpus = np.empty(u.shape, np.int32)
    for number, kind in enumerate(fitted.classes):
        here = size_class == number
        limits = limits_of(np.array(kind.shares))[0]
        gpus[here] = np.array(kind.sizes)[np.searchsorted(limits, u[here], side="right")]
    return gpus


def _stated(fitted: FittedGenerator, draws: Draws, run: Table, steady: Indices) -> Table:
    u = at_places(draws.uniform("estimate"), steady)
    bounds = np.array([entry.run_up_to for entry in fitted.limits[:-1]])
    which = np.searchsorted(bounds, run, side="left")
    estimate = np.full(run.shape, np.nan)
    for number, entry in enumerate(fitted.limits):
        here = (which == number) & (u >= entry.missing)
        if entry.values and here.any():
            values = np.array(entry.values)
            place = (u[here] - entry.missing) / (1 - entry.missing) * len(values)
            estimate[here] = values[np.minimum(place.astype(np.intp), len(values) - 1)]
    return estimate


def _requests(fitted: FittedGenerator, u: Table, habit: Indices, size_class: Indices) -> Indices:
    """Return the number of each job's request: one of its user's for that size."""
    first = np.zeros((len(fitted.users), len(fitted.classes)), np.intp)
    count = np.zeros_like(first)
    numbers: list[int] = []
    for row, person in enumerate(fitted.users):
        for column, own in person.requests.items():
            first[row, column], count[row, column] = len(numbers), len(own)
            numbers += own
    place = first[habit, size_class] + (u * count[habit, size_class]).astype(np.intp)
    return np.array(numbers, np.intp)[place]


def _asked(fitted: FittedGenerator, which: Indices, columns: Columns) -> Columns:
    """Return the columns of requests."""
    table = np.array([msgspec.structs.astuple(request) for request in fitted.requests])
    pool, gpu_types, priority, cpus, memory, slack, milli = table.T
    gpus = np.maximum(columns["gpus"], 1)
    deadline = columns["submit"] + slack[which] * columns["run"]
    return {
        "pool": pool[which].astype(np.int32),
        "gpu_types": gpu_types[which].astype(np.int32),
        "priority": priority[which],
        "cpus": np.rint(cpus[which] * gpus).astype(np.int32),
        "memory_mib": np.rint(memory[which] * gpus).astype(np.int64),
        "deadline": np.where(slack[which] < 0, np.inf, deadline),
        "gpu_milli": np.where(columns["gpus"] == 1, milli[which], WHOLE_GPU).astype(np.int32),
    }
