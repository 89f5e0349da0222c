"""The figure of a trace card: every kind of workload has one, and no other state changes."""

from __future__ import annotations

import numpy as np
import pytest

from berthline.errors import ConfigError, OutputError
from berthline.evaluate.trace_checks.card import trace_card
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload
from berthline.report.figures.drawing import check_figure_file
from berthline.report.figures.trace_card_figure import draw_trace_card

mpl = pytest.importorskip("matplotlib", reason="the extra 'report' is not installed")

ORIGIN = {"origin_unix_time": 1_700_000_000, "time_zone": "Europe/Berlin"}


def workload_of(span, **columns):
    generator = np.random.default_rng(3)
    return Workload.from_columns(
        **{
            "submit": np.sort(generator.uniform(0, span, 200)),
            "run": generator.lognormal(7, 2, 200),
            "gpus": 2 ** generator.integers(0, 4, 200),
        }
        | columns
    )


@pytest.mark.parametrize(
    ("workload", "cluster"),
    [
        (workload_of(3600.0, provenance=ORIGIN), "uniform:8x8"),
        (workload_of(9e6, estimate=np.full(200, 3600.0), provenance=ORIGIN), "uniform:1x1"),
        (workload_of(2_000 * 86_400.0), "uniform:1000x8"),
        (workload_of(1e15), None),
        (workload_of(0.0), "uniform:8x8"),
        (workload_of(1e6, gpus=np.arange(1, 201) * 20), None),
        (workload_of(1e6, gpus=np.full(200, 3)), None),
        (workload_of(1e6, gpus=np.arange(200) % 3, cpus=1), "uniform:8x8"),
        (workload_of(1e6, gpus=np.zeros(200, int), cpus=1), None),
        (
            workload_of(
                1e6, gpus=np.arange(200) % 2, gpu_milli=500 * (2 - np.arange(200) % 2), cpus=1
            ),
            None,
        ),
    ],
)
def test_every_kind_of_workload_has_a_figure(tmp_path, workload, cluster):
    before = dict(mpl.rcParams)
    card = trace_card(workload, cluster and Cluster.parse(cluster))
    path = tmp_path / "new" / "card.png"
    draw_trace_card(workload, card, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [entry.name for entry in path.parent.iterdir()] == ["card.png"]
    assert dict(mpl.rcParams) == before


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    workload = workload_of(3600.0)
    with pytest.raises(OutputError, match="cannot write the figure"):
        draw_trace_card(workload, trace_card(workload), tmp_path / "file" / "card.png")


@pytest.mark.parametrize("name", ["card", "card.jpg", "card.png.txt"])
def test_other_kinds_of_files_are_refused(name):
    with pytest.raises(ConfigError) as caught:
        check_figure_file(name, needed_for="a figure")
    assert ".png" in caught.value.expected
