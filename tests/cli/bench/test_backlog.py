"""What a run costs while many jobs wait."""

from __future__ import annotations

import math

import pytest

from berthline.cli.bench.backlog import SCHEDULERS, Backlog, measure_backlogs, show_backlogs
from berthline.cli.main import main


def test_measure_backlogs__every_scheduler_at_two_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    found = list(measure_backlogs(quick=True, long=False))
    assert [row.scheduler for row in found[::2]] == list(SCHEDULERS)
    for small, large in zip(found[::2], found[1::2], strict=True):
        assert small.exponent is None
        assert large.jobs == 10 * small.jobs
        assert large.most_waiting > 2 * small.most_waiting  # so it is a backlog
        assert large.exponent == pytest.approx(math.log10(large.cpu_seconds / small.cpu_seconds))
        assert large.us_per_job == pytest.approx(1e6 * large.cpu_seconds / large.jobs)
    show_backlogs(found)
    shown = capsys.readouterr().out
    assert "fcfs+easy@fgd" in shown
    assert f"{found[1].exponent:.2f}" in shown


def test_measure_backlogs__tells_what_comes_next() -> None:
    told: list[str] = []
    first: Backlog = next(
        measure_backlogs(quick=True, long=False, report=lambda *a: told.append(a[2]))
    )
    assert first.jobs == 1_000
    assert told == ["fcfs+easy, 1,000 jobs, many wait"]


@pytest.mark.parametrize(
    ("options", "says"),
    [(["env", "--long"], "--long does not apply"), (["sim", "--quick", "--long"], "exclude")],
)
def test_bench__long_is_for_the_simulator(
    options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *options]) == 2
    assert says in capsys.readouterr().err
