"""What a training run writes while it goes on.

config.toml      every setting, resolved
meta.json        version, command, seed, machine
metrics.jsonl    one line for each iteration and validation
curve.csv        the validations, for `berthline report curve`
summary.json     VAL and REPORT scores, when it is over
checkpoints/     last-STEP to go on from, best-STEP by VAL
tensorboard/     event files with CleanRL's names
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class RunFiles:
    """The growing files of a run.

    Args:
        path: its directory, which exists.
        step: what was logged after this step is dropped: a run that goes on repeats it.
        tensorboard: write event files too, which needs torch.
    """

    def __init__(self, path: Path, *, step: int, tensorboard: bool = True) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self._metrics = path / "metrics.jsonl"
        self._curve = path / "curve.csv"
        self._drop_after(step)
        self._writer = _tensorboard(path / "tensorboard", step) if tensorboard else None

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add a line of metrics."""
        clean = {k: v if math.isfinite(v) else None for k, v in values.items()}
        with self._metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **clean}) + "\n")
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)

    def add_to_curve(self, step: int, values: Mapping[str, float]) -> None:
        """Add a validation to the curve."""
        is_new = not self._curve.exists()
        with self._curve.open("a", encoding="utf-8") as file:
            if is_new:
                file.write(",".join(["step", *values]) + "\n")
            file.write(",".join([str(step), *(repr(float(v)) for v in values.values())]) + "\n")

    def write_json(self, name: str, value: object) -> None:
        """Write a file whole."""
        with whole_file(self.path / name) as partial:
            partial.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")

    def close(self) -> None:
        """Write what is still to be written."""
        if self._writer is not None:
            self._writer.close()

    def _drop_after(self, step: int) -> None:
        for file, is_header in ((self._metrics, False), (self._curve, True)):
            if not file.exists():
                continue
            lines = file.read_text(encoding="utf-8").splitlines()
            kept = [
                line
                for number, line in enumerate(lines)
                if (is_header and number == 0) or _step_of(line) <= step
            ]
            with whole_file(file) as partial:
                partial.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary name that becomes `path` when everything has gone well.

    Raises:
        ConfigError: the file cannot be written.
    """
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot write: {error.strerror or error}", where=str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def _step_of(line: str) -> float:
    """Return the step of a line; one that was cut off counts as the last of all."""
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
