"""Measure the frozen tasks and the default environments: `python -m benchmarks.task_scores`.

Writes the published scores, from which docs/tasks.md is generated.
"""

from __future__ import annotations

import argparse
import sys

import msgspec

from berthline.atomic_write import write_atomically
from berthline.cli.bench.task_scores import DEFAULTS, measure_tasks
from berthline.tasks.published_scores import FILE, published_scores
from berthline.tasks.task_table import TASKS


def main(argv: list[str]) -> int:
    """Measure everything, or the tasks that are named, and write the scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", action="append", choices=[*TASKS, *DEFAULTS])
    names = parser.parse_args(argv).task or [*TASKS, *DEFAULTS]
    found = dict(published_scores())

    def tell(done: int, total: int, part: str) -> None:
        print(f"\r{done} of {total}: {part[:60]:<60}", end="", file=sys.stderr)

    for one in measure_tasks(names, (), episodes=None, quick=False, report=tell):
        found[one.name] = one
    ordered = {name: found[name] for name in (*TASKS, *DEFAULTS) if name in found}
    text = msgspec.json.format(msgspec.json.encode(ordered), indent=1)
    write_atomically(FILE, text + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
