"""Figures of robustness: what each kind of perturbation costs, and how queues recover."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.experiments.perturbations import begins_at
from berthline.experiments.robustness_measures import recovery_seconds, twin_band
from berthline.palette import GREY
from berthline.report.figures.axes import in_style, legend_below, new_figure
from berthline.report.figures.layout import NARROW_NAME, SMALL, is_narrow
from berthline.report.run_results import NotShown
from berthline.report.suites.against_twin import against_twins
from berthline.report.suites.cell_names import short_cells
from berthline.report.suites.heat_map import Square, map_figure

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.suites.shown_suite import ShownSuite

MOST_PANELS = 8


def twin_data(suite: ShownSuite) -> pl.DataFrame:
    """Return the ratio to the clean twin, by perturbation and scheduler.

    Returns:
        Columns scheduler, perturbation, kind, ratio, low, high, is_open, exploded, longest_queue,
        recovery_seconds, not_recovered, variation, twin_variation, runs, higher.
    """
    import polars as pl

    from berthline.evaluate.statistics.paired import includes_one

    rows = []
    for one in against_twins(suite):
        low, high = one.ratio.low, one.ratio.high
        rows.append(
            {
                "scheduler": one.scheduler,
                "perturbation": one.perturbation,
                "kind": one.kind,
                "ratio": one.ratio.ratio,
                "low": low,
                "high": high,
                "is_open": low is None or high is None or includes_one(low, high),
                "exploded": one.exploded,
                "longest_queue": one.longest,
                "recovery_seconds": one.recovery,
                "not_recovered": one.not_recovered,
                "variation": one.varies,
                "twin_variation": one.twin_varies,
                "runs": one.runs,
                "higher": suite.higher,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def draw_twins(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the map: perturbations below each other, schedulers side by side."""
    return in_style(lambda: _draw_twins(frame, lineup))


def _draw_twins(frame: pl.DataFrame, lineup: Lineup) -> Any:
    texts = list(dict.fromkeys(frame["perturbation"].to_list()))
    names = [name for name in lineup.schedulers if name in set(frame["scheduler"].to_list())]
    found = {(row["perturbation"], row["scheduler"]): row for row in frame.to_dicts()}
    squares = [
        [
            Square(None) if one is None else Square(one["ratio"], one["is_open"])
            for name in names
            for one in (found.get((text, name)),)
        ]
        for text in texts
    ]
    return map_figure(
        squares,
        [_short(text) for text in texts],
        [lineup.names[name] for name in names],
        title="Ratio to the clean twin",
        worse="worse than the twin",
        better="better than the twin",
        higher=bool(frame["higher"][0]),
    )


def _short(text: str) -> str:
    longest = NARROW_NAME if is_narrow() else 60
    text = text.replace(":", " ").replace("+", ", ")
    return text if len(text) <= longest else text[: longest - 1] + "…"


def radar_data(suite: ShownSuite) -> pl.DataFrame:
    """Return how little each kind of perturbation costs.

    Formula: 1 / ratio to the twin (its ratio, for utilisation), at the level of the kind that is
    worst for the scheduler, at most 1.

    Returns:
        Columns scheduler, kind, perturbation (the worst level), ratio, score.
    """
    import polars as pl

    worst: dict[tuple[str, str], tuple[float, str]] = {}
    for one in against_twins(suite):
        if one.ratio.ratio is None:
            continue
        cost = 1 / one.ratio.ratio if suite.higher else one.ratio.ratio
        key_of = (one.scheduler, one.kind)
        if cost > worst.get(key_of, (-math.inf, ""))[0]:
            worst[key_of] = (cost, one.perturbation)
    rows = [
        (scheduler, kind, text, cost, min(1.0, 1 / cost))
        for (scheduler, kind), (cost, text) in worst.items()
    ]
    if len({row[1] for row in rows}) < 3:
        raise NotShown("fewer than three kinds of perturbations")
    names = ["scheduler", "kind", "perturbation", "ratio", "score"]
    return pl.DataFrame(rows, schema=names, orient="row")


