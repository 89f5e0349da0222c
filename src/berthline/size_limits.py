"""Sizes: the largest numbers that can be meant, and one check for all of them.

A size beyond its limit is a typing error (a number of seconds where windows are wanted, a zero too
many): the run would take weeks, or more memory than machines have. Every function that takes such a
size checks it before any work.
"""

from __future__ import annotations

import operator

from berthline.errors import ConfigError

MOST = {
    "jobs": 20_000_000,
    "window_jobs": 20_000_000,
    "episode_jobs": 1_000_000,
    "windows": 65_535,
    "train_windows": 65_535,
    "blocks": 65_535,
    "seeds": 10_000,
    "runs": 10_000_000,
    "trials": 10_000,
    "workers": 1_024,
    "draws": 100_000,
    "points": 100_000_000,
    "top": 100_000_000,
    "population": 65_536,
}
"""By the name of the parameter. The table of jobs numbers windows with 16 bits."""


def check_sizes(*, lowest: int = 1, optional: bool = True, **given: object) -> None:
    """Raise unless every size is a whole number in its range.

    Args:
        lowest: the smallest value that all of them may have.
        optional: whether None is allowed: not given.
        given: sizes by the name of their parameter.

    Raises:
        ConfigError: one is not.

    Example:
        >>> check_sizes(windows=8, workers=None)
    """
    for name, value in given.items():
        if value is None and optional:
            continue
        try:
            number = lowest - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            number = lowest - 1
        if not lowest <= number <= MOST[name]:
            raise ConfigError(
                f"`{name}` is {value!r}",
                expected=f"a whole number from {lowest} to {MOST[name]:,}",
            )
