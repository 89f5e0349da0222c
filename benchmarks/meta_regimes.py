"""What choosing between schedulers gains over the 48 regimes of a published meta-scheduler, and
what one tuned order gains; `make results RESULTS=meta_regimes` runs it."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.meta_regimes_page import FIXED, KEYS, WORLDS, draw, parts
from benchmarks.result_files import RESULTS, fill_page, read_rows, write_rows
from benchmarks.tuning import tune

import berthline as bl
from berthline.cli.main import main as berthline
from berthline.env.meta_regimes import meta_regimes
from berthline.errors import BerthlineError, ConfigError
from berthline.evaluate.metrics.deadlines import deadline_miss_rate
from berthline.evaluate.metrics.job_table import completion_times, job_table
from berthline.learn.tuning.search_space import Parameter, SearchSpace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.result_files import Row

PAGE = "meta-regimes"
SHARES = {1: 4, 2: 2, 4: 1, 8: 1}
"""Weights of gang sizes if jobs have several GPUs; 0 for sizes the cluster cannot hold."""
TRAIN, VAL, REPORT = 1_000_000, 2_000_000, 3_000_000
"""First seeds of windows."""
TRAIN_REGIMES, VAL_WINDOWS, REPORT_WINDOWS = 16, 1, 4
SEEDS, EPOCHS = (0, 1, 2, 3, 4), 2
META_SEEDS = (0, 1, 2)
REFERENCE = "sjf+skip"
LIMIT, PRICE = 1.005, 5.0

_FORMULA = SearchSpace(
    "formula",
    "[log2(estimate) + {g} * log2(gpus) - {w} * log2(wait + {c}) + {l} * (slack < estimate)]+skip",
    (
        Parameter("g", -1.0, 3.0, 1.0),
        Parameter("w", 0.0, 3.0, 0.3),
        Parameter("c", 10.0, 3000.0, 100.0, is_log=True),
        Parameter("l", -6.0, 10.0, 0.0),
    ),
)
_SWITCH = SearchSpace(
    "switch",
    "[where({t} + {q} * log2(1 + queued_gpus / total_gpus) + {r} * log2(1 + 60 * arrival_rate) > 0,"
    " work, -wait / estimate)]+skip",
    (
        Parameter("t", -6.0, 6.0, 1.0),
        Parameter("q", -2.0, 2.0, 0.0),
        Parameter("r", -2.0, 2.0, 0.0),
    ),
)
SEARCHES = {
    ("formula", "p95"): _FORMULA,
    ("formula", "joint"): _FORMULA,
    ("formula", "joint within JCT"): _FORMULA,
    ("switch", "p95"): _SWITCH,
    ("switch", "joint"): _SWITCH,
}
"""What is tuned for which goal. The switch uses one order at a time for the whole queue: smallest
area or highest response ratio, depending on the queued GPUs and the arrival rate."""

CHOICES = ("sjf+skip", "smallest-area+skip", "hrrn+skip", "edf+skip", "fcfs+skip")
META_DQN = {
    "workload": "rlmetadqn",
    "dials": {"shape": "bursty", "gpu_mix": "1:4,2:2,4:1,8:1"},
    "cluster": "uniform:1x8:V100",
    "load": [0.5, 12],
    "schedulers": list(CHOICES),
    "every_seconds": 60,
    "knowledge": "exact",
    "discipline": "skip",
    "reward": "mean-jct-hours",
    "baseline": REFERENCE,
}
"""Meta-DQN learns on 8 GPUs at all loads, and is then used unchanged in all regimes."""
META_STEPS = 60_000


@functools.cache
def jobs_of(world: str, regime: int, seed: int) -> tuple[bl.Cluster, bl.Workload]:
    """Return a window of a regime: the same jobs in both worlds, except for their sizes."""
    options = meta_regimes()[regime]
    cluster = bl.Cluster.parse(options["cluster"])
    shares = [f"{size}:{n}" for size, n in SHARES.items() if size <= cluster.total_gpus]
    mix = "single" if world == WORLDS[0] else ",".join(shares)
    return cluster, bl.generate(
        "rlmetadqn",
        cluster=cluster,
        jobs=options["episode_jobs"],
        seed=seed * len(meta_regimes()) + regime,
        **options["dials"],
        gpu_mix=mix,
    )


def measured(world: str, regime: int, seed: int, text: str) -> list[float]:
    """Return the values of KEYS of one run; 1 % is added to the share of missed deadlines."""
    cluster, jobs = jobs_of(world, regime, seed)
    log = bl.simulate(jobs, cluster, text, knowledge="exact").log
    table = job_table(log, jobs)
    jct = completion_times(table, jobs)
    missed = deadline_miss_rate(table, jobs)
    assert missed is not None
    tail = np.quantile(jct, (0.95, 0.99))
    return [float(jct.mean()), *map(float, tail), float(jct.max()), missed + 0.01]


@dataclasses.dataclass(frozen=True)
class Loss:
    """What is minimised in a world: a logarithm of ratios to the reference."""

    world: str
    goal: str

    def __call__(self, text: str, windows: Sequence[tuple[int, int]]) -> float:
        """Return the loss of a scheduler on windows, each a regime and a seed."""
        ours = np.array([measured(self.world, *window, text) for window in windows])
        theirs = np.array([_reference(self.world, *window) for window in windows])
        logs = dict(zip(KEYS, np.log(ours / theirs).mean(axis=0).tolist(), strict=True))
        if self.goal == "p95":
            return float(logs["jct_p95"])
        joint = (logs["jct_mean"] + logs["jct_p95"] + logs["missed"]) / 3
        over = max(logs["jct_mean"] - math.log(LIMIT), 0.0)
        return float(joint + (PRICE * over if self.goal == "joint within JCT" else 0.0))


@functools.cache
def _reference(world: str, regime: int, seed: int) -> list[float]:
    return measured(world, regime, seed, REFERENCE)


def searches() -> Iterator[Row]:
    """Tune everything; yield a row for each search."""
    count = len(meta_regimes())
    val = [(regime, VAL + k) for regime in range(count) for k in range(VAL_WINDOWS)]
    for world in WORLDS:
        for (how, goal), space in SEARCHES.items():
            loss = Loss(world, goal)
            for seed in SEEDS:

                def train_loss(
                    text: str, epoch: int, loss: Loss = loss, number: int = seed * EPOCHS
                ) -> float:
                    draws = np.random.Generator(np.random.Philox(number + epoch))
                    regimes = draws.choice(count, TRAIN_REGIMES, replace=False).tolist()
                    return loss(text, [(regime, TRAIN + number + epoch) for regime in regimes])

                found = tune(
                    space,
                    train_loss,
                    functools.partial(Loss.__call__, loss, windows=val),
                    epochs=EPOCHS,
                    seed=seed,
                )
                yield {
                    "world": world,
                    "how": how,
                    "goal": goal,
                    "seed": str(seed),
                    "evaluations": str(found.evaluations),
                    "val_loss": repr(found.val_loss),
                    "scheduler": found.scheduler,
                }
            print(f"{world}, {how} for {goal}: searched", flush=True)


def trained(runs: Path) -> dict[str, Path]:
    """Train what is missing; return the directories by the names of the policies.

    Raises:
        ConfigError: training failed.
    """
    found = {}
    for seed in META_SEEDS:
        out = runs / f"meta-dqn-{seed}"
        words = [f"{key}={json.dumps(value)}" for key, value in META_DQN.items()]
        if not (out / "summary.json").is_file():
            command = ["train", "meta-dqn", "--env", "Meta", "--network", "mlp"]
            command += [word for entry in words for word in ("--set", entry)]
            command += ["--config", "energy=false", "--envs", "64", "--episodes", "16"]
            command += ["--steps", str(META_STEPS), "--validate-every", "10000"]
            command += ["--seed", str(seed), "--out", str(out)]
            if berthline(command):
                raise ConfigError("training failed", where=str(out))
        found[f"Meta-DQN, seed {seed}"] = out
    return found


def judged(found: Sequence[Row], learned: dict[str, Path]) -> Iterator[Row]:
    """Read REPORT: yield a row for each scheduler and regime, with geometric means over windows."""
    for world in WORLDS:
        schedulers = {name: name for name in FIXED[world]}
        schedulers |= {
            f"{row['how']} for {row['goal']}, seed {row['seed']}": row["scheduler"]
            for row in found
            if row["world"] == world
        }
        for name, text in [*schedulers.items(), *learned.items()]:
            # A network decides every minute: it gets one window of each regime, and the fixed
            # schedulers are also run on that one.
            counts = {"first": 1} if name in learned else {"all": REPORT_WINDOWS}
            for regime in range(len(meta_regimes())):
                runs = [
                    measured(world, regime, REPORT + k, str(text))
                    for k in range(max(counts.values()))
                ]
                counts |= {"first": 1} if name in FIXED[world] else {}
                for which, count in counts.items():
                    means = np.exp(np.log(runs[:count]).mean(axis=0))
                    yield {
                        "world": world,
                        "name": name,
                        "scheduler": "" if name in learned else str(text),
                        "windows": which,
                        "regime": str(regime),
                        **{key: f"{x:.6g}" for key, x in zip(KEYS, means, strict=True)},
                    }
        print(f"{world}: evaluated", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Search, train and evaluate, and write the CSV files, the page and the figure."""
    parser = argparse.ArgumentParser(prog="meta_regimes", description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs/meta-regimes"))
    parser.add_argument("--from-csv", action="store_true", help="write the page; run nothing")
    options = parser.parse_args(argv)
    found, runs = (RESULTS / f"{PAGE}{end}.csv" for end in ("-searches", ""))
    try:
        if not options.from_csv:
            options.runs.mkdir(parents=True, exist_ok=True)
            write_rows(found, searches())
            write_rows(runs, judged(read_rows(found), trained(options.runs)))
        fill_page(PAGE, parts(read_rows(found), read_rows(runs)))
        draw(read_rows(runs), RESULTS / f"{PAGE}.png")
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"written: {PAGE}.csv, -searches.csv, .md and .png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
