"""`berthline report curve`: training curves from CSV files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.options import Json, parse_options, whole
from berthline.cli.output import print_facts, print_json
from berthline.errors import ConfigError


class ReportCurve(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Draw one column of CSV files against another: one curve per file.

    Files that differ only in a number at the end are seeds of one curve.

    So are rows with different values in a column seed; the band is over all seeds.

    Examples:
      berthline report curve progress.csv
      berthline report curve ppo-1.csv ppo-2.csv --y jct_mean --out curve.pdf
    """

    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE.csv")]
    """CSV files with a header."""
    x: Annotated[str | None, arg(metavar="COLUMN", help_behavior_hint="(default: the steps)")] = (
        None
    )
    """Column of the x axis."""
    y: Annotated[
        str | None,
        arg(metavar="COLUMN", help_behavior_hint="(default: the last numeric column)"),
    ] = None
    """Column of the y axis."""
    smooth: Annotated[int, msgspec.Meta(ge=1), whole("--smooth", lowest=1)] = 1
    """Show the mean of N rows."""
    out: Annotated[str, arg(metavar="FILE.png")] = "curve.png"
    """The figure: png, pdf or svg. The numbers behind it are saved beside it as CSV."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(ReportCurve, argv, verb="report curve")
    from berthline.atomic_write import write_atomically
    from berthline.report.figures import training_curve
    from berthline.report.figures.drawing import check_figure_file, save_figure

    if not options.files:
        raise ConfigError("FILE.csv is missing", hint="see berthline report curve --help")
    path = check_figure_file(options.out, needed_for="a training curve")
    table = path.with_suffix(".csv")
    if table.resolve() in [Path(file).resolve() for file in options.files]:
        raise ConfigError(
            "the numbers behind the figure would overwrite an input file",
            where=str(table),
            hint="choose another --out",
        )
    frame = training_curve.data(options.files, x=options.x, y=options.y, smooth=options.smooth)
    save_figure(training_curve.draw(frame), path)
    write_atomically(table, frame.write_csv(float_precision=8).encode())
    curves = list(dict.fromkeys(frame["curve"].to_list()))
    if options.json:
        print_json({"figure": str(path), "numbers": str(table), "curves": curves})
        return 0
    print_facts({"figure": str(path), "numbers": str(table), "curves": ", ".join(curves)})
    return 0
