"""CsvTable: numbers, labels, comments and exact widths, with the line of what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berthline.errors import TraceError
from berthline.traces.reading.csv import csv_reader
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.text_columns import LONGEST_LABEL


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


@pytest.fixture(params=[1, 11, 64, 10_000])
def piece_bytes(request, monkeypatch):
    monkeypatch.setattr(csv_reader, "PIECE_BYTES", request.param)
    return request.param


TEXT = """a,b,c,d
1,2020-01-02 03:04:05,x,"one, two"
 2 ,2020-01-02 03:04:06,y,"three
four"
,2020-01-02 03:04:07,,""

4.5,2020-01-02 03:04:08, x ,é
"""


def test_columns_are_the_same_whatever_the_size_of_pieces(table, piece_bytes):
    read = table(TEXT, numbers=("a",), times={"b": "%Y-%m-%d %H:%M:%S"}, words=("c",), texts=("d",))
    assert len(read) == 4
    assert read.numbers("a", missing=9).tolist() == [1, 2, 9, 4.5]
    assert np.diff(read.times("b")).tolist() == [1, 1, 1]
    codes, names = read.categories("c")
    assert [names[code] for code in codes] == ["x", "y", "unknown", "x"]
    assert read.labels("d").tolist() == ["one, two", "three\nfour", "", "é"]


def test_what_is_no_number_is_told_as_the_file_has_it(table, piece_bytes):
    read = table("a,b\n" + "1,x\n" * 20 + "007x,y\n" + "2,z\n" * 20, numbers=("a",), texts=("b",))
    error = refused(lambda: read.numbers("a"))
    assert error.what == "column 'a' holds '007x'"
    assert error.where.endswith("line 22")
    error = refused(lambda: table("a\n1\n2\n03.50\n", numbers=("a",)).numbers("a", highest=3))
    assert error.what == "column 'a' holds '03.50'"


def test_what_is_no_time_is_told_as_the_file_has_it(table, piece_bytes):
    pattern = "%Y-%m-%d %H:%M:%S"
    text = "a,b\n" + "2020-01-02 03:04:05,1\n" * 9 + "None,1\nsoon,1\n"
    read = table(text, times={"a": pattern}, numbers=("b",))
    error = refused(lambda: read.times("a", empty=("None",), optional=True))
    assert error.what == "column 'a' holds 'soon'"
    assert error.where.endswith("line 12")
    read = table(text.replace("soon", "None"), times={"a": pattern})
    assert np.isnan(read.times("a", empty=("None",), optional=True)).sum() == 2


def test_a_line_with_too_few_cells_is_refused(table, piece_bytes):
    for columns in (None, ["a", "b", "c"]):
        text = "a,b,c\n" + "1,2,3\n" * 5 + "4,5\n\n6,7,8\n9\n"
        error = refused(lambda text=text, columns=columns: table(text, columns=columns))
        assert error.what == "the line has 2 cells"
        assert error.where.endswith("line 7 (and 1 more like it)")
        assert error.expected == "3 cells, as in the first line"
        assert "cut short" in error.hint
        assert error.lines() == [7, 10]


def test_a_long_line_does_not_make_up_for_a_short_one(table):
    text = "a,b,c\n1,2,3\n4,5\n6,7,8,9\n"
    assert refused(lambda: table(text, numbers=("a",))).what == "the line has 4 cells"
    # Longer lines are allowed in a table without header.
    error = refused(lambda: table(text, columns=["a", "b", "c"], texts=("a",)))
    assert error.what == "the line has 2 cells"


def test_separators_in_quotes_are_no_cells(table):
    text = 'a,b,c\n"1,2","x,y,z",3\n"4,,5",6,\n'
    assert table(text, texts=("a",)).text("a").to_list() == ["1,2", "4,,5"]
    error = refused(lambda: table(text + '"1,2,3",4\n', texts=("a",)))
    assert error.what == "the line has 2 cells"
    assert error.where.endswith("line 4")


def test_rows_of_empty_cells_are_no_rows_but_rows_with_one_cell_are(table, piece_bytes):
    read = table("a,b,c\n1,2,3\n,,\n\n,,7\n", numbers=("a",), texts=("b",))
    assert len(read) == 2
    assert read.numbers("c").tolist() == [3, 7]


def test_a_long_line_of_separators_is_no_row(table):
    read = table("a,b,c\n" + "," * 1_000_000 + "\n1,2, 3\n", numbers=("a",))
    assert len(read) == 1
    assert refused(lambda: read.numbers("c", highest=2)).where.endswith("line 3")


def test_a_column_that_was_not_announced_is_read_when_asked_for(table):
    read = table("a,b\n1,x\n2,y\n", numbers=("a",))
    assert read.text("b").to_list() == ["x", "y"]
    assert read.text("a").to_list() == ["1", "2"]
    assert read.first_text("b") == "x"


def test_words_that_are_numbers_may_stand_for_nothing(table):
    read = table("a\n1\nnan\n-1\n", numbers=("a",))
    assert read.numbers("a", missing=9, empty=("nan", "-1")).tolist() == [1, 9, 9]
    assert refused(lambda: read.numbers("a", empty=("None",))).what == "column 'a' holds 'nan'"
