"""The native reader of text tables makes of a piece what the careful one does, or leaves it."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berthline.traces.reading.csv.csv_careful import CarefulReader
from berthline.traces.reading.csv.csv_columns import CellType, Column
from berthline.traces.reading.csv.csv_look import Form
from berthline.traces.reading.csv.csv_native import NativeReader

PLAIN_FORM = Form()
DATE = "%Y-%m-%d %H:%M:%S"
NAMES = ("a", "b", "c", "d", "e")
WANTED = {
    "b": Column(CellType.NUMBER),
    "a": Column(CellType.TIME, DATE),
    "d": Column(CellType.WORD),
    "e": Column(CellType.TEXT),
}


def reads(piece, *, form=PLAIN_FORM, names=NAMES, wanted=WANTED):
    """Return the columns that each of the readers makes of a piece; None = it is not plain."""

    def explain(error):
        raise error

    native = NativeReader(names, len(names), form, wanted)
    if not native.read(piece):
        return None, None
    careful, is_odd = CarefulReader(names, len(names), form, explain=explain).read(piece, wanted)
    assert not is_odd
    return native.with_words(native.take()), {name: [careful[name]] for name in wanted}


def equal(one, other):
    return one.dtype == other.dtype and one.equals(other, null_equal=True)


def column(cells, wanted):
    """Return a column as the native reader reads it, of a piece with this column and another."""
    piece = "".join(f"x,{cell}\n" for cell in cells).encode()
    native, careful = reads(
        piece, names=("x", "y"), wanted={"x": Column(CellType.TEXT), "y": wanted}
    )
    assert native is not None
    assert equal(native["y"][0], careful["y"][0])
    return native["y"][0]


PLAIN_CELLS = st.one_of(
    st.just(""),
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)).map(
        lambda moment: moment.isoformat(" ", "seconds")
    ),
    st.sampled_from(["bob", "x y", "nan", "inf", "-", "1.", ".5", "+1", "0x1", "1e5", "-0", "007"]),
)
ODD_CELLS = st.one_of(
    PLAIN_CELLS,
    st.text(alphabet='ab1 ,"\n\r\t#é\x01\u2003', max_size=4),
    st.sampled_from(['"a,b"', '"a\nb"', '""', '"a""b"', '" a"', '"1"', '"a" ', "#a", "2020-02-30"]),
)


@given(rows=st.lists(st.tuples(*[PLAIN_CELLS] * 4, st.just("z")), min_size=1, max_size=20))
def test_plain_tables_are_read_natively(rows):
    piece = "".join(",".join(row) + "\n" for row in rows).encode()
    native, careful = reads(piece)
    assert native is not None
    for name in WANTED:
        assert equal(native[name][0], careful[name][0]), name


@given(rows=st.lists(st.tuples(*[ODD_CELLS] * 5), min_size=1, max_size=4), comment=st.booleans())
def test_what_is_read_natively_is_what_the_careful_reader_reads(rows, comment):
    piece = "".join(",".join(row) + "\n" for row in rows).encode()
    native, careful = reads(piece, form=Form(comment="#" if comment else None))
    for name in WANTED if native is not None else ():
        assert equal(native[name][0], careful[name][0]), name


@pytest.mark.parametrize(
    "piece",
    [
        b"1,2\n1,2,3\n",
        b"1,2\n1\n",
        b"1,2\n\n3,4\n",
        b"1,2\n,\n",
        b"1,2\n#1,2\n",
        b"1, 2\n",
        b"1,2\r\n",
        b'1,"2\n',
        b'1,""\n',
        b'1,"2""3"\n',
        b'1,2"3"\n',
        b'1,"2"3\n',
        "1,é\n".encode(),
        b"1,\xff\n",
        b"1,2",
        b"",
    ],
)
def test_what_is_not_plain_is_left(piece):
    for kind in (CellType.NUMBER, CellType.WORD, CellType.TEXT):
        wanted = {"y": Column(kind)}
        native = NativeReader(("x", "y"), 2, Form(comment="#"), wanted)
        assert native.read(b"1,7\n")
        assert not native.read(piece)
        assert native.read(b"1,8\n")
        assert [float(cell) for cell in native.with_words(native.take())["y"][0]] == [7, 8]


def test_quoted_cells_and_columns_nobody_wants():
    piece = b'"a, b",1," x","c\nd"\n \xff ,2,"y","e"\n'
    wanted = {"p": Column(CellType.NUMBER), "r": Column(CellType.TEXT)}
    native, careful = reads(piece, names=("o", "p", "q", "r"), wanted=wanted)
    assert native["p"][0].to_list() == [1, 2]
    assert native["r"][0].to_list() == ["c\nd", "e"]
    assert equal(native["r"][0], careful["r"][0])
    bars = reads(b'1|"x\n', form=Form(separator="|", quote=None), names=("p", "r"), wanted=wanted)
    assert bars[0]["r"][0].to_list() == ['"x']


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_are_the_nearest_there_are(values):
    texts = [repr(value) for value in values] + [f"{value:.6f}" for value in values]
    assert column(texts, Column(CellType.NUMBER)).to_list() == [float(text) for text in texts]


@pytest.mark.parametrize("form", [DATE, DATE + "%.f", "%Y/%m/%dT%H:%M:%S%.f%#z", DATE + "%z"])
@given(moments=st.lists(st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)), min_size=1))
def test_dates_are_those_python_reads(form, moments):
    offset = dt.timezone(dt.timedelta(hours=-3, minutes=-30)) if form[-1] == "z" else dt.UTC
    moments = [moment.replace(tzinfo=offset) for moment in moments]
    if "%.f" not in form:
        moments = [moment.replace(microsecond=0) for moment in moments]
    # Not strftime, which leaves out the zeros of early years.
    texts = [moment.isoformat(form[8]) for moment in moments]
    texts = [text if form[-1] == "z" else text[:-6] for text in texts]
    texts = [text.replace("-", "/", 2) if form[2] == "/" else text for text in texts]
    seconds = column(texts, Column(CellType.TIME, form))
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    exact = [(moment - epoch) // dt.timedelta(microseconds=1) for moment in moments]
    assert seconds.to_list() == [micros / 1e6 for micros in exact]


def test_rows_of_several_kinds_follow_one_another():
    native = NativeReader(("x",), 1, PLAIN_FORM, {"x": Column(CellType.NUMBER)})
    for piece in (b"1\n", b"2\n", b"None\n", b"3\n4\n"):
        assert native.read(piece)
    pieces = native.take()["x"]
    assert [piece.to_list() for piece in pieces] == [[1, 2], ["None"], [3, 4]]
    assert native.take()["x"] == []


def test_words_have_the_same_number_in_all_pieces():
    native = NativeReader(("x", "y"), 2, PLAIN_FORM, {"x": Column(CellType.WORD)})
    many = [f"word {number}" for number in range(5000)]
    for words in (many, many[::-1]):
        assert native.read("".join(f"{word},\n" for word in words).encode())
    read = native.with_words(native.take())["x"][0]
    assert read.dtype == pl.Categorical
    assert read.to_list() == many + many[::-1]
