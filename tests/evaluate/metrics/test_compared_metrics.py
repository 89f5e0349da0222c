"""The table of compared metrics: one entry for each field of a comparison, read from both forms."""

import msgspec

import berthline as bl
from berthline.evaluate.compare.comparison import PerMetric
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.runs.job_outcomes import JobOutcomes


def test_every_metric_is_a_field_of_a_comparison():
    assert tuple(METRICS) == PerMetric.__struct_fields__


def test_metrics_are_read_alike_from_a_run_and_from_its_summary():
    workload = bl.generate("synthetic", cluster="uniform:2x4", jobs=60, seed=1)
    found = bl.simulate(workload, "uniform:2x4", "fcfs").metrics()
    summary = msgspec.to_builtins(found)
    for metric in METRICS.values():
        assert metric.of(found) == metric.of_summary(summary) > 0


def test_columns_are_those_of_the_table_of_jobs():
    columns = {metric.column for metric in METRICS.values() if metric.column}
    assert columns == {"jct", "wait", "bounded_slowdown"}
    assert columns < {field.name for field in JobOutcomes.__dataclass_fields__.values()}
