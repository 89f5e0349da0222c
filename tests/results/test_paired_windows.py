"""Pages of paired windows: they show what the CSV files say, and these what is computed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from benchmarks import few_preemptions, milp_placement, type_aware_placement
from benchmarks.paired_windows import Experiment, in_words, main, measure, parts
from benchmarks.result_files import RESULTS, filled, read_rows, to_csv
from benchmarks.venus_windows import PLACES

from berthline.errors import ConfigError
from berthline.evaluate.statistics.paired import Ratio

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.paired_windows import Setting
    from benchmarks.result_files import Row

EXPERIMENTS = (
    type_aware_placement.EXPERIMENT,
    few_preemptions.EXPERIMENT,
    milp_placement.EXPERIMENT,
)
needs_venus = pytest.mark.skipif(
    not any(list(place.glob("venus_gpu_jobs*.csv.gz")) for place in PLACES),
    reason="the Helios Venus trace is not there",
)


def pages() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.page)


@pages()
def test_page_shows_what_the_csv_file_says(experiment: Experiment) -> None:
    text = (RESULTS / f"{experiment.page}.md").read_text(encoding="utf-8")
    rows = read_rows(experiment.csv)
    assert filled(text, parts(rows, experiment)) == text
    assert to_csv(rows) == experiment.csv.read_text(encoding="utf-8")


def first_windows(experiment: Experiment, count: int = 1) -> list[Row]:
    """Run the first windows of every setting."""

    def settings(trace: Path | None) -> Iterator[Setting]:
        for setting in experiment.settings(trace):
            yield dataclasses.replace(setting, windows=setting.windows[:count])

    return list(measure(dataclasses.replace(experiment, settings=settings), None))


def assert_in_file(rows: list[Row], experiment: Experiment) -> None:
    known = read_rows(experiment.csv)
    assert rows
    assert [row for row in rows if row not in known] == []


def test_type_aware_placement__rows_are_computed() -> None:
    assert_in_file(first_windows(type_aware_placement.EXPERIMENT), type_aware_placement.EXPERIMENT)


@needs_venus
def test_few_preemptions__rows_are_computed() -> None:
    assert_in_file(first_windows(few_preemptions.EXPERIMENT), few_preemptions.EXPERIMENT)


@needs_venus
def test_milp_placement__rows_are_computed_and_no_worse_than_best_fit() -> None:
    """Of plans of equal cost the solver may find another in another version: JCT is compared."""
    pytest.importorskip("highspy", reason="the extra milp is not installed")
    rows = {row["scheduler"]: row for row in first_windows(milp_placement.EXPERIMENT)}
    assert_in_file([row for name, row in rows.items() if name != "milp"], milp_placement.EXPERIMENT)
    assert rows["milp"]["fallbacks"] == "0"
    for other in ("best-fit", "fgd", "first-fit"):
        assert float(rows["milp"]["jct_mean"]) < 1.05 * float(rows[other]["jct_mean"])


@needs_venus
@pytest.mark.slow
@pages()
def test_all_rows_are_computed(experiment: Experiment) -> None:
    assert_in_file(first_windows(experiment, count=100), experiment)


def test_a_missing_trace_is_an_error_with_a_hint(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("benchmarks.venus_windows.PLACES", (tmp_path,))
    before = few_preemptions.EXPERIMENT.csv.read_bytes()
    assert main(few_preemptions.EXPERIMENT, "", []) != 0
    assert "hint: name it on the command line" in capsys.readouterr().err
    assert few_preemptions.EXPERIMENT.csv.read_bytes() == before


def test_in_words() -> None:
    assert in_words(Ratio(ratio=0.9, low=0.8, high=1.05, windows=9)) == "-10.0 % [-20.0, +5.0]"
    assert in_words(Ratio(ratio=3.0, low=2.0, high=4.0, windows=9)) == "x 3.0 [2.0, 4.0]"
    assert in_words(Ratio(ratio=None, low=None, high=None, windows=9)) == "-"


def test_filled__a_page_without_the_place() -> None:
    with pytest.raises(ConfigError, match="no part 'gains'"):
        filled("# page", {"gains": []})
