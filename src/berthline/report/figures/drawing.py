"""Shared by all figures: style, the check for matplotlib, and writing complete files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from berthline.atomic_write import complete_file
from berthline.errors import ConfigError, MissingExtraError
from berthline.palette import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAT = "cividis"
"""Colour map of heat maps: uniform in brightness, so it also works in grey."""

STYLE: dict[Any, Any] = {
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK
    ),
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}
SUFFIXES = (".png", ".pdf", ".svg")

_DOTS_PER_INCH = 150


def check_figure_file(path: str | Path, *, needed_for: str) -> Path:
    """Return the path of a figure; raise early if the figure cannot be written.

    Raises:
        ConfigError: the suffix is not that of a figure.
        MissingExtraError: matplotlib is not installed.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(
            f"unknown kind of figure {path.name!r}",
            where=str(path),
            expected="a name that ends in " + ", ".join(SUFFIXES),
        )
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "report", needed_for) from None
    return path


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure under a temporary name, and rename it to `path` when it is complete.

    Raises:
        OutputError: the file cannot be written.
    """
    with complete_file(path, what="the figure") as partial:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(partial, dpi=_DOTS_PER_INCH, facecolor="white")