def draw_radar(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: the schedulers that stand out, one polygon each."""
    return in_style(lambda: _draw_radar(frame, lineup))


def _draw_radar(frame: pl.DataFrame, lineup: Lineup) -> Any:
    import polars as pl

    kinds = list(dict.fromkeys(frame["kind"].to_list()))
    angles = [2 * math.pi * place / len(kinds) for place in range(len(kinds))]
    figure = new_figure(7.5, 6.4, narrow_height=5.6)
    axes = figure.add_subplot(projection="polar")
    for name in reversed(lineup.highlighted):
        mine = frame.filter(pl.col("scheduler") == name)
        score = dict(zip(mine["kind"].to_list(), mine["score"].to_list(), strict=True))
        values = [score.get(kind, math.nan) for kind in kinds]
        look = lineup.looks[name]
        axes.plot(
            [*angles, angles[0]], [*values, values[0]], color=look.colour, linestyle=look.line,
            linewidth=look.width, marker=look.marker, markersize=4,
        )  # fmt: skip
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_xticks(angles, [kind.replace("-", "\n") for kind in kinds])
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
        side = math.sin(angle)
        label.set_ha("center" if abs(side) < 0.1 else "left" if side > 0 else "right")
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "twice as bad", "", "as clean"], fontsize=SMALL)
    axes.set_rlabel_position(180 / len(kinds))
    axes.set_title("Clean value over perturbed value, at the worst level", pad=16)
    legend_below(figure, lineup._replace(schedulers=tuple(lineup.highlighted)), markers=True)
    return figure


def recovery_data(suite: ShownSuite) -> pl.DataFrame:
    """Return queues around the capacity dip from which recovery takes longest.

    It is the dip and the regime with the longest mean recovery over schedulers; a run that does not
    recover counts as the whole time.

    Returns:
        Columns scheduler, perturbation, regime, share (of the time of submissions), queue, twin,
        low, high, begins, recovered (share; empty = it was not back).

    Raises:
        NotShown: there is no perturbation that begins at an instant, or only one seed.
    """
    import polars as pl

    runs = suite.perturbed
    texts = [text for text in runs["perturbation"].unique(maintain_order=True) if begins_at(text)]
    dips = [text for text in texts if text.startswith("capacity-dip")] or texts
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    times: dict[tuple[str, str], list[float]] = {}
    for (text, twin, label), cell in runs.filter(pl.col("perturbation").is_in(dips)).group_by(
        "perturbation", "twin", "label", maintain_order=True
    ):
        band = twin_band(cell["twin_queue_curve"].to_list())
        if band is None:
            continue
        begins = begins_at(str(text))
        queue = np.mean(cell["queue_curve"].to_list(), axis=0)
        back = recovery_seconds(queue, band, begins=begins, seconds=1.0)
        times.setdefault((str(text), str(twin)), []).append(min(back, 1.0))
        parts = len(queue)
        rows.setdefault((str(text), str(twin)), []).extend(
            {
                "scheduler": str(label),
                "perturbation": str(text),
                "regime": str(twin),
                "share": (part + 0.5) / parts,
                "queue": float(queue[part]),
                "twin": float(band.mean[part]),
                "low": float(band.low[part]),
                "high": float(band.high[part]),
                "begins": begins,
                "recovered": None if math.isinf(back) else begins + back,
            }
            for part in range(parts)
        )
    if not rows:
        raise NotShown("no perturbation begins at an instant, or there is one seed")
    longest = max(times, key=lambda at: float(np.mean(times[at])))
    regime = short_cells(suite.clean_cells)[longest[1]]
    return pl.DataFrame(rows[longest], infer_schema_length=None).with_columns(regime=pl.lit(regime))


def draw_recovery(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: a panel for each scheduler, its queue and the band of its twin."""
    return in_style(lambda: _draw_recovery(frame, lineup))


def _draw_recovery(frame: pl.DataFrame, lineup: Lineup) -> Any:
    import polars as pl

    shown = set(frame["scheduler"].to_list())
    names = [name for name in lineup.highlighted if name in shown]
    names += [name for name in lineup.schedulers if name in shown and name not in names]
    names = names[:MOST_PANELS]
    columns = 2 if is_narrow() else 4
    lines = math.ceil(len(names) / columns)
    figure = new_figure(10.5, 0.9 + 2.1 * lines, narrow_height=1.1 + 1.75 * lines)
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for panel, name in zip(panels, names, strict=False):
        mine = frame.filter(pl.col("scheduler") == name)
        at = 100 * mine["share"].to_numpy()
        panel.fill_between(at, mine["low"], mine["high"], color="#D9D9D9", linewidth=0)
        panel.plot(at, mine["twin"], color=GREY, linewidth=1.0, linestyle="--")
        look = lineup.looks[name]
        panel.plot(at, mine["queue"], color=look.colour, linewidth=1.6)
        panel.axvline(100 * mine["begins"][0], color=GREY, linewidth=0.8, linestyle=":")
        recovered = mine["recovered"][0]
        if recovered is None:
            words = "not back"
        elif recovered > mine["begins"][0]:
            panel.axvline(100 * recovered, color=look.colour, linewidth=0.9)
            words = f"back after {100 * (recovered - mine['begins'][0]):.0f} %"
        else:
            words = "stays in the band"
        panel.set_title(f"{lineup.names[name]}\n{words}", fontsize=SMALL, fontweight="normal")
        panel.tick_params(labelsize=SMALL)
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    figure.suptitle(
        f"Waiting jobs: {frame['perturbation'][0]} in {frame['regime'][0]}",
        x=0.01,
        ha="left",
        fontsize=10,
    )
    figure.supxlabel("time of submissions, %; dotted: the perturbation begins", fontsize=SMALL)
    return figure
