"""Every kind of figure, drawn: complete files, twins valid for plotly, any number of schedulers."""

from __future__ import annotations

import json

import polars as pl
import pytest
from tests.report.compared_runs import compare

from berthline.cli.main import main
from berthline.report.figures.figure_table import COMPARISON_FIGURES, draw_all
from berthline.report.run_results import results_of
from berthline.runs.open_run import open_run

pytest.importorskip("matplotlib", reason="the extra 'report' is not installed")

ONLY_SWEPT = {"load", "gpus"}


@pytest.fixture(scope="module")
def drawn(reported, swept, tmp_path_factory):
    """All figures: those of one cell, and those of several cells."""
    folder = tmp_path_factory.mktemp("figures")
    several = draw_all(results_of(open_run(swept)), folder, [*sorted(ONLY_SWEPT), "radar"])
    found = {figure.name: figure for figure in several}
    assert found.pop("radar").frame["axis"].n_unique() == 4
    return {**{figure.name: figure for figure in reported.figures}, **found}


@pytest.mark.parametrize("name", [name for name in COMPARISON_FIGURES if name != "pools"])
def test_figure_is_written_whole(drawn, name):
    picture, table = drawn[name].files
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert content.endswith(b"IEND\xaeB`\x82")
    read = pl.read_csv(table)
    assert read.columns == drawn[name].frame.columns
    assert len(read) == len(drawn[name].frame) > 0
    assert not [path for path in picture.parent.iterdir() if "partial" in path.name]


def test_kinds_that_have_no_data_say_why(drawn):
    assert drawn["pools"].missing == "the workload names no pools"
    assert not drawn["pools"].files


@pytest.mark.parametrize(
    "name", [name for name, kind in COMPARISON_FIGURES.items() if kind.interactive]
)
def test_twin_is_a_figure_of_plotly(drawn, compared, swept, name):
    objects = pytest.importorskip("plotly.graph_objects", reason="plotly is not installed")
    if drawn[name].frame is None:
        pytest.skip("the run has no pools")
    run = results_of(open_run(swept if name in ONLY_SWEPT else compared))
    spec = COMPARISON_FIGURES[name].interactive(drawn[name].frame, run.lineup)
    figure = objects.Figure(spec)  # it rejects unknown properties
    assert len(figure.data) >= 1
    if name == "cdf":
        names = [trace["name"] for trace in spec["data"] if trace["showlegend"]]
        assert sorted(names) == sorted(run.schedulers)
    json.dumps(spec, allow_nan=False)


def test_one_scheduler_of_sim(tmp_path):
    out = tmp_path / "run"
    arguments = ["sim", "synthetic", "--jobs", "150", "--scheduler", "srpt+skip!srpt"]
    assert main([*arguments, "--out", str(out)]) == 0
    figures = draw_all(results_of(open_run(out)), tmp_path / "figures", COMPARISON_FIGURES)
    found = {d.name: d for d in figures}
    assert {name for name, d in found.items() if d.files} == {
        "cdf", "timeline", "gantt", "sizes", "priorities", "users", "fairness",
    }  # fmt: skip
    assert found["ratios"].missing == "there is one scheduler, and nothing to compare it with"


def test_formats_of_papers(compared, tmp_path):
    run = results_of(open_run(compared))
    (found,) = draw_all(run, tmp_path, ["profile"], formats=["pdf", "svg"])
    assert [path.name for path in found.files] == ["profile.pdf", "profile.svg", "profile.csv"]
    assert found.files[0].read_bytes().startswith(b"%PDF")
    assert b"</svg>" in found.files[1].read_bytes()[-100:]


def test_jobs_that_all_come_at_once_and_never_wait(tmp_path):
    out = compare(
        tmp_path / "run", "--jobs", "12", "--cluster", "uniform:20x8:V100",
        workload="batch", schedulers=("fcfs", "sjf"),
    )  # fmt: skip
    found = list(draw_all(results_of(open_run(out)), tmp_path / "figures", COMPARISON_FIGURES))
    assert {d.name for d in found if d.files} >= {"ratios", "cdf", "timeline", "gantt", "sizes"}
