"""The page of a suite that was run: what it says, its figures, a phone."""

from __future__ import annotations

import json

import polars as pl
import pytest
from tests.experiments.suites.small_suite import small_plan
from tests.report import chromium
from tests.report.page.test_screens import CUT, PHONE, SMALLEST, TEXTS
from tests.report.suites.suite_rows import row, suite_of

from berthline.cli.main import main
from berthline.errors import ConfigError
from berthline.experiments.suites.run_suite import run_suite
from berthline.report.figures.figure_table import draw_all
from berthline.report.page.write_report import write_report
from berthline.report.suites.heat_map import ratio_text
from berthline.report.suites.suite_figures import SUITE_FIGURES

pytest.importorskip("matplotlib", reason="the extra 'report' is not installed")


@pytest.fixture(scope="module")
def suite_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("suites") / "run"
    run_suite(small_plan(), out=path, workers=1)
    return path


@pytest.fixture(scope="module")
def reported(suite_run):
    return write_report(suite_run)


def test_the_verdict_is_that_of_the_table(suite_run, reported):
    page = reported.page.read_text(encoding="utf-8")
    assert reported.verdict
    assert all(sentence.split("'")[0][:40] in page for sentence in reported.verdict)
    cells = pl.read_parquet(suite_run / "cells.parquet")
    summary = json.loads((suite_run / "summary.json").read_text())
    ratios = {one["scheduler"]: one["mean_ratio"] for one in summary["schedulers"]}
    # The summary and the page agree, although they are computed apart.
    for name in cells["scheduler"].unique():
        assert f"{ratios[name]:.3f} [" in page


def test_every_figure_is_drawn_or_says_why_not(reported):
    drawn = {one.name for one in reported.figures if one.files}
    assert drawn == {"regimes", "cells", "oracle", "twins", "utilisation", "jct"}
    missing = {one.name: one.missing for one in reported.figures if one.missing}
    assert missing["robustness"] == "fewer than three kinds of perturbations"
    assert missing["recovery"].startswith("no perturbation begins at an instant")
    for one in reported.figures:
        if one.files:
            assert one.wide.startswith("<svg")
            assert one.narrow.startswith("<svg")


def test_tables_of_the_page(reported):
    page = reported.page.read_text(encoding="utf-8")
    for text in ("sla_attainment", "oracle_gap", "bursts:x2", "best-on-val", "avg_jct"):
        assert text in page


def test_the_command_reports_a_suite(suite_run, capsys):
    assert main(["report", str(suite_run), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"]
    assert told["report"].endswith("report.html")
    assert main(["report", "figures", str(suite_run), "--only", "oracle", "--format", "svg"]) == 0


def test_without_a_finished_run_there_is_no_report(suite_run, tmp_path):
    for file in suite_run.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    cells = pl.read_parquet(suite_run / "cells.parquet").with_columns(error=pl.lit("killed"))
    cells.write_parquet(tmp_path / "cells.parquet")
    with pytest.raises(ConfigError, match="no run of the suite has finished"):
        write_report(tmp_path)


@pytest.mark.skipif(chromium.PROGRAM is None, reason="there is no Chromium here")
@pytest.mark.parametrize("dark", [False, True])
def test_phone(reported, dark):
    """No column is cut, no text is smaller than 11 pixels, and all of it can be read."""
    with chromium.Browser(width=PHONE, height=800, dark=dark) as view:
        view.open(reported.page)
        assert view.run("document.documentElement.scrollWidth") <= PHONE
        assert view.run(CUT) == []
        texts = view.run(TEXTS)
        assert len(texts) > 30
        assert min(text["size"] for text in texts) >= SMALLEST
        assert min(text["contrast"] for text in texts) >= 4.5


def test_parts_transfer_and_costs_are_drawn(tmp_path):
    rows, parts = [], []
    for number, part in enumerate(("net, whole", "net, without a", "net, without b")):
        parts.append((part, {"train": {}}))
        for seed in range(4):
            for cell, jobs, cpu in (("x", 100, 0.1), ("y", 1000, 1.1), ("z", 10_000, 12.0)):
                jct = 100 + seed + 5 * number
                costs = {"cpu_seconds": cpu, "peak_mb": 50.0 + jobs / 100, "num_jobs": jobs}
                rows += [
                    row(cell, part, seed, jct + t, part=part, training_seed=t, **costs)
                    for t in range(3)
                ]
                if not number:
                    rows.append(row(cell, "rule", seed, 100 + seed, **costs))
    for page, name in (("", "parts"), ("transfer", "transfer"), ("", "costs")):
        suite = suite_of(rows, schedulers=["rule"], parts=parts, page=page)
        (drawn,) = draw_all(suite, tmp_path, [name], kinds=SUITE_FIGURES, for_page=True)
        assert not drawn.missing
        assert drawn.narrow.startswith("<svg")
        if name == "costs":
            slopes = drawn.frame.filter(pl.col("axis") == "num_jobs")["slope"]
            assert all(1.0 < slope < 1.05 for slope in slopes)  # ln(120) / ln(100)


def test_ratios_are_short():
    assert [ratio_text(value) for value in (0.5, 1.0, float("inf"))] == ["0.50", "1.00", "∞"]
