"""The report: one HTML file that needs nothing else, not even the network.

Pictures are PNG inside the file. Figures that gain by it have an interactive twin, drawn by plotly
when they come into view; plotly is in the file once, compressed, and a content security policy
keeps the page from asking anybody for anything. Every text from outside is escaped.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import math
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berthline.evaluate.measurement_window import MeasurementWindow
from berthline.report import losses, verdict
from berthline.report.kinds import KINDS, Drawn
from berthline.report.page_tables import (
    cells_table,
    losses_table,
    overall_table,
    tails_table,
    values_table,
)
from berthline.traces.atomic_write import write_atomically

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.report.run_results import RunResults

TWINS = ("ratios", "cdf", "timeline", "gantt", "fairness", "load", "gpus")
"""Figures with an interactive twin in the page; in the others there is nothing to zoom into."""

POLICY = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
)


def write_page(
    run: RunResults, figures: Sequence[Drawn], path: Path, *, with_twins: bool = True
) -> None:
    """Write the report.

    Args:
        run: the results.
        figures: what was drawn, with the PNG files, and what was not.
        path: the file, which is replaced if it exists.
        with_twins: whether figures are interactive, which takes plotly.

    Raises:
        TraceError: the file cannot be written.
    """
    write_atomically(path, page(run, figures, with_twins=with_twins).encode())


def page(run: RunResults, figures: Sequence[Drawn], *, with_twins: bool = True) -> str:
    """Return the report as HTML."""
    found = losses.data(run)
    drawn = [figure for figure in figures if figure.files]
    sections = {
        "verdict": ("Verdict", _verdict(run)),
        "table": ("Values and intervals", values_table(run)),
        "cells": ("Cells", cells_table(run) + overall_table(run) if len(run.cells) > 1 else ""),
        "tails": ("Tails", tails_table(run)),
        "figures": (
            "Figures",
            "".join(_figure(run, figure, with_twin=with_twins) for figure in drawn),
        ),
        "losses": ("Where each scheduler loses", _losses(run, losses_table(run, found))),
        "settings": ("Settings, and how to run it again", _settings(run, figures)),
    }
    shown = {name: part for name, part in sections.items() if part[1]}
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, (title, _) in shown.items())
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-head"><h2 id="{name}-head">{title}</h2>'
        f"{content}</section>"
        for name, (title, content) in shown.items()
    )
    title = html.escape(f"{run.first['workload']} on {run.first['cluster']}")
    has_twins = with_twins and any(figure.name in TWINS for figure in drawn)
    library = packed_plotly() if has_twins else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}: Berthline report</title><style>{_asset('page.css')}</style></head><body>"
        f'<header><h1>{title}</h1><p class="about">{_about(run)}</p>'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav></header>'
        f"<main>{body}</main>{library}<script>{_asset('page.js')}</script></body></html>\n"
    )


def _about(run: RunResults) -> str:
    cell = run.first
    jobs = cell.get("window_jobs") or [0]
    few, many = min(jobs), max(jobs)
    count = f"{many:,}" if few == many else f"{few:,} to {many:,}"
    measured = ""
    if cell.get("measure"):
        begin, stop = cell["measure"]
        window = MeasurementWindow(begin, math.inf if stop is None else stop)
        measured = f" Counted: {window.in_words()}; figures of single jobs show all of them."
    return html.escape(
        f"{len(run.schedulers)} schedulers, {run.windows} windows of {count} jobs; known of run "
        f"times: {cell['knowledge']}; seed {cell['seed']}.{measured} "
        f"Berthline {run.meta.get('berthline', '')}, "
        f"{str(run.meta.get('written', ''))[:16].replace('T', ' ')}."
    )


def _verdict(run: RunResults) -> str:
    told = "".join(f"<p>{html.escape(text)}</p>" for text in verdict.sentences(run))
    warned = "".join(
        f'<div class="caution"><p>{html.escape(text)}</p></div>' for text in verdict.cautions(run)
    )
    return f'<div class="verdict">{told}</div>{warned}'


def _figure(run: RunResults, figure: Drawn, *, with_twin: bool) -> str:
    kind = KINDS[figure.name]
    picture = next(path for path in figure.files if path.suffix == ".png").read_bytes()
    width, height = png_size(picture)
    code = base64.b64encode(picture).decode()
    twin, mark = "", ""
    twins = with_twin and figure.name in TWINS
    if twins and kind.interactive is not None and figure.frame is not None:
        spec = escaped(kind.interactive(figure.frame, run.lineup))
        # Inside a script element only "<" could end it or open a comment.
        text = json.dumps(spec, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        twin = f'<div class="twin"></div><script type="application/json">{text}</script>'
        mark = " data-twin"
    caption = html.escape(kind.reading)
    return (
        f'<h3 id="{figure.name}">{html.escape(kind.title)}</h3>'
        f'<figure id="figure-{figure.name}"{mark}><figcaption>{caption} Numbers: '
        f"<code>figures/{figure.name}.csv</code>.</figcaption>"
        f'<img alt="{html.escape(kind.title)}" width="{width * 2 // 3}" height="{height * 2 // 3}" '
        f'decoding="async" src="data:image/png;base64,{code}">{twin}</figure>'
    )


def escaped(spec: Any, key: str = "") -> Any:
    """Return a figure for plotly with its texts escaped: it takes them for HTML.

    Templates for hovering are ours, and stay as they are.
    """
    if isinstance(spec, dict):
        return {name: escaped(value, name) for name, value in spec.items()}
    if isinstance(spec, list | tuple):
        return [escaped(value, key) for value in spec]
    if isinstance(spec, str) and key != "hovertemplate":
        return html.escape(spec, quote=False)
    return spec


def png_size(content: bytes) -> tuple[int, int]:
    """Return width and height of a PNG file, from its header."""
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")


def _losses(run: RunResults, content: str) -> str:
    told = (
        "Ratios of mean JCT over paired windows whose whole 95 % interval is worse, for every size "
        "of job, priority, user and pool, and other metrics likewise."
        if run.windows > 1
        else "Mean JCT longer by more than 2 %, for every size of job, priority, user and pool. "
        "One window has no interval."
    )
    return f"<p>{told} Many comparisons are made here: a few of these may be chance.</p>{content}"


def _settings(run: RunResults, figures: Sequence[Drawn]) -> str:
    meta, cell = run.meta, run.first
    machine = meta.get("machine") or {}
    workload = meta.get("workload") or {}
    provenance = workload.get("provenance") or {}
    facts = {
        "command": f"<code>{html.escape(str(meta.get('command', '')))}</code>",
        "again": html.escape(f"berthline report {run.path.name} draws this page again"),
        "workload": html.escape(f"{cell['workload']}, {cell['windows']} windows"),
        "its origin": html.escape(
            "; ".join(f"{key}: {value}" for key, value in provenance.items() if value)
        ),
        "cluster": html.escape(str(cell["cluster"])),
        "conditions": html.escape(
            "; ".join(f"{key} {value:g}" for key, value in (cell.get("conditions") or {}).items())
            or "the defaults"
        ),
        "knowledge": html.escape(str(cell["knowledge"])),
        "seed": html.escape(str(cell["seed"])),
        "berthline": html.escape(f"{meta.get('berthline', '')}, Python {meta.get('python', '')}"),
        "machine": html.escape(f"{machine.get('system', '')}, {machine.get('cores', '')} cores"),
        "written": html.escape(str(meta.get("written", ""))),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts.items() if text)
    hashes = "".join(
        f"<dt><code>{html.escape(str(result['scheduler']))}</code></dt><dd><code>"
        + "<br>".join(html.escape(str(value)) for value in result.get("log_sha256") or [])
        + "</code></dd>"
        for result in cell["schedulers"]
    )
    missing = "".join(
        f"<dt>{html.escape(KINDS[figure.name].title)}</dt><dd>{html.escape(figure.missing)}</dd>"
        for figure in figures
        if figure.missing
    )
    parts = [
        f"<dl>{listed}</dl>",
        "<details><summary>Every setting (config.toml)</summary>"
        f"<pre>{html.escape(run.config)}</pre></details>",
        "<details><summary>Hashes of the schedule logs (SHA-256), window by window: equal hashes "
        f"mean equal schedules</summary><dl>{hashes}</dl></details>",
    ]
    if missing:
        parts.append(
            "<details><summary>Figures that this run has no data for</summary>"
            f"<dl>{missing}</dl></details>"
        )
    return "".join(parts)


@lru_cache(maxsize=1)
def packed_plotly() -> str:
    """Return plotly's library as a script element that is data until it is unpacked; once."""
    import plotly

    source = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    # No time stamp: the same page from the same run.
    packed = base64.b64encode(gzip.compress(source.read_bytes(), 9, mtime=0)).decode()
    return f'<script type="text/plain" id="plotly">{packed}</script>'


def _asset(name: str) -> str:
    return (resources.files("berthline.report") / name).read_text(encoding="utf-8")
