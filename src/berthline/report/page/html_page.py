"""The report: one HTML file that needs no other file and no network.

Pictures are SVG inside the file, each for wide and for narrow screens, and follow the reader's
light or dark mode. Some figures have an interactive twin, drawn by plotly when they come into view;
the file contains plotly once, compressed. A content security policy forbids every request. Every
text from outside is escaped.

The contents depend on the kind of run: `comparison_page.py`, `training_page.py`,
`search_page.py`, `whatif_page.py`.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from berthline.report.figures.axes import dark_colours
from berthline.runs.run_layout import CONFIG, FIGURES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from berthline.report.figures.figure_table import Drawn, FigureKind
    from berthline.report.figures.lineup import Lineup
    from berthline.runs.open_run import Run

TWINS = ("ratios", "cdf", "timeline", "gantt", "fairness", "load", "gpus")
"""Figures with an interactive twin in the page; zooming does not help in the others."""

NARROW_UNTIL = "1087px"
"""Widest screen with the narrow figures; below it, the text of a wide one would be too small. The
style sheet and the script of the page use the same width."""

POLICY = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
)


class Section(NamedTuple):
    """A part of a page.

    Attributes:
        name: its anchor.
        title: its heading.
        content: HTML; an empty section is omitted.
    """

    name: str
    title: str
    content: str


def html_page(title: str, about: str, sections: Sequence[Section], *, library: str = "") -> str:
    """Return a page.

    Args:
        title: the title, as plain text.
        about: a sentence below the title, as plain text.
        sections: its parts.
        library: from `packed_plotly`, if a figure has a twin.
    """
    shown = [section for section in sections if section.content]
    links = "".join(f'<li><a href="#{part.name}">{part.title}</a></li>' for part in shown)
    body = "".join(
        f'<section id="{part.name}" aria-labelledby="{part.name}-head">'
        f'<h2 id="{part.name}-head">{part.title}</h2>{part.content}</section>'
        for part in shown
    )
    title = html.escape(title)
    dark = f' data-dark="{html.escape(json.dumps(dark_colours()))}"' if library else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}: Berthline report</title><style>{_asset('page.css')}</style></head><body>"
        f'<header><h1>{title}</h1><p class="about">{html.escape(about)}</p>'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav></header>'
        f"<main{dark}>{body}</main>{library}<script>{_asset('page.js')}</script></body></html>\n"
    )


def written_by(run: Run) -> str:
    """Return the version and time of a run, as a sentence."""
    meta = run.meta
    written = str(meta.get("written", ""))[:16].replace("T", " ")
    return f"Berthline {meta.get('berthline', '')}, {written}."


def verdict_section(sentences: Sequence[str], cautions: Sequence[str]) -> Section:
    """Return the first part of every page: the result, and how far it can be trusted."""
    told = "".join(f"<p>{html.escape(text)}</p>" for text in sentences)
    warned = "".join(f'<div class="caution"><p>{html.escape(text)}</p></div>' for text in cautions)
    return Section("verdict", "Verdict", f'<div class="verdict">{told}</div>{warned}')


def figures_section(
    figures: Sequence[Drawn],
    kinds: Mapping[str, FigureKind],
    lineup: Lineup | None = None,
    *,
    with_twins: bool = False,
) -> Section:
    """Return the figures that were drawn.

    Args:
        figures: the figures, with their PNG files or the reason why they are missing.
        kinds: the kinds of figures, by name.
        lineup: the looks of schedulers, for interactive twins.
        with_twins: whether figures are interactive, which needs plotly.
    """
    drawn = [figure for figure in figures if figure.files]
    return Section(
        "figures",
        "Figures",
        "".join(_figure(kinds[one.name], one, lineup if with_twins else None) for one in drawn),
    )


def _figure(kind: FigureKind, figure: Drawn, lineup: Lineup | None) -> str:
    twin, mark = "", ""
    if (
        lineup is not None
        and figure.name in TWINS
        and kind.interactive is not None
        and figure.frame is not None
    ):
        spec = escaped(kind.interactive(figure.frame, lineup))
        # Inside a script element, only "<" could end it or open a comment.
        text = json.dumps(spec, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        twin = f'<div class="twin"></div><script type="application/json">{text}</script>'
        mark = " data-twin"
    caption = html.escape(kind.reading)
    return (
        f'<h3 id="{figure.name}">{html.escape(kind.title)}</h3>'
        f'<figure id="figure-{figure.name}"{mark}><figcaption>{caption} Numbers: '
        f"<code>{FIGURES}/{figure.name}.csv</code>.</figcaption>"
        f'<picture><source media="(max-width: {NARROW_UNTIL})" srcset="{_data(figure.narrow)}">'
        f'<img alt="{html.escape(kind.title)}" decoding="async" src="{_data(figure.wide)}">'
        f"</picture>{twin}</figure>"
    )


def _data(picture: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}"


def settings_section(
    run: Run,
    facts: Mapping[str, object],
    figures: Sequence[Drawn],
    kinds: Mapping[str, FigureKind],
    *,
    more: str = "",
) -> Section:
    """Return the last part of every page: how the run was made, and how to repeat it.

    Args:
        run: the run.
        facts: what this kind of run adds, as plain text; empty ones are omitted.
        figures: the figures, or the reason why they are missing.
        kinds: the kinds of figures, by name.
        more: further HTML, before the list of missing figures.
    """
    meta = run.meta
    machine = meta.get("machine") or {}
    plain = {
        "again": f"berthline report {run.path.name} draws this page again",
        **facts,
        "berthline": f"{meta.get('berthline', '')}, Python {meta.get('python', '')}",
        "machine": f"{machine.get('system', '')}, {machine.get('cores', '')} cores",
        "written": meta.get("written", ""),
    }
    listed = f"<dt>command</dt><dd><code>{html.escape(str(meta.get('command', '')))}</code></dd>"
    listed += "".join(
        f"<dt>{name}</dt><dd>{html.escape(str(text))}</dd>"
        for name, text in plain.items()
        if text not in ("", None)
    )
    config = (run.path / CONFIG).read_text(encoding="utf-8")
    content = (
        f"<dl>{listed}</dl>"
        f"<details><summary>Every setting ({CONFIG})</summary>"
        f"<pre>{html.escape(config)}</pre></details>{more}"
    )
    missing = "".join(
        f"<dt>{html.escape(kinds[figure.name].title)}</dt><dd>{html.escape(figure.missing)}</dd>"
        for figure in figures
        if figure.missing
    )
    if missing:
        content += (
            "<details><summary>Figures without data in this run</summary>"
            f"<dl>{missing}</dl></details>"
        )
    return Section("settings", "Settings, and how to run it again", content)


def escaped(spec: Any, key: str = "") -> Any:
    """Return a figure for plotly with its texts escaped, because plotly reads them as HTML.

    Hover templates are ours, and stay as they are.
    """
    if isinstance(spec, dict):
        return {name: escaped(value, name) for name, value in spec.items()}
    if isinstance(spec, list | tuple):
        return [escaped(value, key) for value in spec]
    if isinstance(spec, str) and key != "hovertemplate":
        return html.escape(spec, quote=False)
    return spec


@lru_cache(maxsize=1)
def packed_plotly() -> str:
    """Return plotly's library, compressed, in a script element of plain text."""
    import plotly

    source = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    # No time stamp, so that the same run gives the same page.
    packed = base64.b64encode(gzip.compress(source.read_bytes(), 9, mtime=0)).decode()
    return f'<script type="text/plain" id="plotly">{packed}</script>'


def _asset(name: str) -> str:
    return (resources.files("berthline.report") / name).read_text(encoding="utf-8")
