"""How close two workloads are: distances and waits, by hand."""

from __future__ import annotations

from berthline.evaluate.trace_checks.closeness import distance
from berthline.evaluate.trace_checks.wait_check import WaitCheck


def test_a_wait_check_is_rows_and_plain_data():
    check = WaitCheck(64, 0.8, "exact", 7200.0, [3600.0, 10_800.0, 7200.0])
    assert check.rows() == [
        ("mean wait, hours, 64 GPUs", "2", "2", "ratio 1.00"),
        ("lowest to highest of 3", "", "1-3", ""),
    ]
    assert check.as_dict()["ratio"] == 1.0
    assert WaitCheck(64, 0.8, "exact", 0.0, [0.0]).rows()[0][3] == ""


def test_distances():
    assert distance([1, 2, 3], [1, 2, 3]) == 0
    assert distance([1, 2], [3, 4]) == 1
    assert distance([1, 2, 3, 4], [1, 2, 3, 9]) == 0.25
