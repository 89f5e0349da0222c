"""The page on the fidelity of whatif shows what its CSV file says."""

from __future__ import annotations

from benchmarks.result_files import RESULTS, filled, read_rows
from benchmarks.whatif_fidelity import LOGS, PAGE, parts


def test_the_page_shows_what_the_csv_file_says():
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert filled(text, parts(read_rows(RESULTS / f"{PAGE}.csv"))) == text


def test_every_week_is_in_the_csv_file():
    rows = read_rows(RESULTS / f"{PAGE}.csv")
    for log, (_, weeks) in LOGS.items():
        assert [each["week"] for each in rows if each["log"] == log] == [str(w) for w in weeks]


def test_with_nothing_hidden_the_scheduler_is_found_and_every_wait_is_reproduced():
    rows = [each for each in read_rows(RESULTS / f"{PAGE}.csv") if "nothing hidden" in each["log"]]
    found = {each["log"].partition(",")[0]: each for each in rows}
    assert len(found) == 5
    # Fair share remembers what is not in the log; the page says so.
    del found["slurm-multifactor+easy"]
    for scheduler, each in found.items():
        assert each["model"] == scheduler
        assert float(each["error_factor"]) < 1.001
