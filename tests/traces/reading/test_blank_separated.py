"""Finding fields piece by piece gives the same as splitting the text line by line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berthline.errors import TraceError
from berthline.traces.reading import blank_separated
from berthline.traces.reading.blank_separated import BlankSeparated

NAMES = ("first", "second", "third")
FIELD = st.text("0123456789.x", min_size=1, max_size=6)
BLANK = st.text(" \t\r", min_size=1, max_size=3)


def table(text):
    return BlankSeparated(text.encode(), Path("a.txt"), NAMES, wanted=NAMES, hint="mend it")


@st.composite
def texts(draw):
    lines = []
    for _ in range(draw(st.integers(1, 12))):
        words = draw(st.one_of(st.just([]), st.lists(FIELD, min_size=3, max_size=5)))
        blanks = [draw(BLANK) for _ in words]
        lines.append("".join(f"{word}{blank}" for word, blank in zip(words, blanks, strict=True)))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("piece_bytes", [1, 7, 40, 2**20])
@given(text=texts())
def test_words_are_those_of_each_line_whatever_the_size_of_pieces(piece_bytes, text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blank_separated, "_PIECE_BYTES", piece_bytes)
        rows = table(text)
    numbered = [(number, line.split()) for number, line in enumerate(text.split("\n"), start=1)]
    expected = [(number, words) for number, words in numbered if words]
    assert rows.line.tolist() == [number for number, _ in expected]
    assert rows.num_fields.tolist() == [len(words) for _, words in expected]
    for position, name in enumerate(NAMES):
        found = [word.decode() for word in rows.words(name).tolist()]
        assert found == [words[position] for _, words in expected]


def test_lines_are_numbered_through_all_pieces(monkeypatch):
    monkeypatch.setattr(blank_separated, "_PIECE_BYTES", 8)
    with pytest.raises(TraceError) as caught:
        table("1 2 3\n" * 50 + "\n1 x 3\n").numbers("second")
    assert caught.value.what == "field 2 (second) is 'x'"
    assert caught.value.where == "a.txt, line 52"
    assert caught.value.hint == "mend it"


def test_rows_with_too_few_fields_are_refused_wherever_they_stand(monkeypatch):
    monkeypatch.setattr(blank_separated, "_PIECE_BYTES", 8)
    for text, line in (("1 2\n1 2 3\n", 1), ("1 2 3\n1 2 3\n1\n", 3)):
        with pytest.raises(TraceError, match=rf"line {line}\b"):
            table(text).require_fields()


@given(
    words=st.lists(
        st.one_of(
            st.integers(-(10**17), 10**17).map(str),
            st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
            st.sampled_from(["-0", "+7", "007", "1e3", "-1.", ".5", "999999999999999"]),
        ),
        min_size=1,
    )
)
def test_numbers_are_those_python_reads(words):
    rows = table("".join(f"{word} x y\n" for word in words))
    numbers = rows.numbers("first", highest=float("inf"))
    expected = np.array([float(word) for word in words])
    assert numbers.tobytes() == expected.tobytes()


@pytest.mark.parametrize("block_rows", [1, 3, 2**15])
@pytest.mark.parametrize("word", ["-", "1-2", "--1", "1,5", "x", "٣", "1" * 41])
def test_what_is_no_number_has_its_line(monkeypatch, block_rows, word):
    monkeypatch.setattr(blank_separated, "_BLOCK_ROWS", block_rows)
    rows = table("1 2 3\n" * 7 + f"{word} 2 3\n" + "1 2 3\n")
    with pytest.raises(TraceError, match="field 1"):
        rows.numbers("first")
    with pytest.raises(TraceError) as caught:
        rows.numbers("first")
    assert caught.value.where == "a.txt, line 8"
    assert rows.numbers("second").tolist() == [2] * 9
