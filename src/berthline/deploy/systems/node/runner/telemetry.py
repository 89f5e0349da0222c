"""Telemetry: what the GPUs do, every second, by NVML, by `nvidia-smi`, or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import TYPE_CHECKING, Any, Protocol

from berthline.deploy.systems.node.runner.nvidia_smi import NvidiaSmi, NvidiaSmiError
from berthline.deploy.systems.node.runner.nvml import Nvml, NvmlError

if TYPE_CHECKING:
    from pathlib import Path

TELEMETRY = "telemetry.jsonl"
NVML, NVIDIA_SMI, NONE = "nvml", "nvidia-smi", "none"
AUTO = "auto"
SOURCES = (AUTO, NVML, NVIDIA_SMI, NONE)
_LAST_DESCRIPTOR = 65536


class Gpus(Protocol):
    """A way to ask GPUs."""

    def names(self) -> list[tuple[str, str]]:
        """Return (name, UUID) of each GPU."""

    def sample(self) -> list[dict[str, float | None]]:
        """Return what each GPU does now."""


def find_gpus(source: str = AUTO) -> tuple[str, Gpus | None, str]:
    """Return the first source that answers: its name, the GPUs, and why others did not.

    Args:
        source: one of SOURCES; `auto` tries NVML, then `nvidia-smi`.
    """
    why = []
    for name, make in ((NVML, Nvml), (NVIDIA_SMI, NvidiaSmi)):
        if source in (AUTO, name):
            try:
                return name, make(), ""
            except (NvmlError, NvidiaSmiError) as error:
                why.append(str(error))
    return NONE, None, "; ".join(why)


def fork_sampler(source: str, directory: Path, *, every: float = 1.0) -> int | None:
    """Fork a process that writes a sample every second as long as this one lives.

    A driver that hangs then hangs only that process.

    Returns:
        Its process id; None = there is nothing to sample.
    """
    if source == NONE:
        return None
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.closerange(3, _LAST_DESCRIPTOR)  # above all the lock and the socket
        _sample_while(parent, source, directory / TELEMETRY, every)
    finally:
        os._exit(0)


def _sample_while(parent: int, source: str, path: Path, every: float) -> None:
    _, gpus, _ = find_gpus(source)
    if gpus is None:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    _append(descriptor, {"time": time.time(), "source": source, "gpus": gpus.names()})
    due = time.monotonic()
    while os.getppid() == parent:
        with contextlib.suppress(NvmlError, NvidiaSmiError):
            _append(descriptor, {"time": time.time(), "sample": gpus.sample()})
        due = max(due + every, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


def _append(descriptor: int, facts: dict[str, Any]) -> None:
    os.write(descriptor, json.dumps(facts).encode() + b"\n")


def read_samples(path: Path) -> list[tuple[float, list[dict[str, float | None]]]]:
    """Return the samples of a file: the time, and what each GPU did; none if there is no file."""
    if not path.exists():
        return []
    found = []
    for line in path.read_bytes().splitlines():
        try:
            facts = json.loads(line)
        except ValueError:  # the last line, cut off
            continue
        if "sample" in facts:
            found.append((float(facts["time"]), facts["sample"]))
    return found
