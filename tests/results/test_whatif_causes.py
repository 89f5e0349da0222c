"""Why jobs of logs waited: the tables of the page, and each figure by hand."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.result_files import RESULTS, filled, read_rows
from benchmarks.whatif_causes import (
    LOGS,
    PAGE,
    TABLE,
    Log,
    beyond_most,
    dedicated,
    figures,
    parts,
    read,
    waiting,
)
from tests.shared_traces import SHARED_TRACES

import berthline as bl
from berthline.model.history import History

HOUR, WEEK = 3600.0, 604_800.0


def log_of(*jobs: tuple[float, float, float, int, str], capacity: float) -> Log:
    """Return a log of (submitted, started, ran, GPUs, user)."""
    submit, start, run, gpus, user = (list(column) for column in zip(*jobs, strict=True))
    names = list(dict.fromkeys(user))
    made = bl.Workload.from_columns(
        submit=submit,
        run=run,
        gpus=gpus,
        user=[names.index(each) for each in user],
        user_names=names,
        history=History(np.array(start)),
        rebase=False,
    )
    return Log(made, made.submit, made.history.start, capacity)


def test_the_page_shows_what_the_csv_file_says():
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert filled(text, parts(read_rows(TABLE))) == text


@pytest.mark.skipif(not SHARED_TRACES.exists(), reason="the logs are not here")
@pytest.mark.parametrize("name", ["Alibaba openb", "MIT Supercloud"])
def test_figures_can_be_measured_again(name):
    file, weeks = LOGS[name]
    known = {
        (row["subject"], row["what"]): row["value"]
        for row in read_rows(TABLE)
        if row["log"] == name
    }
    for subject, what, value in figures(read(SHARED_TRACES / file), list(weeks)):
        told = value if isinstance(value, str) else f"{value:.6g}"
        assert known[subject, what] == told, (subject, what)


def test_a_limit_explains_only_waits_that_would_have_broken_it():
    """Both second jobs wait an hour beside three free GPUs; only Ann has never run two jobs."""
    log = log_of(
        (0.0, 0.0, HOUR, 1, "ann"),
        (0.0, HOUR, 60.0, 1, "ann"),
        (0.0, 0.0, 2 * HOUR, 1, "bob"),
        (0.0, HOUR, 60.0, 1, "bob"),
        (0.0, HOUR / 2, 60.0, 1, "eve"),
        capacity=5,
    )
    waits = waiting(log)
    assert waits.free.all()
    assert not waits.still.any()
    share = beyond_most(log, waits, log.jobs.user, np.ones(len(log.jobs)))
    # Ann's hour, of her hour, Bob's and Eve's half.
    assert share == pytest.approx(1 / 2.5, abs=0.05)


def test_hours_without_starts_look_dedicated_after_three_weeks():
    """Each week nothing starts in its second hour; in the sixth a job waits through it."""
    jobs = [
        (week * WEEK + hour * HOUR, week * WEEK + hour * HOUR, 1.0, 1, "ann")
        for week in range(8)
        for hour in range(168)
        if hour not in (1, 2)
    ]
    late = (5 * WEEK + HOUR, 5 * WEEK + 3 * HOUR, 1.0, 1, "ann")
    log = log_of(*sorted([*jobs, late]), capacity=5)
    found = dedicated(log, waiting(log))
    assert found == pytest.approx((1.0, 2 / 168))
