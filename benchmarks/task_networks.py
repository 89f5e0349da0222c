"""Ship the network of a task: `python -m benchmarks.task_networks --task NAME RUN RUN ...`.

The runs are of `berthline train --env NAME`, with different seeds. The one with the best return on
VAL is kept, and evaluated once on the evaluation episodes of the task. Its numbers are written
without the optimiser, with a card.
"""

from __future__ import annotations

import argparse
import csv
import re
import shlex
import sys
from pathlib import Path

import msgspec

from berthline.atomic_write import write_atomically
from berthline.deploy.trained_policy import read_policy
from berthline.policies.learned import Learned
from berthline.policies.policy_directory import write_policy
from berthline.policies.shipped_networks import CARD, FOLDER, NetworkCard
from berthline.runs.run_layout import CURVE, META
from berthline.tasks.published_scores import best_rule
from berthline.tasks.task_judge import Judge
from berthline.tasks.task_table import TASKS

LOSES = (
    "on other clusters, loads and jobs: it was never evaluated there",
    "as advice for a real cluster: episodes begin empty and end, queues of months do not",
)
MOST_BYTES = 200_000


def main(argv: list[str]) -> int:
    """Keep the best of some runs, evaluate it, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", required=True, choices=TASKS)
    parser.add_argument("runs", nargs="+", type=Path)
    given = parser.parse_args(argv)
    task = TASKS[given.task]
    returns = [_val_return(run) for run in given.runs]
    kept = given.runs[returns.index(max(returns))]
    learned = Learned.find(str(kept))
    assert learned is not None
    facts = read_policy(learned).facts
    judge = Judge(task.name, task.seat, task.options)
    measured = judge.measure(policies={"kept": str(kept)}, rules=best_rule(judge))
    [row] = measured.policies
    gain, low, high = row.against, row.against_low, row.against_high
    assert gain is not None
    assert low is not None
    assert high is not None
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", task.name).lower()
    command = shlex.join(_words(kept)) + f" --out runs/{name}"
    card = NetworkCard(
        name=name,
        task=task.name,
        meaning=task.meaning,
        algorithm=str(facts["algorithm"]),
        data=f"generated jobs of {task.options['workload']} at a load of {task.options['load']:g} "
        f"on {task.options['cluster']}",
        steps=int(facts["step"]),
        seeds=[_seed(run) for run in given.runs],
        kept_seed=int(facts["config"]["seed"]),
        val_returns=[round(value, 5) for value in returns],
        episodes=measured.episodes,
        score=row.value,
        against=measured.best.name,
        gain=gain,
        gain_low=low,
        gain_high=high,
        loses=[
            *(["against the best rule of its own task, if by little"] if high < 0 else []),
            *LOSES,
        ],
        command=command,
    )
    _write(card, learned, facts)
    print(msgspec.json.encode(card).decode())
    return 0


def _val_return(run: Path) -> float:
    with (run / CURVE).open(newline="", encoding="utf-8") as file:
        return max(float(row["return"]) for row in csv.DictReader(file))


def _words(run: Path) -> list[str]:
    words = shlex.split(msgspec.json.decode((run / META).read_bytes())["command"])
    place = words.index("--out")
    words = words[:place] + words[place + 2 :]
    if "--init-from" in words:
        place = words.index("--init-from")
        words[place + 1] = "runs/cloned"
    return words


def _seed(run: Path) -> int:
    learned = Learned.find(str(run))
    assert learned is not None
    return int(read_policy(learned).facts["config"]["seed"])


def _write(card: NetworkCard, learned: Learned, facts: dict[str, object]) -> None:
    from safetensors.numpy import save_file

    tensors = {f"policy.{key}": value for key, value in read_policy(learned).tensors.items()}
    folder = FOLDER / card.name
    kept = {key: facts[key] for key in ("algorithm", "config", "layout", "layout_sha256")}
    write_policy(folder, lambda file: save_file(tensors, file), step=card.steps, facts=kept)
    text = msgspec.json.format(msgspec.json.encode(card), indent=2)
    write_atomically(folder / CARD, text + b"\n")
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert size < MOST_BYTES, size


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
