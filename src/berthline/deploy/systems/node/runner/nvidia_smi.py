"""`nvidia-smi`, where NVML cannot be loaded: what the GPUs of this node are and do."""

from __future__ import annotations

import subprocess

_FIELDS = (
    "index",
    "uuid",
    "name",
    "utilization.gpu",
    "memory.used",
    "memory.total",
    "power.draw",
    "temperature.gpu",
)
_COMMAND = ("nvidia-smi", "--query-gpu=" + ",".join(_FIELDS), "--format=csv,noheader,nounits")
_SECONDS = 20.0


class NvidiaSmiError(Exception):
    """It is not there, or its answer cannot be read."""


class NvidiaSmi:
    """The program `nvidia-smi`, found on the search path.

    Raises:
        NvidiaSmiError: it is not there, or its answer cannot be read.
    """

    def __init__(self) -> None:
        self._names = [(row[2], row[1]) for row in _rows()]

    def names(self) -> list[tuple[str, str]]:
        """Return (name, UUID) of each GPU."""
        return self._names

    def sample(self) -> list[dict[str, float | None]]:
        """Return what each GPU does now; None where it does not tell."""
        keys = ("utilization", "memory_used_mib", "memory_total_mib", "power_w", "temperature_c")
        found = []
        for row in _rows():
            values = [_number(text) for text in row[3:]]
            values[0] = None if values[0] is None else values[0] / 100
            found.append(dict(zip(keys, values, strict=True)))
        return found


def _rows() -> list[list[str]]:
    """Return the cells of each GPU, in the order of the indices."""
    try:
        answer = subprocess.run(_COMMAND, capture_output=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise NvidiaSmiError(str(error)) from None
    rows = []
    for line in answer.stdout.decode("utf-8", "replace").splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < len(_FIELDS) or not cells[0].isdecimal():
            raise NvidiaSmiError(f"not a line of nvidia-smi: {line!r}")
        numbers = len(_FIELDS) - 3
        # A name may hold commas.
        rows.append([*cells[:2], ", ".join(cells[2:-numbers]), *cells[-numbers:]])
    if not rows:
        raise NvidiaSmiError("it lists no GPU")
    return sorted(rows, key=lambda row: int(row[0]))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # [N/A], [Not Supported]
        return None
