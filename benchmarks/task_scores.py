"""Measure the frozen tasks and the default environments: `python -m benchmarks.task_scores`.

Writes the published scores, from which docs/tasks.md is generated.
"""

from __future__ import annotations

import argparse
import sys

import msgspec

from berthline.atomic_write import write_atomically
from berthline.cli.bench.task_scores import DEFAULTS, measure_tasks
from berthline.tasks.published_scores import FILE, best_rule, published_scores, shipped_for
from berthline.tasks.task_judge import Judge
from berthline.tasks.task_table import TASKS

EPISODES_OF_DEFAULTS = 64


def main(argv: list[str]) -> int:
    """Measure everything, or the tasks that are named, and write the scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", action="append", choices=[*TASKS, *DEFAULTS])
    parser.add_argument(
        "--networks-only", action="store_true", help="keep the rules, measure what is shipped"
    )
    given = parser.parse_args(argv)
    names = given.task or [*TASKS, *DEFAULTS]
    found = dict(published_scores())
    if given.networks_only:
        for name in [name for name in names if shipped_for(name)]:
            judge = Judge(name, TASKS[name].seat, TASKS[name].options)
            policies = {text: text for text in shipped_for(name)}
            own = judge.measure(policies=policies, rules=best_rule(judge))
            found[name] = msgspec.structs.replace(found[name], policies=own.policies)
        names = []

    def tell(done: int, total: int, part: str) -> None:
        print(f"\r{done} of {total}: {part[:60]:<60}", end="", file=sys.stderr)

    for name in names:
        count = EPISODES_OF_DEFAULTS if name in DEFAULTS else None
        for one in measure_tasks([name], (), episodes=count, quick=False, report=tell):
            found[one.name] = one
    ordered = {name: found[name] for name in (*TASKS, *DEFAULTS) if name in found}
    text = msgspec.json.format(msgspec.json.encode(ordered), indent=1)
    write_atomically(FILE, text + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
