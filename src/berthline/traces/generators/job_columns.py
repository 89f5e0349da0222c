"""Columns of generated jobs besides size, run time and submission: user, priority, deadline."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError
from berthline.traces.generators.dials import Dial
from berthline.traces.generators.draws import choose
from berthline.traces.generators.gpu_mix import Choices, choose_with, limits_of

if TYPE_CHECKING:
    from berthline.traces.generators.dials import Settings
    from berthline.traces.generators.draws import RandomSource, Table

USER_DIALS = (
    Dial(
        name="users",
        default=16,
        meaning="how many users submit jobs",
        lowest=1,
        highest=1_000_000,
    ),
    Dial(
        name="user_skew",
        default=1.0,
        meaning="the share of the k-th user is proportional to 1/k**user_skew; 0 = all equal",
        highest=10,
    ),
)
PRIORITY_DIAL = Dial(
    name="priorities",
    default=4,
    meaning="number of priorities: 0 to priorities - 1, all equally likely",
    lowest=1,
    highest=1_000_000,
)
PRIORITY_CORRELATION_DIAL = Dial(
    name="priority_correlation",
    default=0.0,
    meaning="correlation of priority and run time: 1 = the longest jobs come first, -1 = the "
    "shortest",
    lowest=-1,
    highest=1,
)
DEADLINE_DIALS = (
    Dial(
        name="deadline_low",
        default=1.2,
        meaning="the tightest deadline: submission plus this many run times",
        highest=1e6,
    ),
    Dial(
        name="deadline_high",
        default=2.0,
        meaning="the loosest deadline: submission plus this many run times",
        highest=1e6,
    ),
)


def user_shares(dials: Settings) -> npt.NDArray[np.float64]:
    """Return the share of jobs that each user submits."""
    ranks = np.arange(1, int(dials["users"]) + 1, dtype=np.float64)
    popularity = ranks ** -float(dials["user_skew"])
    return np.asarray(popularity / popularity.sum())


def user_names(num_users: int) -> tuple[str, ...]:
    """Return names for users without names."""
    return tuple(f"user{number}" for number in range(num_users))


def draw_users(source: RandomSource, dials: Settings) -> npt.NDArray[np.int32]:
    """Return the number of each job's user."""
    limits, numbers = _user_limits(int(dials["users"]), float(dials["user_skew"]))
    return choose(source.uniform("user"), limits, numbers)


@functools.lru_cache(maxsize=16)
def _user_limits(users: int, skew: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    limits = np.cumsum(user_shares({"users": users, "user_skew": skew}))[:-1]
    return limits, np.arange(users, dtype=np.int32)


def draw_priorities(source: RandomSource, dials: Settings) -> Table:
    """Return whole priorities from 0, all equally likely, correlated with run times by the dial."""
    count = int(dials["priorities"])
    correlation = float(dials.get("priority_correlation", 0.0))
    if correlation == 0:
        priority = source.uniform("priority")
        priority *= count
        return np.floor(priority, out=priority)
    return choose_with(source, "priority", _even_choices(count), correlation).astype(np.float64)


@functools.lru_cache(maxsize=16)
def _even_choices(count: int) -> Choices:
    return Choices(np.arange(count, dtype=np.int32), *limits_of(np.ones(count)))


def check_deadlines(dials: Settings, *, where: str) -> None:
    """Check that the tightest deadline is not looser than the loosest.

    Raises:
        ConfigError: it is.
    """
    low, high = float(dials["deadline_low"]), float(dials["deadline_high"])
    if low > high:
        raise ConfigError(
            f"deadline_low is {low:g} and deadline_high is {high:g}",
            where=where,
            expected="deadline_low no larger than deadline_high",
        )


def draw_deadlines(source: RandomSource, submit: Table, run: Table, dials: Settings) -> Table:
    """Return deadlines: submission + x * run time, with x uniform between the dials' limits."""
    low, high = float(dials["deadline_low"]), float(dials["deadline_high"])
    deadline = source.uniform("deadline")
    deadline *= high - low
    deadline += low
    deadline *= run
    deadline += submit
    return deadline
