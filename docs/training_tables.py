"""The tables of settings of algorithms, from the module that owns them."""

from __future__ import annotations

from berthline.learn.algorithms.algorithm_table import ALGORITHMS
from berthline.learn.algorithms.settings import setting_rows, value_text
from berthline.learn.training.defaults import settings_by_seat


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


PARTS = {"settings of algorithms": settings}
