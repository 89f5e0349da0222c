"""How long a million rows take to load, and how much memory, each in a process of its own."""

from __future__ import annotations

import pytest

from berthline.cli.bench.load import MOST_MB, MOST_SECONDS, ROWS, measure_sample
from berthline.cli.bench.load_samples import SAMPLES


@pytest.mark.bench
@pytest.mark.parametrize("name", SAMPLES)
def test_a_million_rows_load_in_a_second_and_500_mb(tmp_path, name):
    load = measure_sample(name, ROWS, tmp_path)
    assert load.cpu_seconds < MOST_SECONDS
    assert load.max_rss_mb < MOST_MB


@pytest.mark.parametrize("name", SAMPLES)
def test_all_rows_of_a_sample_are_rows_of_its_format(tmp_path, name):
    load = measure_sample(name, 2_000, tmp_path)
    assert load.rows == pytest.approx(2_000, rel=0.01)
    assert 0 < load.jobs <= load.rows
