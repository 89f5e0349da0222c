"""How a fitted generator draws its jobs: submissions, then users, then sizes and run times."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline import _native
from berthline.model.workload import WHOLE_GPU
from berthline.traces.generators.draws import (
    Draws,
    Gap,
    Table,
    exp,
    normal_quantile,
    number_of_limits,
)
from berthline.traces.generators.fitted.fitted_arrivals import (
    LONG_EPISODE,
    EvenTimes,
    Indices,
    bend_times,
    draw_even_times,
    flat_places,
    starts_of,
)

if TYPE_CHECKING:
    from berthline.traces.generators.episodes import Columns
    from berthline.traces.generators.fitted.fitted_tables import FittedTables

JITTER = 0.15
"""Standard deviation of a repeated run time around the original one, in normal ranks."""

_LONGEST_RUN = 1e9
_FARTHEST_OFF = 2.0


@dataclasses.dataclass(frozen=True)
class _People:
    """The users of the jobs, and all that does not depend on submission times."""

    habit: Indices
    user: Indices
    size_class: Indices
    own: Table  # the part of a run time's normal rank that does not depend on submission time
    steady: Indices  # the position in the table of the job whose run time it repeats


def draw_columns(tables: FittedTables, draws: Draws, mean_gap: Gap) -> Columns:
    """Return the columns of some episodes.

    Long episodes are drawn a second time with a corrected gap, so that their load does not depend
    on how heavy the drawn users are.
    """
    even, people = draw_even_times(tables, draws), _draw_people(tables, draws)
    columns = _columns(tables, draws, even, people, mean_gap)
    is_long = columns["submit"][:, -1] >= LONG_EPISODE
    if not is_long.any():
        return columns
    off = work_of(columns).mean(axis=1) / tables.fitted.mean_work
    off = np.where(is_long, np.clip(off, 1 / _FARTHEST_OFF, _FARTHEST_OFF), 1.0)
    return _columns(tables, draws, even, people, mean_gap * off[:, None])


def draw_once(tables: FittedTables, draws: Draws, mean_gap: Gap) -> Columns:
    """Return the columns of some episodes, with one mean gap for all or one for each."""
    even, people = draw_even_times(tables, draws), _draw_people(tables, draws)
    return _columns(tables, draws, even, people, mean_gap)


def work_of(columns: Columns) -> Table:
    """Return the GPU-seconds of jobs."""
    part = columns["gpu_milli"] / WHOLE_GPU if "gpu_milli" in columns else 1.0
    return np.asarray(columns["run"] * columns["gpus"] * part)


def _columns(
    tables: FittedTables, draws: Draws, even: EvenTimes, people: _People, mean_gap: Gap
) -> Columns:
    submit, heavy = bend_times(tables, draws, even, mean_gap)
    run = _run_times(tables, people, heavy)
    columns: dict[str, npt.NDArray[Any]] = {
        "submit": submit,
        "run": run,
        "gpus": _gpus(tables, draws, people),
        "estimate": _stated(tables, draws, run, people.steady),
        "user": people.user.astype(np.int32),
    }
    if tables.fitted.requests:
        columns.update(_asked(tables, _requests(tables, draws, people), columns))
    return columns


def _draw_people(tables: FittedTables, draws: Draws) -> _People:
    habit, user = _draw_users(tables, draws)
    size_class = tables.class_limits.reached(draws.uniform("gpus"), habit)
    chance = draws.uniform("repeat")
    fitted = tables.fitted
    same_size = _repeated(tables, user, chance, fitted.repeat_size)
    steady = _repeated(tables, user, chance, fitted.repeat_run)
    own = math.sqrt(1 - JITTER**2) * normal_quantile(draws.uniform("run").ravel().take(steady))
    own += JITTER * draws.normal("jitter")
    return _People(habit, user, size_class.ravel().take(same_size), own, steady)


def _draw_users(tables: FittedTables, draws: Draws) -> tuple[Indices, Indices]:
    """Return each job's habits and user."""
    habit = number_of_limits(draws.uniform("user"), tables.habits)
    among = draws.uniform("user of many") * tables.num_users.take(habit)
    user = tables.first_user.take(habit) + among.astype(np.intp)
    length = tables.series.at(draws.uniform("series"), habit) * tables.fitted.series_scale
    # Rounded randomly, so that the mean does not change.
    length = np.maximum(1.0, np.floor(length + draws.uniform("series end")))
    start = flat_places(starts_of(length.astype(np.intp)))
    return habit.ravel().take(start), user.ravel().take(start)


def _repeated(tables: FittedTables, user: Indices, chance: Table, likely: float) -> Indices:
    """Return for each job the position of the job it repeats: one of the same user, or itself."""
    origin = np.empty(user.shape, np.intp)
    _native.repeat_origins(user, chance, likely, int(tables.num_users.sum()), origin)
    return flat_places(origin)


def _run_times(tables: FittedTables, people: _People, heavy: Table) -> Table:
    score = math.sqrt(max(0.0, 1.0 - tables.heavy_variance)) * people.own + heavy
    if tables.with_bursts is not None:
        score = tables.with_bursts.at(score)
    ranks = tables.level.take(people.habit) + tables.spread.take(people.habit) * score
    run = exp(tables.run.at(ranks, people.size_class))
    np.rint(run, out=run)
    return np.clip(run, 1.0, _LONGEST_RUN, out=run)


def _gpus(tables: FittedTables, draws: Draws, people: _People) -> npt.NDArray[np.int32]:
    u = draws.uniform("size").ravel().take(people.steady)
    number = tables.size_limits.reached(u, people.size_class)
    number += tables.first_size.take(people.size_class)
    return tables.sizes.take(number)


def _stated(tables: FittedTables, draws: Draws, run: Table, steady: Indices) -> Table:
    u = draws.uniform("estimate").ravel().take(steady)
    which = number_of_limits(run, tables.stated_bounds)
    missing, count = tables.stated_missing.take(which), tables.num_stated.take(which)
    is_missing = u < missing
    place = (u - missing) / np.where(is_missing, 1.0, 1.0 - missing) * count
    number = np.where(is_missing, 0, np.minimum(place.astype(np.intp), count - 1))
    estimate = tables.stated.take(number + tables.first_stated.take(which))
    estimate[is_missing] = np.nan
    return estimate


def _requests(tables: FittedTables, draws: Draws, people: _People) -> Indices:
    """Return the number of each job's request: one that its user has for that size."""
    u = draws.uniform("request").ravel().take(people.steady)
    pair = people.habit * len(tables.fitted.classes) + people.size_class
    among = u * tables.request_count.ravel().take(pair)
    place = tables.request_first.ravel().take(pair) + among.astype(np.intp)
    return tables.request_numbers.take(place)


def _asked(tables: FittedTables, which: Indices, columns: Columns) -> Columns:
    """Return the columns of requests, without those that no request has."""
    asked: dict[str, npt.NDArray[Any]] = {
        name: values.take(which) for name, values in tables.requests.items()
    }
    gpus = np.maximum(columns["gpus"], 1)
    for name, dtype in (("cpus", np.int32), ("memory_mib", np.int64)):
        if name in asked:
            asked[name] = np.rint(asked[name] * gpus).astype(dtype)
    if "deadline" in asked:
        slack = asked["deadline"]
        deadline = columns["submit"] + slack * columns["run"]
        asked["deadline"] = np.where(slack < 0, np.inf, deadline)
    if "gpu_milli" in asked:
        asked["gpu_milli"][columns["gpus"] != 1] = WHOLE_GPU
    return asked
