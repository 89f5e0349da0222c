"""The files that a training run extends while it runs: metrics, curve, event files."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from berthline.atomic_write import complete_file
from berthline.errors import OutputError
from berthline.runs.run_layout import CHECKPOINTS, CURVE, METRICS, TENSORBOARD

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class GrowingFiles:
    """The growing files of a run.

    Args:
        path: its directory, which exists.
        step: lines after this step are dropped: a resumed run writes them again.
        tensorboard: also write event files, which needs torch.
    """

    def __init__(self, path: Path, *, step: int, tensorboard: bool = True) -> None:
        self.path = path
        self.checkpoints = path / CHECKPOINTS
        self._metrics = path / METRICS
        self._curve = path / CURVE
        self._drop_after(step)
        self._writer = _tensorboard(path / TENSORBOARD, step) if tensorboard else None

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add a line of metrics.

        Raises:
            OutputError: it cannot be written.
        """
        clean = {k: v if math.isfinite(v) else None for k, v in values.items()}
        _append(self._metrics, json.dumps({"step": step, **clean}) + "\n")
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)

    def add_to_curve(self, step: int, values: Mapping[str, float]) -> None:
        """Add a validation to the curve.

        Raises:
            OutputError: it cannot be written.
        """
        head = "" if self._curve.exists() else ",".join(["step", *values]) + "\n"
        cells = [repr(float(v)) if math.isfinite(v) else "" for v in values.values()]
        row = ",".join([str(step), *cells]) + "\n"
        _append(self._curve, head + row)

    def write_json(self, name: str, value: object) -> None:
        """Write a file at once, such as summary.json."""
        write_json(self.path / name, value)

    def close(self) -> None:
        """Flush and close the event files."""
        if self._writer is not None:
            self._writer.close()

    def _drop_after(self, step: int) -> None:
        for file, is_header in ((self._metrics, False), (self._curve, True)):
            if not file.exists():
                continue
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            kept = [
                line
                for number, line in enumerate(lines)
                if (is_header and number == 0) or _step_of(line) <= step
            ]
            with complete_file(file) as partial:
                partial.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Write plain data as a JSON file, which is replaced if it exists.

    Raises:
        OutputError: it cannot be written.
    """
    with complete_file(path) as partial:
        partial.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OutputError(
            f"cannot write the file ({error.strerror or error})", where=str(path)
        ) from None


def _step_of(line: str) -> float:
    """Return the step of a line; infinity for an incomplete line."""
    try:
        if line.startswith("{"):
            return float(json.loads(line)["step"])
        return float(line.split(",", 1)[0])
    except (ValueError, KeyError, TypeError):
        return math.inf


def _tensorboard(path: Path, step: int) -> Any:
    """Return a writer of event files, or None where tensorboard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(path), purge_step=step or None)
