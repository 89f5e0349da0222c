"""What tuned gates gain on real logs over the best heuristics in hindsight and the best lanes;
`make results RESULTS=winning_policy` runs it.

In each setting a gate is tuned with several seeds on the first half of a log. VAL windows choose
among the seeds, the shipped policy as it is, lanes and heuristics: whoever does not win there is
not used. REPORT windows are read once.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from benchmarks.hindsight import LANES, Place, best_by
from benchmarks.paired_windows import RESULTS, filled, read_rows, to_csv
from benchmarks.winning_figure import draw
from benchmarks.winning_judge import Judge
from benchmarks.winning_page import parts
from benchmarks.winning_settings import LOGS, TRACES, Setting

from berthline.errors import BerthlineError
from berthline.learn.search import Search, SearchConfig
from berthline.learn.search_goal import Goal
from berthline.learn.search_rivals import HEURISTICS, usable_rivals
from berthline.learn.search_space import SPACES, Parameter, SearchSpace
from berthline.learn.search_windows import SearchWindows
from berthline.learn.search_workers import SearchWorkers
from berthline.traces.atomic_write import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.paired_windows import Row

    import berthline as bl

PAGE = "winning-policy"
SHIPPED = "holdback"
SEEDS, FEW_SEEDS = (0, 1, 2, 3, 4), (0, 1)
SETTINGS = {
    **{Setting(log, "exact"): SEEDS for log in LOGS},
    Setting("Venus", "exact", long=True): SEEDS,
    **{Setting(log, "history"): SEEDS for log in ("CTC", "Philly")},
    **{Setting(log, "estimates"): FEW_SEEDS for log in LOGS},
    **{Setting(log, "none"): FEW_SEEDS for log in LOGS},
}
"""Where, and with which seeds."""

BLIND = SearchSpace(
    "blind",
    "[{g} * log2(gpus + 1) + {w} * log2(wait + 60) + {u} * log2(user_jobs + 1)]+skip@best-fit",
    (
        Parameter("g", -1.0, 3.0, 0.5, meaning="weight of the size"),
        Parameter("w", -2.0, 2.0, 1.0, meaning="weight of the wait: above 0 the last comes first"),
        Parameter("u", -1.0, 3.0, 0.0, meaning="weight of the user's jobs"),
    ),
    "an order without run times; it begins at last come, first served",
)
LANE = {"g": 1.0, "T": 14400.0, "r": 0.1} | dict.fromkeys("lswqdbf", 0.0)
"""Numbers of `hold` that make it an express lane: the better start where jobs come without an end,
since the other one opens while the queue is long."""
TRAINING = Goal(jct_tolerance=0.005, p99_tolerance=0.05, makespan_tolerance=0.05)
CHOICE = Goal(jct_tolerance=0.02, p99_tolerance=0.10, makespan_tolerance=0.05)
"""VAL is short: what keeps strict limits on TRAIN may miss them there by chance."""
SHORT = SearchConfig(goal=TRAINING, evaluations=240, population=12, windows=16)
LONG = SearchConfig(goal=TRAINING, evaluations=180, population=12, windows=3)
LANES_KEPT = 5
BRIEF = {"none": 60, "estimates": 120}
"""Candidates where there is less to tune, or to gain."""


def config_of(setting: Setting) -> SearchConfig:
    """Return how a setting is searched."""
    config = LONG if setting.long else SHORT
    evaluations = BRIEF.get(setting.known, config.evaluations)
    return msgspec.structs.replace(config, evaluations=evaluations)


def main(argv: Sequence[str] | None = None) -> int:
    """Tune, judge, and write the CSV file, the figure and the page."""
    parser = argparse.ArgumentParser(prog="winning_policy", description=__doc__)
    parser.add_argument("traces", type=Path, nargs="?", default=TRACES, help="where the logs are")
    parser.add_argument("--from-csv", action="store_true", help="write the page; run nothing")
    parser.add_argument(
        "--only", default="", help="run settings of this name (a pattern); keep others"
    )
    parser.add_argument("--judge-only", action="store_true", help="train nothing that is there")
    options = parser.parse_args(argv)
    table = RESULTS / f"{PAGE}.csv"
    try:
        if not options.from_csv:
            for setting, seeds in SETTINGS.items():
                if re.search(options.only, setting.name):
                    known = tuned_by(rows_of(table), setting) if options.judge_only else {}
                    keep(list(measure(setting, seeds, options.traces, known)), table)
        rows = read_rows(table)
        page = RESULTS / f"{PAGE}.md"
        text = filled(page.read_text(encoding="utf-8"), parts(rows))
        write_atomically(page, text.encode())
        draw(rows, RESULTS / f"{PAGE}.png")
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"written: {PAGE}.csv, .md and .png")
    return 0


def measure(
    setting: Setting, seeds: Sequence[int], folder: Path, known: dict[str, str]
) -> Iterator[Row]:
    """Yield a row for each policy and each rival.

    Args:
        setting: where.
        seeds: to train with.
        folder: where the logs are.
        known: what each seed has found, if that is known already.

    Raises:
        BerthlineError: the log is not there, or something cannot be run.
    """
    began = time.process_time()
    windows = setting.windows(folder)
    place = Place(setting.cluster, setting.knowledge)
    config = config_of(setting)
    tuned = known or {f"seed {seed}": train(setting, windows, config, seed) for seed in seeds}
    trained = time.process_time() - began

    val = windows["val"][:3] if setting.long else windows["val"]
    on_val = {name: place.run(name, val) for name in place.named()}
    reference = on_val[best_by(on_val, "mean_jct")]
    losses = {name: CHOICE.loss(found, reference) for name, found in on_val.items()}
    policies = dict(tuned)
    lanes: list[str] = []
    if setting.knowledge != "none":
        lanes = lanes_of(place, windows_apart(setting, windows["train"]))
        policies[SHIPPED] = SHIPPED
    losses |= {
        name: CHOICE.loss(place.run(name, val), reference) for name in {*policies.values(), *lanes}
    }
    lane = min(lanes, key=losses.__getitem__, default="")
    # Who was tuned comes first: of equals it is taken.
    policies["chosen"] = min([*policies.values(), *losses], key=losses.__getitem__)

    judge = Judge(setting, windows["report"])
    slowdown, jct = judge.best(place.named())
    rivals = {"slowdown": slowdown, "jct": jct} | ({"lane": lane} if lane else {})
    for policy, scheduler in policies.items():
        for role, rival in rivals.items():
            yield {
                "setting": setting.name,
                "policy": policy,
                "role": role,
                "rival": rival,
                "windows": str(judge.windows),
                "val_loss": repr(losses[scheduler]),
                **judge.against(scheduler, rival),
                "scheduler": scheduler,
            }
    seconds = f"{trained:.0f} s of CPU time to train, {time.process_time() - began - trained:.0f}"
    print(f"{setting.name}: {seconds} to judge", flush=True)


def windows_apart(setting: Setting, train: list[bl.Workload]) -> list[bl.Workload]:
    """Return the windows of TRAIN on which a search chooses among what it has tried."""
    return train[-6:] if setting.long else train[::4]


def lanes_of(place: Place, train: Sequence[bl.Workload]) -> list[str]:
    """Return the best express lanes on TRAIN under the limits that gates are tuned with."""
    few = {
        name: place.run(name, train)
        for name in usable_rivals(HEURISTICS, place.knowledge, preemptive=False)
    }
    reference = few[best_by(few, "mean_jct")]
    loss = {name: TRAINING.loss(place.run(name, train), reference) for name in LANES}
    return sorted(LANES, key=loss.__getitem__)[:LANES_KEPT]


def train(
    setting: Setting, windows: dict[str, list[bl.Workload]], config: SearchConfig, seed: int
) -> str:
    """Return the scheduler that a seed finds on TRAIN; VAL and REPORT are not read here."""
    space = BLIND
    if setting.knowledge != "none":
        space = SPACES["hold"]
        space = near(space, LANE if setting.long else space.values(space.start))
    apart = windows_apart(setting, windows["train"])
    parts = {
        "train": [jobs for jobs in windows["train"] if jobs not in apart],
        "val": apart,
        "report": apart[:2],  # nothing that the search says of them is used
    }
    search = SearchWindows(
        {part: len(found) for part, found in parts.items()},
        lambda key: parts[key[0]][key[1]],
        windows["train"][0],
    )
    with SearchWorkers(search.window, setting.cluster, knowledge=setting.knowledge) as workers:
        summary = Search(
            msgspec.structs.replace(config, seed=seed),
            space,
            search,
            workers,
            rivals=usable_rivals(HEURISTICS, setting.knowledge, preemptive=False),
        ).run()
    assert summary is not None
    return summary["scheduler"]


def rows_of(table: Path) -> list[Row]:
    """Return the rows of the CSV file; none if it is not there."""
    return read_rows(table) if table.exists() else []


def keep(rows: list[Row], table: Path) -> None:
    """Put the rows of a setting into the CSV file, in place of earlier ones."""
    order = [setting.name for setting in SETTINGS]
    others = [row for row in rows_of(table) if row["setting"] != rows[0]["setting"]]
    every = sorted([*others, *rows], key=lambda row: order.index(row["setting"]))
    write_atomically(table, to_csv(every).encode())


def tuned_by(rows: Sequence[Row], setting: Setting) -> dict[str, str]:
    """Return the scheduler that each seed has found, as the CSV file has it."""
    return {
        row["policy"]: row["scheduler"]
        for row in rows
        if row["setting"] == setting.name and row["policy"].startswith("seed")
    }


def near(space: SearchSpace, numbers: Mapping[str, float]) -> SearchSpace:
    """Return the part of a space around a point: a quarter of each range on either side."""
    narrowed = []
    for p in space.parameters:
        share = p.share(min(max(numbers[p.name], p.low), p.high))
        low, high = p.value(share - 0.25), p.value(share + 0.25)
        narrowed.append(dataclasses.replace(p, low=low, high=high, start=p.value(share)))
    return dataclasses.replace(space, parameters=tuple(narrowed))


if __name__ == "__main__":
    sys.exit(main())
