"""The guard: a small process that lifts our holds when the controller shows no sign of life.

It needs nothing but Python's standard library and the one function that the adapter names. Started
with the directory of the journal, it reads `guard.json` there:

    {"token": ..., "module": ..., "arguments": {...}, "heartbeat": seconds}

Signs of life are the machine's monotonic clock, written to `heartbeat` by the controller and to
`guard-heartbeat` by the guard. A guard whose token is no longer the one in the file ends: another
one has taken its place.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path

ORDERS, HEARTBEAT, GUARD_HEARTBEAT, LOG = "guard.json", "heartbeat", "guard-heartbeat", "guard.log"
LIMIT, SIGNS = 1.5, 0.25
"""Heartbeats without a sign of life, and between two signs."""
ENDED = "ended"
"""Instead of a time: the controller has given everything back."""


def write_sign(path: Path, text: str = "") -> None:
    """Write a sign of life: a file that is whole at any time."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(f"{text or time.monotonic()} {os.getpid()}\n")
    partial.replace(path)


def read_sign(path: Path) -> tuple[float, int, bool]:
    """Return the age of a sign of life, who gave it, and whether it says that all is over."""
    try:
        text, pid = path.read_text().split()
        if text == ENDED:
            return 0.0, int(pid), True
        age = time.monotonic() - float(text)
        # A time from before the machine was started says nothing.
        return (age if age >= -1.0 else float("inf")), int(pid), False
    except (OSError, ValueError):
        return float("inf"), 0, False


def watch(directory: Path, token: str) -> int:
    """Watch over a controller until it ends, or until nothing of ours is held."""
    heartbeat = float(json.loads((directory / ORDERS).read_text())["heartbeat"])
    while True:
        try:
            orders = json.loads((directory / ORDERS).read_text())
        except (OSError, ValueError):
            return 0  # the journal is gone
        if orders["token"] != token:
            return 0
        write_sign(directory / GUARD_HEARTBEAT)
        age, _, has_ended = read_sign(directory / HEARTBEAT)
        if has_ended:
            return 0
        if age > LIMIT * heartbeat and _lift(directory, orders):
            return 0
        time.sleep(SIGNS * heartbeat)


def _lift(directory: Path, orders: dict[str, object]) -> bool:
    """Lift all holds; return whether nothing is left."""
    try:
        module = importlib.import_module(str(orders["module"]))
        lifted, left = module.lift(orders["arguments"])
    except Exception as error:
        _log(directory, f"cannot lift the holds: {type(error).__name__}: {error}")
        return False
    _log(directory, f"no sign of life from the controller: {lifted} holds lifted, {left} left")
    return bool(left == 0)


def _log(directory: Path, words: str) -> None:
    with (directory / LOG).open("a") as file:
        file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {words}\n")


if __name__ == "__main__":
    sys.exit(watch(Path(sys.argv[1]), sys.argv[2]))
