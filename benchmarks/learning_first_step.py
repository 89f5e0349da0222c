"""The default task: its rules, a bound, and what learning algorithms make of it.

`make results RESULTS=learning_first_step` trains PPO, D3QN and SAC with default settings, the PPO
of examples/cleanrl_ppo.py and sb3-contrib's MaskablePPO of examples/sb3_maskable_ppo.py, five seeds
each, and writes docs/results/learning-first-step.md. Complete runs in --runs are used as they are,
and interrupted ones are resumed.
"""

from __future__ import annotations

import argparse
import json
import re
import runpy
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import berthline as bl
from berthline.cli.main import main as berthline
from berthline.env.vector import SchedulingVectorEnv
from berthline.evaluate.bounds import jct_lower_bound
from berthline.evaluate.statistics.paired import paired_ratio, verdict
from berthline.learn.training.episode_seeds import REPORT_SEED
from berthline.policies.orders import ORDERS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/results/learning-first-step.md"
OWN = ("ppo", "d3qn", "sac")
STEPS = {"ppo": 130_000, "d3qn": 30_000, "sac": 30_000}
"""Fewer than the defaults where these are for rewards without credit."""
EXAMPLES = {
    "cleanrl_ppo": ("examples/cleanrl_ppo.py", 200_000),
    "sb3_maskable_ppo": ("examples/sb3_maskable_ppo.py", 60_000),
}
"""The file of each example, and its steps."""
NAMES = {
    "ppo": "PPO",
    "d3qn": "D3QN",
    "sac": "SAC",
    "cleanrl_ppo": "PPO in one file",
    "sb3_maskable_ppo": "MaskablePPO, default settings",
}
SEEDS = (3, 4, 5, 6, 7)
"""The defaults were chosen with the seeds 0, 1 and 2, so others are reported."""
EPISODES = range(REPORT_SEED, REPORT_SEED + 192)
SHORT = ("--episodes", "128", "--against", "sjf+easy", "--test-seeds", "0,1")
"""Nothing is made of a run's own REPORT: all policies play EPISODES here."""


