"""Made-up jobs as columns, for the files that `berthline bench load` loads.

The numbers are arbitrary, about as large as in public traces, and the same in every run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

SAMPLE_SEED = 0

FIRST_SECOND = 1_700_000_000
"""The Unix time from which submissions count."""

STATES = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")


class Sample(NamedTuple):
    """What to load.

    Attributes:
        path: the file, or the directory of the tables.
        rows: number of rows in all its tables.
        options: options of the format.
    """

    path: Path
    rows: int
    options: dict[str, str]


class SampleJobs:
    """Columns that most formats have in some form."""

    def __init__(self, rows: int) -> None:
        random = np.random.default_rng(SAMPLE_SEED)
        self.rows = rows
        self.number = np.arange(100_000, 100_000 + rows)
        self.submit = np.sort(random.integers(600, 10_000_000, rows))
        self.wait = random.integers(0, 5_000, rows)
        self.start = self.submit + self.wait
        self.run = np.ceil(random.lognormal(7, 1.5, rows)).astype(np.int64)
        self.end = self.start + self.run
        self.gpus = random.choice(np.array([1, 2, 4, 8]), rows)
        self.code = random.integers(0, 500, rows)
        self.limit = random.integers(1, 100, rows) * 15  # minutes

    def pick(self, *names: str) -> pl.Series:
        """Return one of the names for every job; an empty name gives an empty cell."""
        import polars as pl

        words = pl.Series([name or None for name in names], dtype=pl.String)
        return words.gather(self.code % len(names))

    def said(self, form: str, *columns: object) -> pl.Series:
        """Return a text for every job, with a column in place of each `{}`."""
        import polars as pl

        frame = pl.DataFrame({str(at): column for at, column in enumerate(columns)})
        return frame.select(pl.format(form, *frame.columns)).to_series()

    def hashed(self, numbers: npt.NDArray[np.int64], digits: int = 24) -> pl.Series:
        """Return digits that look like hashes, equal for equal numbers."""
        import polars as pl

        first, second = (pl.Series(numbers).hash(seed).cast(pl.String) for seed in (1, 2))
        return (first + second + "0" * digits).str.slice(0, digits)

    def save(self, path: Path, columns: dict[str, Any], **form: Any) -> Sample:
        """Write a table; a single value is repeated for every job."""
        import polars as pl

        frame = pl.DataFrame(
            {
                name: pl.repeat(value, self.rows, eager=True)
                if isinstance(value, str | int)
                else value
                for name, value in columns.items()
            }
        )
        frame.write_csv(path, **form)
        return Sample(path, frame.height, {})


def dates(seconds: npt.NDArray[np.int64], pattern: str = "%Y-%m-%d %H:%M:%S") -> pl.Series:
    """Return seconds since `FIRST_SECOND` as dates."""
    import polars as pl

    return pl.from_epoch(pl.Series(seconds + FIRST_SECOND)).dt.to_string(pattern)
