"""The main claim of each of five published systems, trained with five seeds and compared with the
best simple rule; `make results RESULTS=five_headlines` runs it.

Every run is a command of `berthline train` with a preset, whose recipe has all settings. Complete
runs in --runs are used as they are, and interrupted ones are resumed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.result_files import RESULTS, fill_page, read_rows, write_rows

from berthline.cli.main import main as berthline
from berthline.errors import BerthlineError, ConfigError
from berthline.evaluate.statistics.t_distribution import t_quantile
from berthline.learn.training.validation import EpisodeSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.result_files import Row

PAGE = "five-headlines"
SEEDS = (3, 4, 5, 6, 7)
"""The recipes were settled with the seed 0."""
RANDOM = "random action"
PLACED = tuple(f"fcfs+skip@{rule}" for rule in ("first-available", "best-fit", "worst-fit"))


@dataclasses.dataclass(frozen=True)
class Headline:
    """A main claim.

    Attributes:
        name: of the run.
        system: that makes the claim.
        command: words of `berthline train`.
        claim: in words.
        figure: the system's own.
        metric: what the claim is about here: `return`, or a metric of episodes.
        over: rules that the claim says are beaten.
        regimes: whether it is about the 48 regimes.
    """

    name: str
    system: str
    command: str
    claim: str
    figure: str
    metric: str
    over: tuple[str, ...]
    regimes: bool = False


HEADLINES = (
    Headline(
        name="rltune",
        system="RLTune",
        command="ppo --preset rltune",
        claim="PPO that does not know run times beats the baselines",
        figure="up to 81 % less queueing delay, and up to 70 % less JCT (paper)",
        metric="mean_wait",
        over=("fcfs",),
    ),
    Headline(
        name="drl-scheduler-sac",
        system="DRL_Scheduler",
        command="sac --preset drl-scheduler-busy",
        claim="SAC has a lower JCT than FCFS and SJF",
        figure="32 % below FCFS on its medium trace (874,723 s against 1,288,550 s), averaged over "
        "finished jobs; SJF could finish 16 jobs",
        metric="mean_jct",
        over=("fcfs+skip", "sjf+skip"),
    ),
    Headline(
        name="rlmetadqn",
        system="RLMetaDQN",
        command="meta-dqn --preset rlmetadqn",
        claim="trained in one regime, it is 1 to 2 % from the best fixed heuristic in 48 of them",
        figure="1 to 2 %, of a JCT that counts from the start and is the same for all schedulers",
        metric="mean_jct",
        over=(),
        regimes=True,
    ),
    Headline(
        name="lsf",
        system="lsf_autohost",
        command="ppo --preset lsf-busy",
        claim="PPO picks better hosts than First-Available",
        figure="none is published",
        metric="mean_wait",
        over=("fcfs+skip@first-available",),
    ),
    Headline(
        name="lookahead",
        system="gpu-optimizer",
        command="ppo --preset lookahead",
        claim="PPO with a look-ahead scores higher than its best baseline, SJF",
        figure="0.615 against 0.529; one start per event, and other episodes for the baselines",
        metric="return",
        over=("sjf+skip", "fcfs+skip"),
    ),
)
LOADS = (
    ("pick", "drl-scheduler", ("fcfs+skip", "static-priority+skip", "sjf+skip")),
    ("pick", "drl-scheduler-busy", ("fcfs+skip", "static-priority+skip", "sjf+skip")),
    ("place", "lsf", PLACED),
    ("place", "lsf-busy", PLACED),
)
"""Seat, preset, and rules that differ in the seat only."""
LOAD_EPISODES = 32
BLANK = {"gap": "", "worst_gap": "", "as_good": "", "wait": ""}
"""Columns that only some rows have."""

LABELS = {"mean_wait": "mean wait, s", "mean_jct": "mean JCT, s", "return": "score"}


def trained(runs: Path, headline: Headline, seed: int) -> Path:
    """Return the directory of a run, which is made or resumed if it is not complete.

    Raises:
        ConfigError: training failed.
    """
    out = runs / f"{headline.name}-{seed}"
    if not (out / "summary.json").is_file():
        command = ["train", *shlex.split(headline.command), "--seed", str(seed), "--out", str(out)]
        resume = ["--resume"] if (out / "config.toml").is_file() else []
        if berthline([*command, *resume]):
            raise ConfigError("training failed", where=str(out))
    return out


def _is_complete(runs: Path, headline: Headline, seed: int) -> bool:
    return (runs / f"{headline.name}-{seed}" / "summary.json").is_file()


def regimes_of(path: Path) -> dict[str, Any]:
    """Return the evaluation of a policy over the regimes, made once.

    Raises:
        ConfigError: the evaluation failed.
    """
    out = path.with_name(f"{path.name}-regimes")
    if not (out / "summary.json").is_file() and berthline(
        ["eval", str(path), "--regimes", "--metric", "jct_mean", "--out", str(out), "--force"]
    ):
        raise ConfigError("the evaluation over regimes failed", where=str(out))
    found: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return found


def rows_of(runs: Path, headline: Headline, seed: int) -> Iterator[Row]:
    """Yield a row for the policy of a run, and one for each rule on the same episodes."""
    path = trained(runs, headline, seed)
    summary = json.loads((path / "summary.json").read_text())
    report = summary["report"]
    same = {
        "headline": headline.name,
        "seed": str(seed),
        "steps": str(summary["steps"]),
        "best_step": summary["best_checkpoint"].partition("-")[2].lstrip("0") or "0",
        "episodes": str(report["episodes"]),
    }
    if headline.regimes:
        found = regimes_of(path)
        for name in (found["run"], *found["schedulers"]):
            is_ours = name == found["run"]
            means = [regime["means"][name] for regime in found["regimes"]]
            yield {
                **same,
                "scheduler": "policy" if is_ours else name,
                "value": f"{math.exp(float(np.mean(np.log(means)))):.6g}",
                **BLANK,
                "gap": f"{_gap(found, name):.6g}",
                "worst_gap": f"{found['worst_ratio'] - 1:.6g}" if is_ours else "",
                "as_good": str(found["as_good"]) if is_ours else "",
            }
        return
    values = {"policy": _value(report["policy"], report["return"], "policy", headline.metric)}
    for name, rule in report["against"].items():
        means = {metric: found["mean"] for metric, found in rule.items()}
        values[name] = _value(means, report["return"], name, headline.metric)
    for name, value in values.items():
        shown = "" if value is None else f"{value:.6g}"
        yield {**same, "scheduler": name, "value": shown, **BLANK}


def load_rows() -> Iterator[Row]:
    """Yield a row for each rule of LOADS, with its mean wait."""
    for seat, preset, rules in LOADS:
        options = (
            {"preset": preset, "episode_jobs": 1000} if preset == "lsf" else {"preset": preset}
        )
        episodes = EpisodeSet(seat, options, part="report", episodes=LOAD_EPISODES)
        for scores in episodes.heuristics(rules):
            yield {
                "headline": f"rules on {preset}",
                "seed": "",
                "steps": "",
                "best_step": "",
                "episodes": str(LOAD_EPISODES),
                "scheduler": scores.name,
                "value": f"{scores.mean('mean_jct'):.6g}",
                **BLANK,
                "wait": f"{scores.mean('mean_wait'):.6g}",
            }


def _value(
    means: dict[str, float], returns: dict[str, float | None], name: str, metric: str
) -> float | None:
    return returns[name] if metric == "return" else means[metric]


def _gap(found: dict[str, Any], name: str) -> float:
    """Return how far a scheduler is from the best fixed one, over all regimes."""
    logs = [math.log(one["means"][name] / one["means"][one["best"]]) for one in found["regimes"]]
    return math.expm1(float(np.mean(logs)))


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean over training seeds and its 95 % interval, by Student's t."""
    mean = float(np.mean(values))
    half = t_quantile(0.975, len(values) - 1) * float(np.std(values, ddof=1)) / len(values) ** 0.5
    return mean, mean - half, mean + half