def main() -> int:
    """Train what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where the runs are")
    parser.add_argument("--only", choices=NAMES, help="only train this, and write nothing")
    parser.add_argument("--page", action="store_true", help="train nothing, write the page")
    given = parser.parse_args()
    for name in [] if given.page else [given.only] if given.only else NAMES:
        if not (train(name, given.runs) if name in OWN else run_example(name, given.runs)):
            return 1
    if given.only:
        return 0
    episodes, rules = rules_of_the_task(given.runs)
    parts = {
        "task": task_table(rules, episodes),
        "algorithms": "\n\n".join(
            algorithm_table(name, given.runs / name, rules)
            for name in NAMES
            if scores(given.runs / name)
        ),
        "summary": summary_table(given.runs, rules),
    }
    text = PAGE.read_text(encoding="utf-8")
    for name, found in parts.items():
        part = rf"(<!-- computed: {name} -->\n).*?(<!-- end computed: {name} -->)"
        text = re.sub(part, lambda m, t=found: f"{m[1]}\n{t}\n\n{m[2]}", text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")
    return draw(given.runs)


def train(name: str, runs: Path) -> bool:
    """Train one of OWN unless it is complete, and play its policies."""
    for seed in SEEDS:
        out, file = runs / name / f"seed-{seed}", runs / name / f"scores-{seed}.npz"
        if not (out / "summary.json").is_file():
            resume = ["--resume"] if (out / "config.toml").is_file() else []
            words = [
                "train",
                name,
                "--seed",
                str(seed),
                "--steps",
                str(STEPS[name]),
                *SHORT,
                "--out",
                str(out),
            ]
            if berthline([*words, *resume]) != 0:
                return False
        if not file.is_file():
            np.savez(file, **scores_of_run(out))
    return True


def scores_of_run(run: Path) -> dict[str, np.ndarray]:
    """Return mean JCTs on EPISODES: of the best checkpoint, greedy, and of the last one, sampled.

    VAL is played with most probable actions, so it says nothing about how sharp a policy is.
    """
    import torch

    from berthline.learn.networks.masked_actions import MaskedCategorical
    from berthline.learn.networks.networks import Network, NetworkConfig
    from berthline.learn.training import checkpoint
    from berthline.learn.training.environments import Environments

    found = {"steps": json.loads((run / "summary.json").read_text())["steps"]}
    for way, which in (("greedy", "best"), ("sampled", "last")):
        envs = Environments("pick", num=len(EPISODES), seed=list(EPISODES), options={})
        best = checkpoint.load(checkpoint.find(run / "checkpoints", which))
        config = NetworkConfig(**best.facts["config"]["network"])
        network = Network.load(envs.layout, config, best.part("policy"))
        draws = torch.Generator().manual_seed(0)
        jct = np.full(len(EPISODES), np.nan)
        while np.isnan(jct).any():
            with torch.no_grad():
                scores, _ = network(torch.from_numpy(envs.observations))
            chances = MaskedCategorical(scores[..., 0], torch.from_numpy(envs.masks))
            actions = chances.mode() if way == "greedy" else chances.sample(draws)
            _, terminated, truncated = envs.step(actions.numpy())
            over = np.flatnonzero((terminated | truncated) & np.isnan(jct))
            if over.size:
                jct[over] = envs.scores(over)["mean_jct"]
        found[way] = jct
    return found


def run_example(name: str, runs: Path) -> bool:
    """Run an example with every seed, and play its agents, unless that was done."""
    file, steps = EXAMPLES[name]
    for seed in SEEDS:
        out = runs / name / f"scores-{seed}.npz"
        if out.is_file():
            continue
        words, sys.argv = sys.argv, [file, str(steps), str(seed)]
        began = time.process_time()
        try:
            its = runpy.run_path(str(ROOT / file))
        finally:
            sys.argv = words
        seconds = time.process_time() - began
        found = {way: its["judge"](its[way], EPISODES) for way in ("greedy", "sampled")}
        out.parent.mkdir(parents=True, exist_ok=True)
        np.savez(out, steps=steps, seconds=seconds, **found)
    return True


def rules_of_the_task(runs: Path) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Return facts of the task, and mean JCTs of every rule, of random ranks and of a bound."""
    file = runs / "rules.npz"
    if not file.is_file():
        envs = SchedulingVectorEnv(len(EPISODES), "pick")
        envs.reset(seed=list(EPISODES))
        jobs, cluster = [envs.workload(i) for i in range(len(EPISODES))], envs.plan.cluster
        found = {}
        knowledge = envs.plan.options.knowledge
        for rule in ("fcfs+skip", *(f"{order}+easy" for order in ORDERS)):
            found[rule] = np.array(
                [
                    bl.simulate(own, cluster, f"{rule}@best-fit", knowledge=knowledge)
                    .metrics()
                    .jct.mean
                    for own in jobs
                ]
            )
        found["lower bound"] = np.array(
            [jct_lower_bound(own, cluster).total / len(own) for own in jobs]
        )
        for way in ("random", "first"):
            found |= {f"{way}: {what}": value for what, value in played(way).items()}
        runs.mkdir(parents=True, exist_ok=True)
        np.savez(file, **found)
    with np.load(file) as kept:
        found = dict(kept)
    facts = {k: float(v) for k, v in found.items() if v.ndim == 0}
    return facts, {k: v for k, v in found.items() if v.ndim == 1}


def played(way: str) -> dict[str, np.ndarray]:
    """Return JCTs and returns of random or of first allowed actions, and facts of the questions."""
    envs = SchedulingVectorEnv(len(EPISODES), "pick")
    envs.reset(seed=list(EPISODES))
    draws = np.random.default_rng(0)
    total, jct = np.zeros(len(EPISODES)), np.full(len(EPISODES), np.nan)
    steps = choices = shown = 0
    while np.isnan(jct).any():
        masks, open_ = envs.action_masks(), np.isnan(jct)
        allowed = masks.sum(axis=1)[open_]
        steps, choices, shown = (
            steps + len(allowed),
            choices + (allowed > 1).sum(),
            shown + allowed.sum(),
        )
        noise = draws.random(masks.shape) if way == "random" else np.ones(masks.shape)
        _, reward, terminated, truncated, infos = envs.step(np.where(masks, noise, -1).argmax(1))
        total[open_] += reward[open_]
        over = (terminated | truncated) & open_
        if over.any():
            jct[over] = infos["final_info"]["sched"]["mean_jct"][over]
    return {
        "jct": jct,
        "return": total,
        "steps": np.array(steps / len(EPISODES)),
        "share of choices": np.array(choices / steps),
        "actions": np.array(shown / steps),
    }


def best_rule(rules: dict[str, np.ndarray]) -> str:
    """Return the best of all named orders under EASY on these episodes, in hindsight."""
    return min((rule for rule in rules if rule.endswith("+easy")), key=lambda r: rules[r].mean())


