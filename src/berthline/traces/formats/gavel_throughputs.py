"""Tables of throughputs for Gavel traces: steps per second by job type and number of GPUs."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from berthline.errors import TraceError, unknown_name
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import read_text
from berthline.traces.reading.quoted import presentable, shorten

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_GPU = "v100"
"""The GPU for which Gavel computed the steps of its traces."""

_ALONE = "null"  # no other job shares the GPUs
_KEY = re.compile(r"\('(?P<job_type>.*)', (?P<scale_factor>\d{1,9})\)")

Throughputs = dict[tuple[str, float], float]


def read_throughputs(path: Path, gpu: str) -> Throughputs:
    """Return steps per second by (job type, scale factor).

    Args:
        path: Gavel's JSON, or a CSV with `job_type`, `scale_factor` and `steps_per_second`.
        gpu: the GPU whose throughputs to use from Gavel's JSON.

    Raises:
        TraceError: the file cannot be read or is not such a table.
    """
    text = read_text(path, long_lines=True)
    if text.lstrip().startswith(b"{"):
        return _from_json(text, path, gpu)
    table = CsvTable(path, required=("job_type", "scale_factor", "steps_per_second"))
    keys = zip(
        table.text("job_type").fill_null("").to_list(),
        table.numbers("scale_factor", lowest=1, whole=True).tolist(),
        strict=True,
    )
    return dict(zip(keys, table.numbers("steps_per_second", lowest=0).tolist(), strict=True))


def _from_json(text: bytes, path: Path, gpu: str) -> Throughputs:
    import msgspec

    try:
        content: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise TraceError(
            f"the table of throughputs is not JSON ({str(error)[:200]})", where=str(path)
        ) from None
    if gpu not in content:
        what, expected, hint = unknown_name("GPU", gpu, presentable(content))
        raise TraceError(
            f"{what} of the throughputs", where=str(path), expected=expected, hint=hint
        )
    entries = content[gpu]
    if not isinstance(entries, dict):
        raise _not_a_table(path, gpu, entries)
    found: Throughputs = {}
    for key, value in entries.items():
        match = _KEY.fullmatch(key)
        alone = value.get(_ALONE) if isinstance(value, dict) else value
        if not isinstance(alone, int | float) or not 0 <= alone < math.inf:
            raise _not_a_table(path, f"{gpu}, {shorten(key)}", alone)
        # The oldest tables have only job types, for one GPU.
        name = (match["job_type"], float(match["scale_factor"])) if match else (key, 1.0)
        found[name] = float(alone)
    return found


def _not_a_table(path: Path, entry: str, value: object) -> TraceError:
    return TraceError(
        f"{entry} of the throughputs is {shorten(value)}",
        where=str(path),
        expected='{GPU: {"(\'JOB TYPE\', SCALE FACTOR)": {"null": STEPS PER SECOND}}}',
    )