def parts(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the computed parts of the page."""
    found = {"claims": [_CLAIMS_HEAD, "| --- " * 5 + "|"]}
    for headline in HEADLINES:
        own = [row for row in rows if row["headline"] == headline.name]
        if not own:
            continue
        found["claims"].append(_claim(headline, own))
        found[headline.name] = _detail(headline, own)
    found["loads"] = [
        "| preset | rule | mean wait, s | mean JCT, s |",
        "| --- | --- | ---: | ---: |",
        *(
            f"| `{preset}` | `{row['scheduler']}` | {float(row['wait']):,.1f} | "
            f"{float(row['value']):,.1f} |"
            for _, preset, _ in LOADS
            for row in rows
            if row["headline"] == f"rules on {preset}"
        ),
    ]
    return found


_CLAIMS_HEAD = (
    "| system | its claim, and its figure | ours, mean over seeds | best simple rule | verdict |"
)


def _of(rows: Sequence[Row], name: str, column: str = "value") -> list[float]:
    return [float(row[column]) for row in rows if row["scheduler"] == name and row[column]]


def _rules(rows: Sequence[Row]) -> dict[str, float]:
    """Return the mean of each rule; the episodes are the same for all seeds."""
    names = dict.fromkeys(row["scheduler"] for row in rows if row["scheduler"] != "policy")
    return {name: float(np.mean(_of(rows, name))) for name in names if _of(rows, name)}


def _untrained(rows: Sequence[Row]) -> int:
    return sum(row["scheduler"] == "policy" and row["best_step"] == "0" for row in rows)


def best_rule(headline: Headline, rows: Sequence[Row]) -> tuple[str, float]:
    """Return the rule with the best value; random actions do not count."""
    rules = {name: value for name, value in _rules(rows).items() if name != RANDOM}
    choose = max if headline.metric == "return" else min
    name = choose(rules, key=lambda one: rules[one])
    return name, rules[name]


def verdict(headline: Headline, rows: Sequence[Row]) -> str:
    """Return whether the claim holds here, and how the policy compares with the best rule."""
    seeds = sum(row["scheduler"] == "policy" for row in rows)
    if _untrained(rows) == seeds:
        return "no seed learned anything: the network before the first step stays the best on VAL"
    name, best = best_rule(headline, rows)
    if headline.regimes:
        return _verdict_on_regimes(rows)
    ours = _of(rows, "policy")
    rules = _rules(rows)
    words: list[str] = []
    words += [f"{_words(headline, ours, rules[rule])} `{rule}`" for rule in headline.over]
    if name not in headline.over:
        words.append(f"{_words(headline, ours, best)} the best rule, `{name}`")
    lost = _untrained(rows)
    note = f"; {lost} of {seeds} seeds kept the untrained network" if lost else ""
    return "; ".join(words) + note


def _words(headline: Headline, ours: Sequence[float], theirs: float) -> str:
    _, low, high = interval(ours)
    better = low > theirs if headline.metric == "return" else high < theirs
    worse = high < theirs if headline.metric == "return" else low > theirs
    change = float(np.mean(ours)) / theirs - 1
    return f"{'beats' if better else 'loses to' if worse else 'not distinguishable from'}" + (
        f" ({100 * change:+.1f} %)"
    )


def _verdict_on_regimes(rows: Sequence[Row]) -> str:
    mean, low, high = interval(_of(rows, "policy", "gap"))
    good = _of(rows, "policy", "as_good")
    return (
        f"{100 * mean:+.2f} % [{100 * low:.2f}, {100 * high:.2f}] from the best fixed scheduler of "
        f"each regime; not worse in {min(good):.0f} to {max(good):.0f} of 48"
    )


def _number(metric: str, value: float) -> str:
    return f"{value:.3f}" if metric == "return" else f"{value:,.1f}"


def _claim(headline: Headline, rows: Sequence[Row]) -> str:
    mean, low, high = interval(_of(rows, "policy"))
    name, best = best_rule(headline, rows)
    label = LABELS[headline.metric]
    if headline.regimes:
        label += ", geometric mean"
    metric = headline.metric
    cells = (
        headline.system,
        f"{headline.claim}. *{headline.figure}*",
        f"{label}: {_number(metric, mean)} [{_number(metric, low)}, {_number(metric, high)}]",
        f"`{name}`: {_number(metric, best)}",
        verdict(headline, rows),
    )
    return "| " + " | ".join(cells) + " |"


def _detail(headline: Headline, rows: Sequence[Row]) -> list[str]:
    ours = [row for row in rows if row["scheduler"] == "policy"]
    metric = headline.metric
    label = LABELS[metric]
    steps = ", ".join(f"{int(row['best_step']):,}" for row in ours)
    where = (
        f"Geometric means over 48 regimes of {LABELS[metric]}"
        if headline.regimes
        else f"{ours[0]['episodes']} REPORT episodes"
    )
    found = [
        "<!-- not run: it learns for minutes -->",
        "```console",
        f"$ berthline train {headline.command} --seed {SEEDS[0]} --seeds {len(SEEDS)} --out runs/"
        f"{headline.name}",
        "```",
        "",
        *([] if len(ours) == len(SEEDS) else [f"Only {len(ours)} of the seeds so far.", ""]),
        f"{int(ours[0]['steps']):,} steps each; the best policies on VAL are those after {steps} "
        f"steps. {where}:",
        "",
        f"| scheduler | {label} |"
        + (" from the best of each regime |" if headline.regimes else ""),
        "| --- | ---: |" + (" ---: |" if headline.regimes else ""),
    ]
    names: dict[str, float] = {
        f"policy, seed {row['seed']}" + (" (untrained)" if row["best_step"] == "0" else ""): float(
            row["value"]
        )
        for row in ours
    }
    gaps = {
        name: float(row["gap"]) for name, row in zip(names, ours, strict=True) if headline.regimes
    }
    for name, value in _rules(rows).items():
        names[f"`{name}`"] = value
        if headline.regimes:
            gaps[f"`{name}`"] = float(np.mean(_of(rows, name, "gap")))
    order = sorted(names, key=lambda one: names[one], reverse=metric == "return")
    for name in order:
        gap = f" {100 * gaps[name]:+.2f} % |" if headline.regimes else ""
        found.append(f"| {name} | {_number(metric, names[name])} |{gap}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing, and write the CSV file and the page."""
    parser = argparse.ArgumentParser(prog="five_headlines", description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs/five-headlines"))
    parser.add_argument("--only", choices=[one.name for one in HEADLINES])
    parser.add_argument("--seed", type=int, choices=SEEDS, help="only train; write nothing")
    parser.add_argument("--finished", action="store_true", help="train nothing; use what is there")
    parser.add_argument("--from-csv", action="store_true", help="write the page; run nothing")
    options = parser.parse_args(argv)
    table = RESULTS / f"{PAGE}.csv"
    chosen = [one for one in HEADLINES if options.only in (None, one.name)]
    try:
        if options.seed is not None or options.only is not None:
            for seed in SEEDS if options.seed is None else (options.seed,):
                for headline in chosen:
                    list(rows_of(options.runs, headline, seed))
            return 0
        if not options.from_csv:
            runs = [
                (headline, seed)
                for headline in HEADLINES
                for seed in SEEDS
                if not options.finished or _is_complete(options.runs, headline, seed)
            ]
            found = [row for run in runs for row in rows_of(options.runs, *run)]
            write_rows(table, [*found, *load_rows()])
        fill_page(PAGE, parts(read_rows(table)))
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"written: {PAGE}.csv and .md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
