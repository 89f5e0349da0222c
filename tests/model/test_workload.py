"""Workload.from_columns: what it sorts, fills in and refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from berthline.errors import TraceError
from berthline.model.workload import Workload


def workload(**columns: Any) -> Workload:
    """Three jobs, unless a column says otherwise."""
    return Workload.from_columns(
        **({"submit": [0.0, 5.0, 9.0], "run": [1.0, 2.0, 3.0], "gpus": [1, 2, 4]} | columns)
    )


def refusal(**columns: Any) -> TraceError:
    with pytest.raises(TraceError) as caught:
        workload(**columns)
    return caught.value


def test_from_columns__defaults() -> None:
    jobs = workload()
    assert len(jobs) == jobs.num_jobs == 3
    assert jobs.work == 1 * 1 + 2 * 2 + 3 * 4
    assert np.isnan(jobs.estimate).all()
    assert np.isposinf(jobs.deadline).all()
    for column, value in (
        *(("cpus", 0), ("memory_mib", 0), ("priority", 0.0)),
        *(("user", 0), ("pool", -1), ("gpu_types", -1)),
    ):
        assert getattr(jobs, column).tolist() == [value] * 3
    assert jobs.names is None
    assert jobs.name == "workload"
    assert jobs.provenance == {}


def test_from_columns__types_of_columns() -> None:
    jobs = workload(submit=[0, 1, 2], run=[1, 2, 3], gpus=[1.0, 2.0, 4.0], user=[True, False, True])
    for column, dtype in (
        *(("submit", "f8"), ("run", "f8"), ("estimate", "f8"), ("priority", "f8")),
        *(("deadline", "f8"), ("gpus", "i4"), ("cpus", "i4"), ("memory_mib", "i8")),
        *(("user", "i4"), ("pool", "i4"), ("gpu_types", "i4")),
    ):
        assert getattr(jobs, column).dtype == np.dtype(dtype), column


def test_from_columns__columns_are_read_only_copies() -> None:
    submit = np.array([0.0, 5.0, 9.0])
    jobs = workload(submit=submit)
    submit[0] = 3.0
    assert jobs.submit[0] == 0.0
    for column in ("submit", "run", "gpus", "estimate", "user", "gpu_types"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(jobs, column)[0] = 1


def test_from_columns__sorts_all_columns_by_submission() -> None:
    jobs = workload(
        submit=[9.0, 0.0, 5.0],
        run=[3.0, 1.0, 2.0],
        gpus=[4, 1, 2],
        estimate=[30.0, 10.0, 20.0],
        cpus=[3, 1, 2],
        memory_mib=[30, 10, 20],
        priority=[3.0, 1.0, 2.0],
        deadline=[np.inf, 11.0, 22.0],
        user=[3, 1, 2],
        pool=[1, -1, 0],
        gpu_types=[0, -1, 0],
        pool_names=("a", "b"),
        gpu_type_sets=("V100",),
        names=["third", "first", "second"],
    )
    assert jobs.submit.tolist() == [0.0, 5.0, 9.0]
    assert jobs.run.tolist() == [1.0, 2.0, 3.0]
    assert jobs.gpus.tolist() == [1, 2, 4]
    assert jobs.estimate.tolist() == [10.0, 20.0, 30.0]
    assert jobs.cpus.tolist() == [1, 2, 3]
    assert jobs.memory_mib.tolist() == [10, 20, 30]
    assert jobs.priority.tolist() == [1.0, 2.0, 3.0]
    assert jobs.deadline.tolist() == [11.0, 22.0, np.inf]
    assert jobs.user.tolist() == [1, 2, 3]
    assert jobs.pool.tolist() == [-1, 0, 1]
    assert jobs.gpu_types.tolist() == [-1, 0, 0]
    assert jobs.names is not None
    assert jobs.names.tolist() == ["first", "second", "third"]


def test_from_columns__jobs_of_one_instant_keep_their_order() -> None:
    submit = [7.0, 3.0] * 50
    jobs = workload(submit=submit, run=np.arange(1.0, 101.0), gpus=1)
    assert jobs.run.tolist() == [*range(2, 101, 2), *range(1, 100, 2)]


def test_from_columns__rebases_time_and_deadlines_to_the_first_submission() -> None:
    jobs = workload(submit=[105.0, 100.0, 109.0], deadline=[120.0, np.inf, 90.0])
    assert jobs.submit.tolist() == [0.0, 5.0, 9.0]
    assert jobs.deadline.tolist() == [np.inf, 20.0, -10.0]


def test_from_columns__without_rebasing_times_stay() -> None:
    jobs = workload(submit=[105.0, 100.0, 109.0], deadline=200.0, rebase=False)
    assert jobs.submit.tolist() == [100.0, 105.0, 109.0]
    assert jobs.deadline.tolist() == [200.0] * 3


def test_from_columns__negative_times_are_rebased() -> None:
    assert workload(submit=[-5.0, 0.0, 5.0]).submit.tolist() == [0.0, 5.0, 10.0]


def test_from_columns__negative_times_without_rebasing_are_refused() -> None:
    """The clock starts at 0: neither simulator can begin before it."""
    error = refusal(submit=[-5.0, 0.0, 5.0], rebase=False)
    assert error.where.startswith("workload, row 0")


def test_from_columns__scalars_apply_to_all_jobs() -> None:
    jobs = workload(
        run=60,
        gpus=8,
        estimate=90.0,
        cpus=16,
        memory_mib=1024,
        priority=2,
        deadline=500,
        user=3,
        pool=0,
        gpu_types=1,
        pool_names=("a",),
        gpu_type_sets=("V100", "A100|V100"),
    )
    for column, value in (
        *(("run", 60.0), ("gpus", 8), ("estimate", 90.0), ("cpus", 16), ("memory_mib", 1024)),
        *(("priority", 2.0), ("deadline", 500.0), ("user", 3), ("pool", 0), ("gpu_types", 1)),
    ):
        assert getattr(jobs, column).tolist() == [value] * 3


def test_from_columns__user_names_default_to_the_numbers() -> None:
    assert workload(user=[2, 0, 2]).user_names == ("user0", "user1", "user2")
    assert workload(user=[1, 0, 1], user_names=("ann", "bob")).user_names == ("ann", "bob")


def test_from_columns__one_estimate_may_be_missing() -> None:
    jobs = workload(estimate=[1.0, np.nan, 3.0])
    assert np.isnan(jobs.estimate).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("submit", [0.0, np.nan, 2.0], "a finite number of seconds"),
        ("submit", [0.0, np.inf, 2.0], "a finite number of seconds"),
        ("run", [1.0, 0.0, 2.0], "seconds, more than 0"),
        ("run", [1.0, -3.0, 2.0], "seconds, more than 0"),
        ("run", [1.0, np.inf, 2.0], "seconds, more than 0"),
        ("run", [1.0, np.nan, 2.0], "seconds, more than 0"),
        ("gpus", [1, 0, 2], "at least one of GPUs, CPUs and memory"),
        ("gpus", [1, -4, 2], "0 GPUs (CPUs or memory only) or more"),
        ("estimate", [1.0, 0.0, 2.0], "seconds > 0"),
        ("estimate", [1.0, -1.0, 2.0], "seconds > 0"),
        ("estimate", [1.0, np.inf, 2.0], "seconds > 0"),
        ("cpus", [1, -1, 2], "0 (no limit) or more"),
        ("memory_mib", [1, -1, 2], "0 (no limit) or more"),
        ("priority", [0.0, np.nan, 1.0], "a finite number"),
        ("priority", [0.0, np.inf, 1.0], "a finite number"),
        ("deadline", [1.0, np.nan, 1.0], "seconds, or infinity for none"),
        ("user", [0, -1, 1], "a user index of 0 or more"),
        ("pool", [-1, -2, 0], "-1 or a pool index"),
        ("pool", [0, 1, 0], "-1 or a pool index"),
        ("gpu_types", [-1, -2, 0], "-1 or an index into gpu_type_sets"),
        ("gpu_types", [0, 2, 1], "-1 or an index into gpu_type_sets"),
    ],
)
def test_from_columns__value_out_of_range(column: str, values: list[float], expected: str) -> None:
    names = {"pool_names": ("a",), "gpu_type_sets": ("V100", "A100")}
    error = refusal(**{column: values}, **names, name="mine")
    assert error.what == f"column {column!r} holds {np.array(values)[1]}"
    assert error.where == "mine, row 1"
    assert error.expected == expected


def test_from_columns__says_how_many_more_rows_are_wrong() -> None:
    assert refusal(run=[1.0, 0.0, -1.0]).where == "workload, row 1 and 1 more rows"


def test_from_columns__row_numbers_are_those_of_the_given_columns() -> None:
    error = refusal(submit=[9.0, 5.0, 0.0], run=[1.0, 2.0, 0.0])
    assert error.where == "workload, row 2"


@pytest.mark.parametrize(
    ("column", "values", "bad", "row"),
    [
        ("gpus", [1.0, 2.5, 4.0], "2.5", 1),
        ("gpus", [1.0, 2.0, np.nan], "nan", 2),
        ("gpus", [np.inf, 2.0, 1.0], "inf", 0),
        ("cpus", [0.5, 1.0, 1.0], "0.5", 0),
        ("memory_mib", [1.0, 1.0, 0.1], "0.1", 2),
        ("user", [0.0, 1.5, 0.0], "1.5", 1),
    ],
)
def test_from_columns__counts_must_be_whole(
    column: str, values: list[float], bad: str, row: int
) -> None:
    error = refusal(**{column: values})
    assert error.what == f"column {column!r} holds {bad}"
    assert error.where == f"workload, row {row}"
    assert error.expected.startswith("whole numbers from ")


@pytest.mark.parametrize("value", [2.5, np.nan])
def test_from_columns__a_scalar_count_must_be_whole_too(value: float) -> None:
    assert refusal(gpus=value).what == f"column 'gpus' holds {value}"


@pytest.mark.parametrize("column", ["gpus", "cpus", "user"])
@pytest.mark.parametrize("form", ["list", "array", "float", "scalar"])
def test_from_columns__counts_beyond_32_bits_are_refused_not_wrapped(
    column: str, form: str
) -> None:
    too_large = 2**32 + 1
    values: Any = {
        "list": [1, too_large, 1],
        "array": np.array([1, too_large, 1]),
        "float": np.array([1.0, float(too_large), 1.0]),
        "scalar": too_large,
    }[form]
    assert refusal(**{column: values}).what.startswith(f"column {column!r} holds")


@pytest.mark.parametrize("column", ["submit", "run", "gpus", "estimate"])
def test_from_columns__text_is_refused_with_the_column(column: str) -> None:
    assert column in refusal(**{column: ["1", "two", "3"]}).what


@pytest.mark.parametrize("column", ["run", "gpus", "estimate", "priority", "pool"])
@pytest.mark.parametrize("values", [[1, 1], [1, 1, 1, 1], [[1, 1, 1]], []])
def test_from_columns__wrong_length(column: str, values: list[Any]) -> None:
    error = refusal(**{column: values}, pool_names=("a", "b"))
    assert error.what == f"column {column!r} has shape {np.shape(values)}"
    assert error.expected == "(3,): one value per job, as in 'submit'"


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c", "d"], "abc"])
def test_from_columns__wrong_number_of_names(names: Any) -> None:
    assert "names" in refusal(names=names).what


def test_from_columns__a_user_without_a_name_is_refused() -> None:
    error = refusal(user=[0, 2, 1], user_names=("ann", "bob"))
    assert error.what == "column 'user' holds 2"


@pytest.mark.parametrize("submit", [[], 3.0, [[0.0, 1.0]]])
def test_from_columns__no_jobs_at_all(submit: Any) -> None:
    error = refusal(submit=submit, run=1.0, gpus=1)
    assert error.what == "a workload needs at least one job"
    assert error.expected == "one-dimensional columns with one row per job"


def test_errors__read_as_text() -> None:
    assert str(refusal(run=[1.0, -2.0, 3.0], name="trace.csv")) == (
        "column 'run' holds -2.0: trace.csv, row 1\nexpected: seconds, more than 0"
    )


def test_window__is_a_workload_of_its_own() -> None:
    jobs = workload(
        submit=[100.0, 105.0, 109.0],
        estimate=[1.0, np.nan, 3.0],
        deadline=[200.0, 205.0, np.inf],
        user=[1, 0, 1],
        pool=[0, -1, 0],
        pool_names=("a",),
        user_names=("ann", "bob"),
        names=["x", "y", "z"],
        name="trace",
        provenance={"file": "trace.csv"},
        rebase=False,
    )
    part = jobs.window(1, 3)
    assert part.submit.tolist() == [0.0, 4.0]
    assert part.deadline.tolist() == [100.0, np.inf]
    assert part.run.tolist() == [2.0, 3.0]
    assert part.gpus.tolist() == [2, 4]
    assert part.user.tolist() == [0, 1]
    assert part.pool.tolist() == [-1, 0]
    assert part.user_names == ("ann", "bob")
    assert part.pool_names == ("a",)
    assert part.names is not None
    assert part.names.tolist() == ["y", "z"]
    assert part.name == "trace[1:3]"
    assert part.provenance == {
        "file": "trace.csv",
        "cut": {"first": 1, "jobs": 2, "of": 3},
    }
    assert jobs.submit.tolist() == [100.0, 105.0, 109.0]


def test_window__of_no_jobs_is_refused() -> None:
    with pytest.raises(TraceError, match="at least one job"):
        workload().window(2, 2)


def test_window__of_all_jobs_is_the_same_workload() -> None:
    jobs = workload(user=[1, 2, 0], priority=[3.0, 2.0, 1.0])
    whole = jobs.window(0, 3)
    for column in ("submit", "run", "gpus", "priority", "user", "deadline"):
        np.testing.assert_array_equal(getattr(whole, column), getattr(jobs, column))
