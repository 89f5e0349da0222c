"""The page on packing until the cluster is full, in three orders of nodes; `make results
RESULTS=packing` runs it. `berthline bench packing` computes one order of nodes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.result_files import RESULTS, fill_page
from benchmarks.winning_settings import TRACES

from berthline.cli.output import progress
from berthline.errors import BerthlineError
from berthline.experiments.openb_pods import read_pods
from berthline.experiments.packing import (
    NODE_ORDERS,
    Packing,
    gain_of_fgd,
    markdown_table,
    orders_table,
    run_packing,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = "packing"
PODS = "alibaba_gpu_v2023/openb_pod_list_default.csv.gz"
SEEDS = 10


def measure(folder: Path, *, seeds: int = SEEDS) -> list[Packing]:
    """Return the result with each order of nodes; the first one is the cluster's own."""
    pods = read_pods(folder / PODS)
    found = []
    for order in NODE_ORDERS:
        with progress(f"nodes {order}") as report:
            found.append(run_packing(pods, seeds=seeds, node_order=order, report=report))
    return found


def parts(found: Sequence[Packing]) -> dict[str, list[str]]:
    """Return the computed parts of the page."""
    return {
        "gain": [f"On the paper's terms, {gain_of_fgd(found[0])}."],
        "ranking": markdown_table(found[0]),
        "orders": orders_table(found),
        "against": [against_fgd(each) for each in found],
    }


def against_fgd(found: Packing) -> str:
    """Return which placements leave fewer GPUs than fgd beyond chance, and which about as many."""
    fewer, same = [], []
    for packed in found.placements:
        low, high = packed.of_fgd.low, packed.of_fgd.high
        if packed.placement == "fgd" or low is None or high is None or low > 1:
            continue
        told = f"{packed.placement} ({packed.of_fgd.ratio:.2f} [{low:.2f}, {high:.2f}])"
        (fewer if high < 1 else same).append(told)
    return (
        f"- **{found.node_order}**: fewer than fgd: {', '.join(fewer) or 'none'}; "
        f"not distinguishable from it: {', '.join(same) or 'none'}; all others leave more."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Compute everything, and write the page and its figure."""
    parser = argparse.ArgumentParser(prog=PAGE, description=__doc__)
    parser.add_argument("traces", type=Path, nargs="?", default=TRACES, help="where the logs are")
    options = parser.parse_args(argv)
    try:
        found = measure(options.traces)
        fill_page(PAGE, parts(found))
        from berthline.report.figures.packing_figure import draw_packing

        draw_packing(found[0], RESULTS / f"{PAGE}.png")
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"written: {PAGE}.md and .png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
