"""What tuned gates gain on real logs over the best heuristics in hindsight and the best lanes;
`make results RESULTS=winning_policy` runs it.

In each setting a gate is tuned with several seeds on the first half of a log. Their average is
used, unless a seed, the shipped policy, a lane or a heuristic is better on VAL windows by more than
a standard error. REPORT windows are read once.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from benchmarks.hindsight import LANES, Place, best_by
from benchmarks.result_files import RESULTS, fill_page, read_rows, write_rows
from benchmarks.winning_choice import averaged, chosen
from benchmarks.winning_figure import draw
from benchmarks.winning_judge import Judge
from benchmarks.winning_page import parts
from benchmarks.winning_settings import LOGS, TRACES, Setting
from benchmarks.winning_spaces import space_of

from berthline.errors import BerthlineError
from berthline.learn.tuning.search import Search, SearchConfig
from berthline.learn.tuning.search_goal import Goal
from berthline.learn.tuning.search_rivals import HEURISTICS, usable_rivals
from berthline.learn.tuning.search_windows import SearchWindows
from berthline.learn.tuning.search_workers import SearchWorkers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.result_files import Row

    import berthline as bl
    from berthline.learn.tuning.search_space import SearchSpace

PAGE = "winning-policy"
FIRST = "winning-policy-first"
"""What another rule chose when REPORT was first read: kept for comparison."""
SHIPPED = "holdback"
SEEDS = (0, 1, 2, 3, 4)
SETTINGS = (
    *(Setting(log, "exact") for log in LOGS),
    Setting("Venus", "exact", long=True),
    *(Setting(log, "history") for log in ("CTC", "Philly")),
    *(Setting(log, known) for known in ("estimates", "none") for log in LOGS),
)

TRAINING = Goal(jct_tolerance=0.005, p99_tolerance=0.05, makespan_tolerance=0.05)
CHOICE = Goal(jct_tolerance=0.02, p99_tolerance=0.10, makespan_tolerance=0.05)
"""VAL is short: a policy that meets strict limits on TRAIN may miss them there by chance."""
ENDLESS = Goal(jct_tolerance=0.01, p99_tolerance=0.05, makespan_tolerance=0.05)
"""The goal of training on one run: in another period mean JCT differs by a percent."""
SHORT = SearchConfig(goal=TRAINING, evaluations=240, population=12, windows=16)
HISTORY = SearchConfig(goal=TRAINING, evaluations=240, population=12, windows=24)
LONG = SearchConfig(goal=ENDLESS, evaluations=60, population=10, windows=2)
LANES_KEPT = 5
BRIEF = {"none": 60, "estimates": 120}
"""Numbers of candidates if there is less to tune or to gain."""


def config_of(setting: Setting) -> SearchConfig:
    """Return how a setting is searched."""
    config = LONG if setting.long else HISTORY if setting.known == "history" else SHORT
    evaluations = BRIEF.get(setting.known, config.evaluations)
    return msgspec.structs.replace(config, evaluations=evaluations)


def main(argv: Sequence[str] | None = None) -> int:
    """Tune, evaluate, and write the CSV file, the figure and the page."""
    parser = argparse.ArgumentParser(prog="winning_policy", description=__doc__)
    parser.add_argument("traces", type=Path, nargs="?", default=TRACES, help="where the logs are")
    parser.add_argument("--from-csv", action="store_true", help="write the page; run nothing")
    parser.add_argument(
        "--only", default="", help="run settings of this name (a pattern); keep others"
    )
    parser.add_argument(
        "--judge-only",
        action="store_true",
        help="reuse the tuned schedulers and rivals of the CSV file",
    )
    options = parser.parse_args(argv)
    table = RESULTS / f"{PAGE}.csv"
    try:
        if not options.from_csv:
            for setting in SETTINGS:
                if re.search(options.only, setting.name):
                    there = rows_of(table) if options.judge_only else []
                    known = tuned_by(there, setting), rivals_in(there, setting)
                    keep(list(measure(setting, options.traces, *known)), table)
        rows = read_rows(table)
        fill_page(PAGE, parts(rows, read_rows(RESULTS / f"{FIRST}.csv")))
        draw(rows, RESULTS / f"{PAGE}.png")
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"written: {PAGE}.csv, .md and .png")
    return 0


def measure(
    setting: Setting,
    folder: Path,
    known: Mapping[str, str],
    rivals: Mapping[str, str],
) -> Iterator[Row]:
    """Yield a row for each policy and each rival.

    Args:
        setting: the setting.
        folder: where the logs are.
        known: schedulers that some seeds have found already, by policy.
        rivals: the rivals, by their roles, if known already.

    Raises:
        BerthlineError: the log is not there, or something cannot be run.
    """
    began = time.process_time()
    windows = setting.windows(folder)
    place = Place(setting.cluster, setting.knowledge)
    config, space = config_of(setting), space_of(setting)
    tuned = {
        name: known.get(name) or train(setting, windows, config, seed, space)
        for name, seed in ((f"seed {seed}", seed) for seed in SEEDS)
    }
    trained = time.process_time() - began

    policies = tuned | {"average": averaged(space, list(tuned.values()))}
    heuristics, val = place.named(), windows["val"]
    if setting.long:
        # In one run, a few dozen jobs decide the slowdown on VAL: TRAIN has more of them.
        heuristics, val = list(references_of(setting)), [*windows["apart"], *val]
    on_val = {name: place.run(name, val) for name in heuristics}
    reference = on_val[best_by(on_val, "mean_jct")]
    if setting.knowledge == "none":
        # There is little to learn; schedulers that are not tuned are also tested on TRAIN.
        on_train = {
            name: place.run(name, [*windows["train"], *windows["apart"]]) for name in heuristics
        }
        theirs = on_train[best_by(on_train, "mean_jct")]
        heuristics.sort(key=lambda name: CHOICE.loss(on_train[name], theirs))
        preferred, lane = [*heuristics, *reversed(policies.values())], ""
    else:
        lanes = [rivals["lane"]] if "lane" in rivals else lanes_of(setting, place, windows["apart"])
        on_val |= {name: place.run(name, val) for name in lanes}
        lane = min(lanes, key=lambda name: CHOICE.loss(on_val[name], reference))
        policies[SHIPPED] = SHIPPED
        preferred = [policies["average"], *tuned.values(), SHIPPED, lane, *heuristics]
    on_val |= {name: place.run(name, val) for name in policies.values()}
    policies["chosen"] = chosen(preferred, on_val, reference, CHOICE)

    judge = Judge(setting, windows["report"])
    if not rivals:
        slowdown, jct = judge.best(place.named())
        rivals = {"slowdown": slowdown, "jct": jct}
    if lane:
        rivals = {**rivals, "lane": lane}
    for policy, scheduler in policies.items():
        for role, rival in rivals.items():
            yield {
                "setting": setting.name,
                "policy": policy,
                "role": role,
                "rival": rival,
                "windows": str(judge.windows),
                "val_loss": repr(CHOICE.loss(on_val[scheduler], reference)),
                **judge.against(scheduler, rival),
                "scheduler": scheduler,
            }
    seconds = f"{trained:.0f} s of CPU time to train, {time.process_time() - began - trained:.0f}"
    print(f"{setting.name}: {seconds} to evaluate", flush=True)


def references_of(setting: Setting) -> Sequence[str]:
    """Return schedulers, one with (nearly) the lowest mean JCT: limits are relative to it."""
    if setting.long:  # others are much worse there, and slow
        return ("smallest-area+easy@best-fit", "sqrt-area+easy@best-fit")
    return usable_rivals(HEURISTICS, setting.knowledge, preemptive=False)


def lanes_of(setting: Setting, place: Place, apart: Sequence[bl.Workload]) -> list[str]:
    """Return the best express lanes on TRAIN under the limits that gates are tuned with."""
    few = {name: place.run(name, apart) for name in references_of(setting)}
    reference, goal = few[best_by(few, "mean_jct")], config_of(setting).goal
    loss = {name: goal.loss(place.run(name, apart), reference) for name in LANES}
    return sorted(LANES, key=loss.__getitem__)[:LANES_KEPT]


def train(
    setting: Setting,
    windows: dict[str, list[bl.Workload]],
    config: SearchConfig,
    seed: int,
    space: SearchSpace,
) -> str:
    """Return the scheduler that a seed finds on TRAIN; VAL and REPORT are not read here."""
    parts = {
        "train": windows["train"],
        "val": windows["apart"],
        "report": windows["apart"][:2],  # the search's results on them are not used
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
            rivals=references_of(setting),
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
    write_rows(table, every)


def tuned_by(rows: Sequence[Row], setting: Setting) -> dict[str, str]:
    """Return the scheduler that each seed has found, from the CSV file."""
    return {
        row["policy"]: row["scheduler"]
        for row in rows
        if row["setting"] == setting.name and row["policy"].startswith("seed")
    }


def rivals_in(rows: Sequence[Row], setting: Setting) -> dict[str, str]:
    """Return the rivals by their roles, from the CSV file."""
    return {row["role"]: row["rival"] for row in rows if row["setting"] == setting.name}


if __name__ == "__main__":
    sys.exit(main())
