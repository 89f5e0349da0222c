"""`berthline bench packing`: which placement leaves the fewest GPUs unallocated on a full cluster.

The experiment is `berthline.experiments.packing`; this prints it beside the published figures.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from berthline.cli.output import new_table, note, print_table

if TYPE_CHECKING:
    from berthline.experiments.openb_pods import Pods
    from berthline.experiments.packing import Packing

FETCHED = Path("traces/openb-2023/openb_pod_list_default.csv")
"""Where `berthline traces fetch openb-2023` puts the pods."""
GENERATED_PODS, GENERATED_SEED = 8_152, 0
"""As many as the trace has."""


def find_pods(path: str | None) -> Pods:
    """Return the pods of a file, of the fetched trace, or else generated ones.

    Raises:
        TraceError: the file is not a pod list.
    """
    from berthline.experiments.openb_pods import generate_pods, read_pods

    if path is not None:
        return read_pods(Path(path))
    if FETCHED.exists():
        return read_pods(FETCHED)
    note(
        f"there is no {FETCHED}, so pods of similar shapes are generated; for the real ones: "
        "berthline traces fetch openb-2023, or --pods FILE"
    )
    return generate_pods(GENERATED_PODS, GENERATED_SEED)


def show_packing(found: Packing) -> None:
    """Print the ranking as text."""
    from berthline.experiments.packing import (
        ARRIVES,
        PUBLISHED_FEWER,
        PUBLISHED_MORE_GPUS,
        gain_of_fgd,
    )

    print(
        f"\n{found.pods} on {found.nodes:,} nodes with {found.gpus:,} GPUs;\n"
        f"% of GPUs left unallocated when the arrived pods request 100 and"
        f" {100 * ARRIVES:.0f} %;\nmeans of {found.seeds} orders of arrival, with a 95 %"
        f" interval at {100 * ARRIVES:.0f} %; node ids {found.node_order}:\n"
    )
    table = new_table("placement", "100 %", "130 %", "interval", "x fgd", "published")
    for packed in found.placements:
        table.add_row(
            packed.placement,
            f"{packed.at_100:.2f}",
            f"{packed.at_end:.2f}",
            "-" if packed.low is None else f"{packed.low:.2f} .. {packed.high:.2f}",
            "-" if packed.of_fgd.ratio is None else f"{packed.of_fgd.ratio:.2f}",
            "-" if packed.published is None else f"{packed.published:.2f}",
        )
    print_table(table)
    print(
        f"\n{gain_of_fgd(found)};\npublished: up to {100 * PUBLISHED_FEWER:.0f} % fewer than other"
        f" packing rules, {PUBLISHED_MORE_GPUS} more"
    )
    if not found.fgd_wins:
        what = "fgd does not leave fewer than best-fit, dot-product and random"
        print(f"WRONG: {what}" if not found.is_as_published else f"with this node order, {what}")
