"""Learning curves of PPO with default settings, and what its policies are worth on fresh seeds.

`make results RESULTS=learning_first_step` trains on Pick and on Gate, for some minutes, and writes
docs/results/learning-first-step.md; runs that are complete in --runs are taken as they are.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

from berthline.cli.main import main as berthline

PAGE = Path(__file__).resolve().parents[1] / "docs/results/learning-first-step.md"
RUNS = {
    "ppo-pick": ["ppo", "--steps", "200000", "--validate-every", "40000"],
    "ppo-gate": ["ppo", "--env", "Gate", "--steps", "120000", "--validate-every", "40000"],
}
SHOWN = ("fcfs", "random action", "random+skip", "fcfs+easy", "sjf+easy")


def main() -> int:
    """Train what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where the runs are")
    runs: Path = parser.parse_args().runs
    curves = []
    for name, words in RUNS.items():
        out = runs / name
        if not (out / "summary.json").is_file():
            resume = ["--resume"] if (out / "config.toml").is_file() else []
            if berthline(["train", *words, "--out", str(out), *resume]):
                return 1
        curves.append(shutil.copy(out / "curve.csv", PAGE.with_name(f"{PAGE.stem}-{name}.csv")))
    figure = PAGE.with_suffix(".png")
    if berthline(["report", "curve", *map(str, curves), "--y", "mean_jct", "--out", str(figure)]):
        return 1
    text = PAGE.read_text(encoding="utf-8")
    for name in RUNS:
        summary = json.loads((runs / name / "summary.json").read_text(encoding="utf-8"))
        part = rf"(<!-- computed: {name} -->\n).*?(<!-- end computed: {name} -->)"
        text = re.sub(part, rf"\g<1>\n{table(summary)}\n\g<2>", text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")
    return 0


def table(summary: dict) -> str:
    """Return what a run gave on REPORT, as Markdown."""
    report = summary["report"]
    lines = [
        f"{summary['steps']:,} steps, seed {summary['seed']}; best on VAL: "
        f"`{summary['best_checkpoint']}`. Mean JCT {report['policy']['mean_jct']:,.0f} s on "
        f"{report['episodes']} REPORT episodes.",
        "",
        "| against | its mean JCT, s | mean JCT of the policy |",
        "| --- | ---: | --- |",
    ]
    for name in SHOWN:
        found = report["against"][name]["mean_jct"]
        lines.append(f"| {name} | {found['mean']:,.0f} | {found['verdict']} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
