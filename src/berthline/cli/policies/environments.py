"""What `berthline policies` lists about learning environments."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from berthline.cli.output import new_table

if TYPE_CHECKING:
    from rich.table import Table


def environments() -> list[dict[str, Any]]:
    """Return the environments."""
    from berthline.env.questions import QUESTIONS
    from berthline.env.registration import SEATS, env_id

    return [
        {
            "name": env_id(name),
            **{
                what: text.replace("`", "")  # Markdown
                for what, text in dataclasses.asdict(QUESTIONS[seat]).items()
            },
        }
        for name, seat in SEATS.items()
    ]


def columns() -> list[dict[str, Any]]:
    """Return the named sets of columns, with the formulas of each table."""
    from berthline.env.columns import COLUMN_SETS, TABLES

    return [
        {
            "name": name,
            "needs_run_times": any(
                formula.uses_estimate
                for table in TABLES
                for formula in found.formulas(table, has_job_at_hand=True)
            ),
            **{table: list(getattr(found, table)) for table in TABLES},
        }
        for name, found in COLUMN_SETS.items()
    ]


def rewards() -> list[dict[str, Any]]:
    """Return the named rewards with their terms."""
    from berthline.env.rewards import REWARDS

    return [
        {
            "name": reward.name,
            "meaning": reward.meaning,
            "terms": [
                {
                    "name": term.name,
                    "occasion": term.occasion,
                    "weight": term.weight,
                    "formula": term.formula,
                }
                for term in reward.terms
            ],
        }
        for reward in REWARDS.values()
    ]


def presets() -> list[dict[str, Any]]:
    """Return the presets of the reference systems."""
    from berthline.env.presets import PRESETS
    from berthline.env.registration import SEATS, env_id

    ids = {seat: env_id(name) for name, seat in SEATS.items()}
    return [
        {
            "name": preset.name,
            "environment": ids[preset.seat],
            "system": preset.system,
            "options": dict(preset.options),
            "differences": list(preset.differences),
        }
        for preset in PRESETS.values()
    ]


def environments_table(rows: list[dict[str, Any]]) -> Table:
    """Return the environments as a table."""
    table = new_table("environment")
    table.add_column("question; when it is asked")
    for row in rows:
        table.add_row(row["name"], f"{row['about']};\n{row['asked']}")
    return table


def columns_table(rows: list[dict[str, Any]]) -> Table:
    """Return the sets of columns as a table, one row for each of their tables."""
    from berthline.env.columns import TABLES

    table = new_table("columns")
    for title in ("t", "of", "formulas"):
        table.add_column(title)
    for row in rows:
        name, needs = row["name"], "t" if row["needs_run_times"] else ""
        for part in TABLES:
            if row[part]:
                table.add_row(name, needs, part, "\n".join(row[part]))
                name = needs = ""
    return table


def rewards_table(rows: list[dict[str, Any]]) -> Table:
    """Return the rewards as a table, with their terms below the meaning."""
    table = new_table("reward")
    table.add_column("meaning; its terms: name (occasion): weight x formula")
    for row in rows:
        table.add_row(row["name"], "\n".join([row["meaning"], *map(_term, row["terms"])]))
    return table


def _term(term: dict[str, Any]) -> str:
    weight = "" if term["weight"] == 1 else f"{term['weight']:g} x "
    return f"{term['name']} ({term['occasion']}): {weight}{term['formula']}"


def presets_table(rows: list[dict[str, Any]]) -> Table:
    """Return the presets as a table, without their differences from the originals."""
    table = new_table("preset")
    table.add_column("environment")
    table.add_column("system")
    for row in rows:
        table.add_row(row["name"], row["environment"], row["system"])
    return table


NOTES = {
    "environments": "\ngym.make(NAME, ...) makes one, gym.make_vec(NAME, num_envs=256, ...) many",
    "columns": '\nfeatures="NAME", or your own formulas: features=["wait / 3600", "gpus"]',
    "rewards": '\nreward="NAME", or your own terms: reward={"queue": ("second", "-queue_len")}\n'
    'other weights: reward_weights={"energy": 0}',
    "presets": '\ngym.make("berthline/Pick-v0", preset="rltune")\n'
    "options, and differences from the original: --json, or docs/mdp.md",
}
"""The text below the tables."""
