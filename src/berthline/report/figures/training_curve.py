"""Training curves: one column of CSV files against another; seeds as mean and band."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError, unknown_name
from berthline.report.figures.axes import in_style, new_figure, plain_line, twin_layout, twin_line
from berthline.report.figures.lineup import DrawnAs, line_up, short_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

STEPS = ("step", "steps", "env_steps", "timesteps", "iteration", "epoch", "update", "time")
"""Default columns of the x axis: the first of these that the first file has."""
SEEDS = ("seed", "run", "replicate")
"""Columns that distinguish repetitions of one curve."""
_THOUSANDS = 1000


def data(
    files: Sequence[str | Path], *, x: str | None = None, y: str | None = None, smooth: int = 1
) -> pl.DataFrame:
    """Return the curves in CSV files.

    Files whose names differ only in a number at the end (`ppo-1.csv`, `ppo-2.csv`) are seeds of one
    curve, as are rows that differ in a column `seed`.

    Formula: the mean over seeds at each x; low and high are the minimum and the maximum. With
    `smooth`, each seed's values are first replaced by a running mean.

    Args:
        files: the CSV files, each with a header.
        x: column of the x axis; None = the first of `STEPS`.
        y: column of the y axis; None = the last column of numbers.
        smooth: number of rows of the running mean.

    Returns:
        Columns curve, x_name, y_name, x, mean, low, high, seeds.

    Raises:
        ConfigError: a file cannot be read, or has no such column.
    """
    import polars as pl

    tables = [_read(Path(file)) for file in files]
    first = tables[0]
    x = x or next((name for name in STEPS if name in first.columns), first.columns[0])
    numeric = [
        name
        for name in first.columns
        if name != x and name not in SEEDS and first[name].dtype.is_numeric()
    ]
    if y is None and not numeric:
        raise ConfigError("there is no column of numbers to draw", where=str(files[0]))
    y = y or numeric[-1]
    curves = _curve_names([Path(file) for file in files])
    parts = []
    for number, (file, table) in enumerate(zip(files, tables, strict=True)):
        for column in (x, y):
            if column not in table.columns:
                what, expected, hint = unknown_name("column", column, table.columns)
                raise ConfigError(what, where=str(file), expected=expected, hint=hint)
        seed = next((name for name in SEEDS if name in table.columns), None)
        parts.append(
            table.select(
                pl.lit(curves[number]).alias("curve"),
                pl.format("{} {}", pl.lit(number), pl.col(seed) if seed else pl.lit("")).alias(
                    "seed"
                ),
                pl.col(x).cast(pl.Float64, strict=False).alias("x"),
                pl.col(y).cast(pl.Float64, strict=False).alias("y"),
            ).drop_nulls()
        )
    rows = (
        pl.concat(parts)
        .sort("curve", "seed", "x", maintain_order=True)
        .with_columns(pl.col("y").rolling_mean(smooth, min_samples=1).over("curve", "seed"))
    )
    if not len(rows):
        raise ConfigError(f"the columns {x!r} and {y!r} hold no numbers", where=str(files[0]))
    return (
        rows.group_by("curve", "x")
        .agg(
            pl.col("y").mean().alias("mean"),
            pl.col("y").min().alias("low"),
            pl.col("y").max().alias("high"),
            pl.col("seed").n_unique().alias("seeds"),
        )
        .sort("curve", "x")
        .select(
            "curve", pl.lit(x).alias("x_name"), pl.lit(y).alias("y_name"), "x", "mean", "low",
            "high", "seeds",
        )
    )  # fmt: skip


def _read(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_csv(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise ConfigError(
            f"the file cannot be read as CSV: {reason}",
            where=str(path),
            expected="a header and rows of numbers, with commas between them",
        ) from None


def _curve_names(files: list[Path]) -> list[str]:
    """Return the curve of each file: its name without the number of a seed, if files share it."""
    stems = [file.stem for file in files]
    if len(set(stems)) < len(stems):
        stems = ["/".join(file.with_suffix("").parts[-2:]) for file in files]
    bare = [re.sub(r"[-_ .]*(seed)?[-_ .]*\d+$", "", stem) for stem in stems]
    return [
        name if name and bare.count(name) > 1 else stem
        for name, stem in zip(bare, stems, strict=True)
    ]


def _looks(frame: pl.DataFrame) -> dict[str, DrawnAs]:
    curves = list(dict.fromkeys(frame["curve"].to_list()))
    final = {name: float(_of(frame, name)["mean"][-1]) for name in curves}
    ranked = sorted(curves, key=lambda name: -final[name])
    looks = line_up(curves, ranked[0], ranked).looks
    return looks


def draw(frame: pl.DataFrame) -> Any:
    """Return the figure, with the name of each curve at its end."""
    return in_style(lambda: _draw(frame))


def _draw(frame: pl.DataFrame) -> Any:
    looks = _looks(frame)
    names = short_names(list(looks), 28)
    figure = new_figure(8.5, 4.6)
    axes = figure.subplots()
    ends = []
    for curve, look in reversed(looks.items()):
        mine = _of(frame, curve)
        x = mine["x"].to_numpy()
        if look.stands_out and (mine["seeds"] > 1).any():
            axes.fill_between(
                x,
                mine["low"].to_numpy(),
                mine["high"].to_numpy(),
                color=look.colour,
                alpha=0.15,
                linewidth=0,
            )
        plain_line(axes, x, mine["mean"].to_numpy(), look)
        if look.stands_out:
            ends.append((float(mine["mean"][-1]), names[curve], look.colour))
    axes.set_xlabel(frame["x_name"][0])
    axes.set_title(frame["y_name"][0])
    seeds = [max(_of(frame, curve)["seeds"].to_list()) for curve in looks]
    if max(seeds) > 1:
        number = f"{min(seeds)} to {max(seeds)}" if min(seeds) < max(seeds) else max(seeds)
        axes.set_title(f"mean of {number} seeds; band: min to max", loc="right", fontsize=8.5)
    axes.margins(x=0)
    for axis, (_, highest) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if highest >= _THOUSANDS:
            axis.set_major_formatter("{x:,.0f}")
    _label_ends(axes, ends)
    return figure


def _label_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """Write names beside the ends of curves, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    height = (high - low) * 0.055
    at = low - height
    for value, name, colour in sorted(ends):
        at = max(value, at + height)
        axes.annotate(
            name,
            (1.0, at),
            xycoords=("axes fraction", "data"),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=9,
            fontweight="bold",
            annotation_clip=False,
        )


def interactive(frame: pl.DataFrame) -> dict[str, Any]:
    """Return the figure for plotly."""
    looks = _looks(frame)
    traces = [
        twin_line(curve, _of(frame, curve)["x"], _of(frame, curve)["mean"], look)
        for curve, look in looks.items()
    ]
    return {
        "data": traces,
        "layout": twin_layout(
            xaxis={"title": {"text": frame["x_name"][0]}},
            yaxis={"title": {"text": frame["y_name"][0]}},
        ),
    }


def _of(frame: pl.DataFrame, curve: str) -> pl.DataFrame:
    import polars as pl

    return frame.filter(pl.col("curve") == curve)
