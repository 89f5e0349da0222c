"""Comments above a table: skipped, with the right line numbers; a header behind `#` is read."""

from __future__ import annotations

import pytest

from berthline.errors import TraceError
from berthline.traces.load import load_trace
from berthline.traces.reading.leading_comments import blank_leading_comments

TABLE = "submit,run,gpus\n0,5,1\n3,4,2\n"


@pytest.mark.parametrize(
    "text",
    [
        TABLE,
        "# made by export\n" + TABLE,
        "\ufeff# made by export\n#\n\n# twice, on Monday\n" + TABLE,
        "# a title, with commas, two\n" + TABLE,
        "# submit, run, gpus\n0,5,1\n3,4,2\n",
        "# a title\n#submit,run,gpus\n0,5,1\n3,4,2\n",
    ],
)
def test_comments_above_a_table(tmp_path, text):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    workload = load_trace(tmp_path / "a.csv")
    assert workload.run.tolist() == [5, 4]
    assert workload.provenance["rows"] == 2


def test_line_numbers_count_the_comments(tmp_path):
    (tmp_path / "a.csv").write_text("# one\n# two\n" + TABLE + "9,x,1\n")
    with pytest.raises(TraceError, match="'run' holds 'x'") as caught:
        load_trace(tmp_path / "a.csv")
    assert caught.value.where.endswith("line 6")


def test_a_sacct_text_may_have_comments_above(tmp_path):
    (tmp_path / "a.txt").write_text(
        "# sacct of March\n\nJobID|Submit|ElapsedRaw|AllocTRES\n"
        "1|2024-01-01T00:00:00|60|gres/gpu=1\n"
    )
    workload = load_trace(tmp_path / "a.txt")
    assert (workload.provenance["format"], workload.run.tolist()) == ("slurm-sacct", [60])


def test_only_comments_above_the_first_row_go():
    assert blank_leading_comments(b"a,b\n# c\n") == b"a,b\n# c\n"
    assert blank_leading_comments(b"# a,b\n1,2\n", has_header=False) == b"\n1,2\n"
    assert blank_leading_comments(b"# all\n# comments\n") == b"\n\n"
