"""The figures of suites, by name; each says itself whether a suite has its data."""

from __future__ import annotations

from berthline.report.figures.figure_table import FigureKind
from berthline.report.suites import (
    parts_figure,
    regime_map,
    robustness_figures,
    suite_curves,
    transfer_matrix,
)

SUITE_FIGURES: dict[str, FigureKind] = {
    "regimes": FigureKind(
        "The regimes, one by one",
        "The scheduler that the suite is about, against the rule that was best in each regime, in "
        "hindsight. Hatched: the interval holds 1, so the two are not distinguishable.",
        regime_map.regime_data,
        regime_map.draw_regimes,
    ),
    "cells": FigureKind(
        "The cells, one by one",
        "Every scheduler against the rule that was best in each cell, in hindsight. Hatched: not "
        "distinguishable.",
        regime_map.cell_data,
        regime_map.draw_cells,
    ),
    "oracle": FigureKind(
        "Distance to the best fixed rule in hindsight",
        "Geometric means over cells with 95 % intervals. The best rule of a cell is known only "
        "afterwards, but it is not the best schedule.",
        regime_map.oracle_data,
        regime_map.draw_oracle,
    ),
    "twins": FigureKind(
        "Against the clean twin",
        "What a perturbation costs each scheduler, over all regimes that have it. It does not say "
        "which scheduler is better. Hatched: not distinguishable from no cost.",
        robustness_figures.twin_data,
        robustness_figures.draw_twins,
    ),
    "robustness": FigureKind(
        "Robustness, by kind of perturbation",
        "Outside: the perturbation costs nothing. Each kind at the level that is worst for the "
        "scheduler.",
        robustness_figures.radar_data,
        robustness_figures.draw_radar,
    ),
    "recovery": FigureKind(
        "Recovery from a capacity dip",
        "Mean queues over seeds, in the dip and regime with the longest recovery. Grey: where the "
        "clean twin's queue is with 95 % probability.",
        robustness_figures.recovery_data,
        robustness_figures.draw_recovery,
    ),
    "parts": FigureKind(
        "What each part is worth",
        "Each bar is a scheduler without one part, trained again where it is trained. If an "
        "interval holds 1, the part makes no difference that can be shown.",
        parts_figure.part_data,
        parts_figure.draw_parts,
    ),
    "transfer": FigureKind(
        "Transfer",
        "Off the diagonal, a policy is in a place that it was not trained for. Hatched: not "
        "distinguishable from the best rule there.",
        transfer_matrix.transfer_data,
        transfer_matrix.draw_transfer,
    ),
    "costs": FigureKind(
        "What a run costs",
        "Both axes are logarithmic: a line at 45 degrees grows in proportion.",
        suite_curves.cost_data,
        suite_curves.draw_costs,
    ),
    "utilisation": FigureKind(
        "Utilisation against GPUs",
        "Means over shapes of arrivals and seeds. Fewer GPUs mean a higher load here.",
        suite_curves.use_data,
        suite_curves.draw_use,
    ),
    "jct": FigureKind(
        "Distribution of JCT",
        "All jobs of all clean cells. A line further left means shorter times.",
        suite_curves.cdf_data,
        suite_curves.draw_cdf,
    ),
}
"""The figures of a suite, in the order of a report."""
