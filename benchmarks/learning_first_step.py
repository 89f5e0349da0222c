"""Learning curves with default settings, and the policies' results on fresh seeds.

`make results RESULTS=learning_first_step` trains PPO on Pick and on Gate, D3QN, SAC and Meta-DQN
with several seeds each, and writes docs/results/learning-first-step.md; complete runs in --runs are
used as they are, and interrupted ones are resumed.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from berthline.cli.main import main as berthline

PAGE = Path(__file__).resolve().parents[1] / "docs/results/learning-first-step.md"
RUNS = {
    "ppo-pick": "ppo --seed 3 --seeds 3",
    "d3qn": "d3qn --seed 3 --seeds 3",
    "sac": "sac --seed 3 --seeds 3",
    "meta-dqn": "meta-dqn --env Meta --seed 3 --seeds 3",
    "ppo-gate": "ppo --env Gate --seed 3 --seeds 3",
}
"""What is trained: words of `berthline train`; settings and steps are the defaults.

The defaults were chosen with the seeds 0, 1 and 2, so others are reported."""
FIGURES = {
    "": ("mean_jct", ("ppo-pick", "d3qn", "sac", "meta-dqn")),
    "-gate": ("mean_bounded_slowdown", ("ppo-gate",)),
}
RIVALS = ("fcfs", "random action", "random+skip", "fcfs+easy", "sjf+easy")
GATE_BASE = "sqrt-area+easy@best-fit"
GATE_RIVALS = ("fcfs", "random action", GATE_BASE, f"{GATE_BASE}?express-lane:T=3600:r=0.1")
METRICS = {
    "mean_bounded_slowdown": "bounded slowdown",
    "mean_jct": "mean JCT",
    "p99_jct": "p99 JCT",
}


def main() -> int:
    """Train what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where the runs are")
    parser.add_argument("--only", choices=RUNS, help="only train this, and write nothing")
    parser.add_argument(
        "--from-csv", action="store_true", help="draw the figures again; train nothing"
    )
    given = parser.parse_args()
    if given.from_csv:
        for ending in FIGURES:
            draw_again(PAGE.with_name(f"{PAGE.stem}{ending}.csv"))
        return 0
    for name in [given.only] if given.only else RUNS:
        if not train(name, given.runs / name):
            return 1
    if given.only:
        return 0
    text = PAGE.read_text(encoding="utf-8")
    for name in RUNS:
        summary = json.loads((given.runs / name / "summary.json").read_text(encoding="utf-8"))
        part = rf"(<!-- computed: {name} -->\n).*?(<!-- end computed: {name} -->)"
        began = curves(given.runs / name)
        found = gate_table(summary, began) if name == "ppo-gate" else table(summary, began)
        text = re.sub(part, rf"\g<1>\n{found}\n\g<2>", text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")
    return max(draw(ending, *what, given.runs) for ending, what in FIGURES.items())


def train(name: str, out: Path) -> bool:
    """Train one of RUNS, unless it is complete."""
    if (out / "summary.json").is_file():
        return True
    resume = ["--resume"] if (out / "config.toml").is_file() else []
    return berthline(["train", *RUNS[name].split(), "--out", str(out), *resume]) == 0


def draw(ending: str, metric: str, names: tuple[str, ...], runs: Path) -> int:
    """Draw curves, the seeds of each together."""
    with tempfile.TemporaryDirectory() as directory:
        curves = []
        for name in names:
            for seed in sorted((runs / name).glob("seed-*")):
                copy = Path(directory) / f"{name}-{seed.name.removeprefix('seed-')}.csv"
                curves.append(str(shutil.copy(seed / "curve.csv", copy)))
        figure = PAGE.with_name(f"{PAGE.stem}{ending}.png")
        return berthline(["report", "curve", *curves, "--y", metric, "--out", str(figure)])


def draw_again(table: Path) -> None:
    """Draw a figure from the table beside it."""
    import polars as pl

    from berthline.report.figures.drawing import save_figure
    from berthline.report.figures.training_curve import draw as drawn

    save_figure(drawn(pl.read_csv(table)), table.with_suffix(".png"))


def curves(path: Path) -> list[list[dict[str, float]]]:
    """Return the validations of every seed, in order."""
    return [
        [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
        for seed in sorted(path.glob("seed-*"))
        for file in [(seed / "curve.csv").read_text(encoding="utf-8").splitlines()]
    ]


def table(summary: dict, validations: list[list[dict[str, float]]]) -> str:
    """Return the seeds' mean JCT on REPORT, as Markdown."""
    runs = summary["runs"]
    seeds = " | ".join(f"seed {run['seed']}" for run in runs)
    lines = [
        head(runs, validations, "mean_jct"),
        "",
        f"| mean JCT against | its mean, s | {seeds} |",
        "| --- | ---: |" + " --- |" * len(runs),
    ]
    for name in RIVALS:
        found = [run["report"]["against"][name]["mean_jct"] for run in runs]
        verdicts = " | ".join(entry["verdict"] for entry in found)
        lines.append(f"| {name} | {found[0]['mean']:,.0f} | {verdicts} |")
    return "\n".join(lines) + "\n"


def gate_table(summary: dict, validations: list[list[dict[str, float]]]) -> str:
    """Return the same for the gate, with the slowdown that it lowers and what that costs."""
    runs = summary["runs"]
    seeds = " | ".join(f"seed {run['seed']}" for run in runs)
    lines = [
        head(runs, validations, "mean_bounded_slowdown"),
        "",
        f"| against | in | its mean | {seeds} |",
        "| --- | --- | ---: |" + " --- |" * len(runs),
    ]
    for name in GATE_RIVALS:
        for metric, label in METRICS.items():
            found = [run["report"]["against"][name][metric] for run in runs]
            verdicts = " | ".join(entry["verdict"] for entry in found)
            lines.append(f"| {name} | {label} | {found[0]['mean']:,.1f} | {verdicts} |")
    return "\n".join(lines) + "\n"


def head(runs: list[dict], validations: list[list[dict[str, float]]], metric: str) -> str:
    """Return the training steps, the best policies on VAL, and what they gained."""
    steps = [int(run["best_checkpoint"].removeprefix("best-")) for run in runs]
    best = ", ".join(f"{step:,}" for step in steps)
    name = METRICS[metric]
    gains = "; ".join(
        f"{rows[0][metric]:,.4g} to {row[metric]:,.4g}"
        for rows, step in zip(validations, steps, strict=True)
        for row in rows
        if row["step"] == step
    )
    return (
        f"{runs[0]['steps']:,} steps each; the best policies on VAL are those after {best} steps.\n"
        f"From the first step to them, {name} on VAL went from {gains}.\n"
        f"On {runs[0]['report']['episodes']} REPORT episodes:"
    )


if __name__ == "__main__":
    sys.exit(main())
