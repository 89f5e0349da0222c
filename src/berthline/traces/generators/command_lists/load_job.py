#!/usr/bin/env python3
"""A job that computes for some seconds, and can be stopped and resumed.

It stands beside generated lists of commands and needs nothing but Python. Time counts while the job
really runs: not while it is frozen. It writes how far it is to `progress.json` in the directory
named by BERTHLINE_JOB_DIR (or here), also when it gets SIGTERM or SIGUSR1, and resumes from there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

SLICE_S = 0.02
LONGEST_SLICE_S = 0.25
WRITE_EVERY_S = 0.5


def main() -> int:
    """Compute for a while."""
    parser = argparse.ArgumentParser(description="compute for a while")
    parser.add_argument("--runtime", type=float, required=True, help="seconds")
    parser.add_argument("--cpu", type=float, default=1.0, help="share of the time it computes")
    parser.add_argument("--gpu-load", action="store_true", help="multiply matrices on the GPU")
    options = parser.parse_args()
    total = options.runtime * float(os.environ.get("BERTHLINE_TIME_SCALE", "1"))
    file = Path(os.environ.get("BERTHLINE_JOB_DIR", ".")) / "progress.json"
    done, rounds = 0.0, 0
    if file.exists():
        facts = json.loads(file.read_text(encoding="utf-8"))
        done, rounds = float(facts["seconds"]), int(facts["rounds"])
    stop: list[int] = []
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda number, _: stop.append(number))
    compute = GpuWork() if options.gpu_load else lambda: sum(range(200))
    written = last = time.monotonic()
    while done < total and not stop:
        until = last + min(SLICE_S, total - done)
        while time.monotonic() < last + (until - last) * options.cpu:
            compute()
            rounds += 1
        time.sleep(max(0.0, until - time.monotonic()))
        now = time.monotonic()
        done += min(now - last, LONGEST_SLICE_S)  # a longer gap: it was frozen
        last = now
        if now - written >= WRITE_EVERY_S:
            write(file, seconds=done, of=total, rounds=rounds)
            written = now
    write(file, seconds=done, of=total, rounds=rounds)
    return 128 + stop[0] if stop else 0


def write(file: Path, **facts: float) -> None:
    """Write the file, whole or not at all."""
    partial = file.with_name(f".progress-{os.getpid()}")
    partial.write_text(json.dumps(facts), encoding="utf-8")
    partial.replace(file)


class GpuWork:
    """Multiplies two matrices on the first visible GPU."""

    def __init__(self) -> None:
        with contextlib.suppress(ImportError):
            import torch

            if torch.cuda.is_available():
                self.torch, self.matrix = torch, torch.rand(2048, 2048, device="cuda")
                return
        sys.exit("--gpu-load needs torch and a GPU that it can use")

    def __call__(self) -> None:
        """Multiply once."""
        self.matrix.matmul(self.matrix)
        self.torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(main())
