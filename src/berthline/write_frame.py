"""Writing tables with polars: a disk that is full is an OSError, as with any other file."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")


def write_frame(frame: pl.DataFrame, path: Path, **options: Any) -> None:
    """Write a table as a Parquet file.

    Args:
        frame: the table.
        path: the file.
        options: of `DataFrame.write_parquet`.

    Raises:
        OSError: it cannot be written.
    """
    import polars as pl

    try:
        frame.write_parquet(path, **options)
    except pl.exceptions.ComputeError as error:
        # polars reports what the system said as text only.
        if found := _SYSTEM_ERROR.search(str(error)):
            number = int(found[1])
            raise OSError(number, os.strerror(number), str(path)) from None
        raise
