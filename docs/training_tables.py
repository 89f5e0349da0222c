"""The tables of settings of algorithms, from the module that owns them."""

from __future__ import annotations

from berthline.learn.algorithms.algorithm_table import ALGORITHMS
from berthline.learn.algorithms.settings import setting_rows, value_text
from berthline.learn.training.defaults import settings_by_seat
from berthline.learn.training.recipes import RECIPES


def settings() -> str:
    """Return a table for each algorithm: every setting with default, values and meaning."""
    parts = []
    for name, entry in ALGORITHMS.items():
        head = ["| setting | default | values | meaning |", "| --- | --- | --- | --- |"]
        rows = [f"## {name}", "", *head]
        by_seat = settings_by_seat(name)
        for row in setting_rows(name, entry.config):
            default = f"`{row.default}`" if row.default != "empty" else "empty"
            for seat, own in by_seat.items():
                if row.name in own:
                    default += f"; on {seat.capitalize()} `{value_text(own[row.name])}`"
            meaning = row.meaning.replace("|", "\\|")
            rows.append(f"| `{row.name}` | {default} | {row.values} | {meaning} |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def recipes() -> str:
    """Return a table of what presets bring for `train`."""
    rows = [
        "| preset | algorithm | network | `--envs` | `--steps` | settings |",
        "| --- | --- | --- | ---: | ---: | --- |",
    ]
    for (preset, algorithm), recipe in RECIPES.items():
        own = ", ".join(f"`{name}={value_text(value)}`" for name, value in recipe.settings.items())
        rows.append(
            f"| `{preset}` | `{algorithm}` | {recipe.network} | {recipe.envs} "
            f"| {recipe.steps:,} | {own} |"
        )
    return "\n".join(rows)


PARTS = {"settings of algorithms": settings, "recipes of presets": recipes}
