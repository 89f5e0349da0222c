"""A program for a Ray cluster: what the pool does with answers, errors and workers that end."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from berthline.engines.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def answers_of(factor: int) -> Callable[[Any], Iterator[Any]]:
    """Return what multiplies by the setup, ends its process, or sleeps."""

    def answers(message: Any) -> Iterator[Any]:
        if message == "end":
            os._exit(7)
        if message == "sleep":
            time.sleep(600)
        if message == "many":
            yield from range(1000)
            return
        yield factor * message

    return answers


def main() -> None:
    """Run what the command line names, and print what came of it as JSON."""
    address, timeout, *words = sys.argv[1:]
    left: list[Any] = [json.loads(word) for word in words]
    told: list[str] = []
    engine = Engine("ray", address, float(timeout) or None)
    engine.connect()
    began = time.perf_counter()
    with engine.pool("tests.engines.ray_worker", 10, engine.count(None)) as pool:
        found = [
            answer
            for _, answer in pool.answers(
                lambda _: left.pop(0) if left else None, lambda _, how: told.append(how)
            )
        ]
    print(json.dumps({"found": found, "lost": told, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main()