def task_table(rules: dict[str, np.ndarray], facts: dict[str, float]) -> str:
    """Return the facts of the task and its rules, as Markdown."""
    best = best_rule(rules)
    ordered = sorted((r for r in rules if r.endswith("+easy")), key=lambda r: rules[r].mean())
    rows = [
        ("lower bound, which no schedule beats", rules["lower bound"]),
        *((f"`{rule}`", rules[rule]) for rule in ordered[:5]),
        ("`fcfs+easy`", rules["fcfs+easy"]),
        ("the first job in the queue that can start: `fcfs+skip`", rules["fcfs+skip"]),
        ("random ranks", rules["random: jct"]),
    ]
    # The reward is minus the mean wait in hours: JCT less the mean run time, which is the same.
    run = rules["random: jct"].mean() + rules["random: return"].mean() * 3600
    lines = [
        f"Over {len(EPISODES)} REPORT episodes, random ranks are asked "
        f"{facts['random: steps']:.0f} questions an episode, with "
        f"{facts['random: actions']:.1f} jobs\nto choose from; "
        f"{facts['random: share of choices']:.0%} of the questions have more than one answer.",
        "",
        "| | mean JCT, s | return | mean JCT against the best rule |",
        "| --- | ---: | ---: | --- |",
    ]
    for label, values in rows:
        against = "" if values is rules[best] else verdict(paired_ratio(values, rules[best]))
        lines.append(
            f"| {label} | {values.mean():,.0f} | {(run - values.mean()) / 3600:.3f} | {against} |"
        )
    return "\n".join(lines)


def scores(directory: Path) -> dict[int, dict[str, np.ndarray]]:
    """Return what was kept of each seed that is complete."""
    found = {}
    for seed in SEEDS:
        file = directory / f"scores-{seed}.npz"
        if file.is_file():
            with np.load(file) as kept:
                found[seed] = dict(kept)
    return found


def ways(name: str) -> tuple[str, ...]:
    """Return how policies act: D3QN has values of actions, not probabilities."""
    return ("greedy",) if name == "d3qn" else ("greedy", "sampled")


def algorithm_table(name: str, directory: Path, rules: dict[str, np.ndarray]) -> str:
    """Return the seeds of an algorithm against the rules, as Markdown."""
    best, found = best_rule(rules), scores(directory)
    lines = [
        f"### {NAMES[name]}",
        "",
        f"{int(next(iter(found.values()))['steps']):,} steps each.",
        "",
        f"| seed | | mean JCT, s | against `{best}` | against `fcfs+easy` | against `fcfs+skip` |",
        "| ---: | --- | ---: | --- | --- | --- |",
    ]
    for seed, own in found.items():
        for way in ways(name):
            words = (
                verdict(paired_ratio(own[way], rules[rule]))
                for rule in (best, "fcfs+easy", "fcfs+skip")
            )
            lines.append(f"| {seed} | {way} | {own[way].mean():,.0f} | {' | '.join(words)} |")
    return "\n".join(lines)


def summary_table(runs: Path, rules: dict[str, np.ndarray]) -> str:
    """Return the worst and the best seed of every algorithm against the best rule."""
    best = rules[best_rule(rules)].mean()
    lines = [
        "| | steps | seeds | greedy: best | worst | sampled: best | worst | within 0.5 % |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, label in NAMES.items():
        found = list(scores(runs / name).values())
        if not found:
            continue
        cells, good = [f"{int(found[0]['steps']):,}", str(len(found))], []
        for way in ("greedy", "sampled"):
            if way not in ways(name):
                cells += ["-", "-"]
                continue
            each = [own[way].mean() / best - 1 for own in found]
            cells += [f"{100 * min(each):+.2f} %", f"{100 * max(each):+.2f} %"]
            within = sum(one <= 0.005 for one in each)
            good.append(f"{way}: {within} of {len(each)}")
        lines.append(f"| {label} | {' | '.join(cells)} | {', '.join(good)} |")
    return "\n".join(lines)


def draw(runs: Path) -> int:
    """Draw the learning curves of our own algorithms, the seeds of each together."""
    with tempfile.TemporaryDirectory() as directory:
        curves = []
        for name in OWN:
            for seed in scores(runs / name):
                copy = Path(directory) / f"{name}-{seed}.csv"
                curves.append(str(shutil.copy(runs / name / f"seed-{seed}" / "curve.csv", copy)))
        figure = PAGE.with_suffix(".png")
        return berthline(["report", "curve", *curves, "--y", "mean_jct", "--out", str(figure)])


if __name__ == "__main__":
    sys.exit(main())
