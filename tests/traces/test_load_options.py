"""Options of formats: which format takes which, and the error when none does."""

from __future__ import annotations

import pytest

from berthline.errors import ConfigError
from berthline.traces.formats.format_table import FORMATS
from berthline.traces.load import load_trace


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("submit_time,duration,num_gpus\n0,60,1\n")
    return path


def test_none_means_not_given(table):
    assert len(load_trace(table, mapping=None)) == 1
    assert len(load_trace(table, "csv", mapping=None)) == 1


def test_an_option_that_one_format_has_names_the_format(table):
    assert load_trace(table, mapping="submit=submit_time").provenance["format"] == "csv"
    with pytest.raises(ConfigError, match="option of the trace format 'swf' 'mapping'") as caught:
        load_trace(table, "swf", mapping="submit=submit_time")
    assert caught.value.expected == "one of pools, reference_type"
    assert caught.value.hint == "mapping is an option of csv"


def test_an_option_of_several_formats_does_not_change_what_a_file_is(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-01 00:00:00,9,1,9,a\n")
    assert load_trace(path).provenance["format"] == "philly-reduced"
    with pytest.raises(ConfigError, match="trace format 'philly-reduced' 'cpu_jobs'"):
        load_trace(path, cpu_jobs="keep")
    assert load_trace(path, "csv", cpu_jobs="keep").provenance["format"] == "csv"


@pytest.mark.parametrize(
    "name", [name for name, entry in FORMATS.items() if "cpu_jobs" in entry.options]
)
def test_cpu_jobs_is_drop_or_keep(table, name):
    with pytest.raises(ConfigError) as caught:
        load_trace(table, name, cpu_jobs="all")
    assert "'all'" in caught.value.what
    assert caught.value.expected == "one of drop, keep"


def test_a_misspelt_option_gets_the_nearest(table):
    with pytest.raises(ConfigError) as caught:
        load_trace(table, maping="submit=submit_time")
    assert caught.value.what == "unknown trace option 'maping'"
    assert caught.value.hint == "did you mean 'mapping'?"
    assert str(table) in caught.value.where


def test_options_that_no_format_has_together_are_refused(table):
    with pytest.raises(ConfigError, match="all these options: mapping, run_times"):
        load_trace(table, mapping="submit=submit_time", run_times="x.csv")


def test_every_option_says_what_it_is():
    for entry in FORMATS.values():
        for name, meaning in entry.options.items():
            assert name.isidentifier()
            assert meaning
