"""CsvTable: numbers, labels, comments and exact widths, with the line of what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berthline.errors import TraceError
from berthline.traces.csv_table import LONGEST_LABEL, CsvTable


@pytest.fixture
def table(tmp_path):
    def read(text, **options):
        path = tmp_path / "t.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return CsvTable(path, **options)

    return read


def refused(call):
    with pytest.raises(TraceError) as caught:
        call()
    return caught.value


def test_blanks_around_numbers_and_other_words_for_empty(table):
    numbers = table("a,b\n 1 , 2\n-1,none\n,3\n")
    assert numbers.numbers("a", missing=9).tolist() == [1, -1, 9]
    assert numbers.numbers("b", missing=9, empty=("none",)).tolist() == [2, 9, 3]
    assert numbers.numbers("a", missing=9, empty=("-1",)).tolist() == [1, 9, 9]


@given(
    values=st.lists(st.one_of(st.integers(-(10**15), 10**15), st.floats(-1e15, 1e15)), min_size=1)
)
def test_numbers_are_those_python_reads(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_text("".join(f"{value!r}\n" for value in ("x", *values)))
    read = CsvTable(path, columns=None).numbers("'x'")
    np.testing.assert_array_equal(read, [float(repr(value)) for value in values])


def test_labels(table):
    labels = table("a\n bob \n\u00e9t\u00e9\nx\n").labels("a")
    assert labels.tolist() == ["bob", "été", "x"]
    assert labels.dtype == "<U3"
    assert table("a,b\n,1\n,2\n").labels("a").tolist() == ["", ""]
    rows = np.array([False, True, True])
    assert table("a\nlong\nb\nc\n").labels("a", rows=rows).tolist() == ["b", "c"]
    long = "x" * (LONGEST_LABEL + 1)
    assert "line 3" in refused(lambda: table(f"a\nb\n{long}\n").labels("a")).where


def test_comments_do_not_count_as_rows_but_as_lines(table):
    numbers = table("; one\n1,2\n; two\n\n3,x\n", columns=["a", "b"], comment=";")
    assert len(numbers) == 2
    assert refused(lambda: numbers.numbers("b")).where.endswith("line 5")


def test_exact_widths(table):
    assert len(table("1,2\n3,4\n", columns=["a", "b"], exact=True)) == 2
    assert len(table("1,2,3\n", columns=["a", "b"])) == 1
    error = refused(lambda: table("1,2,3\n", columns=["a", "b"], exact=True))
    assert error.what == "the first line has 3 cells"
    error = refused(lambda: table("1,2\n1,2,3\n", columns=["a", "b"], exact=True))
    assert error.what == "the line has 3 cells"
    assert error.where.endswith("line 2")


def test_a_quote_that_is_not_closed_has_its_line(table):
    error = refused(lambda: table('a,b\n1,2\n3,"x\n4,5\n'))
    assert "quote" in error.what
    assert error.where.endswith("line 3")
    assert table('a,b\n1,"x\ny"\n', quote='"').text("b").to_list() == ["x\ny"]


def test_a_carriage_return_inside_a_line_does_not_hide_the_line(table):
    numbers = table(b"a,b\n1,x\ry\n2,z\n")
    assert refused(lambda: numbers.numbers("b")).where.endswith("line 2 (and 1 more like it)")


def test_names_that_repeat_are_refused(table):
    assert "same name, 'a'" in refused(lambda: table("a,b,a\n1,2,3\n")).what
    assert "same name, 'a'" in refused(lambda: table("a,b, a\n1,2,3\n")).what


def test_a_line_of_nothing_but_separators_is_refused_at_once(table):
    for separator in (",", "\t", "|"):
        error = refused(lambda mark=separator: table(mark * 10_000, separator=mark))
        assert error.what == "the first line has 10,001 cells"


def test_bytes_that_are_no_text_are_shown_replaced(table):
    error = refused(lambda: table(b"a\n\xff\xfe\n").numbers("a"))
    assert error.what == "column 'a' holds '\ufffd\ufffd'"


def test_the_first_cell_that_is_not_empty(table):
    texts = table("a,b,c\n1,,\n2, x ,\n")
    assert [texts.first_text(name) for name in "abc"] == ["1", "x", ""]
