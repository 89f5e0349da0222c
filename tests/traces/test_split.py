"""Splits by time: every job in one part or in a gap, parts in order, gaps as asked."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berthline.errors import ConfigError
from berthline.model.workload import Workload
from berthline.traces.split import FRACTIONS, PARTS, split_by_time


def workload(submit, **provenance):
    size = len(submit)
    return Workload.from_columns(
        submit=submit,
        run=np.full(size, 5.0),
        gpus=np.ones(size, dtype=int),
        names=[str(number) for number in range(size)],
        name="w",
        provenance=provenance,
    )


def names(part):
    return [int(name) for name in part.names]


def test_fractions_without_a_gap():
    split = split_by_time(workload(range(100)), (0.7, 0.2, 0.1))
    assert split.counts() == {"train": 70, "validation": 20, "test": 10, "gap": 0}
    assert names(split.validation) == list(range(70, 90))
    assert split.validation.submit[0] == 0
    assert split.test.name == "w-test"
    assert split.test.provenance["split"] == {"part": "test", "first": 90, "last": 99, "of": 100}


def test_a_gap_in_seconds_and_one_in_jobs():
    by_time = split_by_time(workload(range(0, 1000, 10)), (0.5, 0.25, 0.25), gap_seconds=45)
    # The last job of train is submitted at 490: 535 is the end of the gap, 540 the next job.
    assert names(by_time.validation)[0] == 54
    assert by_time.gap == (4, 4)
    by_jobs = split_by_time(workload(range(0, 1000, 10)), (0.5, 0.25, 0.25), gap_jobs=7)
    assert names(by_jobs.validation)[0] == 57
    assert by_jobs.counts() == {"train": 50, "validation": 18, "test": 18, "gap": 14}
    both = split_by_time(workload(range(100)), (0.5, 0.25, 0.25), gap_jobs=1, gap_seconds=3)
    assert both.gap == (2, 2)


def test_jobs_of_one_instant_are_not_parted():
    split = split_by_time(workload([0, 1, 1, 1, 2, 3, 4, 5]), (0.3, 0.4, 0.3))
    assert names(split.train) == [0, 1, 2, 3]


def test_the_origin_moves_with_the_part():
    split = split_by_time(workload(range(10), origin_unix_time=1000.0, rows=10), (0.5, 0.2, 0.3))
    origins = [getattr(split, name).provenance["origin_unix_time"] for name in PARTS]
    assert origins == [1000, 1005, 1007]
    assert "rows" not in split.test.provenance
    assert split.test.provenance["origin"] == {"rows": 10}
    assert split.test.provenance["cut"] == {"first": 7, "jobs": 3, "of": 10}


def test_a_part_does_not_take_the_counts_of_the_whole_file_for_its_own():
    facts = {"format": "swf", "path": "log.swf", "rows": 12, "used": 10, "dropped": {"no GPUs": 2}}
    split = split_by_time(workload(range(10), **facts, max_procs=64), (0.5, 0.2, 0.3))
    provenance = split.train.provenance
    assert provenance["origin"] == facts
    assert not {"rows", "used", "dropped"} & provenance.keys()
    assert (provenance["format"], provenance["path"]) == ("swf", "log.swf")
    assert provenance["max_procs"] == 64
    again = split_by_time(split.train, (0.4, 0.2, 0.4))
    assert again.test.provenance["origin"] == facts


@given(
    gaps=st.lists(st.integers(0, 50), min_size=9, max_size=60),
    first=st.floats(0.1, 0.7),
    second=st.floats(0.1, 0.2),
    gap_seconds=st.integers(0, 60),
    gap_jobs=st.integers(0, 3),
)
def test_parts_and_gaps_make_up_the_whole(gaps, first, second, gap_seconds, gap_jobs):
    whole = workload(np.cumsum(gaps))
    try:
        split = split_by_time(
            whole, (first, second, 1 - first - second), gap_seconds=gap_seconds, gap_jobs=gap_jobs
        )
    except ConfigError:
        return
    assert sum(split.counts().values()) == len(whole)
    parts = [names(getattr(split, name)) for name in PARTS]
    assert parts[0][0] == 0
    assert parts[2][-1] == len(whole) - 1
    for before, after in itertools.pairwise(parts):
        assert before[-1] + gap_jobs < after[0]
        assert whole.submit[after[0]] >= whole.submit[before[-1]] + gap_seconds
        assert whole.submit[after[0]] > whole.submit[before[-1]]


@pytest.mark.parametrize(
    "fractions", [(0.5, 0.5), (0.5, 0.5, 0.5), (1, 0, 0), (0.5, 0.7, -0.2), (float("nan"),) * 3]
)
def test_fractions_that_make_no_sense_are_refused(fractions):
    with pytest.raises(ConfigError, match="fractions"):
        split_by_time(workload(range(10)), fractions)


def test_gaps_that_make_no_sense_are_refused():
    for gap in ({"gap_seconds": -1}, {"gap_seconds": float("inf")}, {"gap_jobs": -1}):
        with pytest.raises(ConfigError, match="gap"):
            split_by_time(workload(range(10)), **gap)


def test_a_part_without_jobs_is_refused_by_name():
    with pytest.raises(ConfigError, match="validation part has no jobs"):
        split_by_time(workload(range(10)), gap_seconds=100)
    with pytest.raises(ConfigError, match="part has no jobs"):
        split_by_time(workload([0, 0, 0]))


def test_the_command_line_splits_as_the_function_does():
    from berthline.cli.traces.split import Split

    options = Split(file="x", out="y")
    assert tuple(float(part) for part in options.fractions.split(",")) == FRACTIONS
    plain = split_by_time(workload(range(1000)))
    assert plain.counts() == split_by_time(workload(range(1000)), FRACTIONS).counts()
    assert len(plain.train) == 1000 * FRACTIONS[0]
