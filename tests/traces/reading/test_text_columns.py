"""Columns of text as codes, labels and counts: the same as Python says, one by one."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from berthline.traces.reading import text_columns as tc

TEXT = st.one_of(st.none(), st.text("ab\u00e9\U0001f600", max_size=4))
TEXTS = st.lists(TEXT, min_size=1, max_size=20)


def series(texts, dtype=pl.String):
    return pl.Series(texts, dtype=pl.String).cast(dtype)


@given(texts=TEXTS)
def test_codes_stand_for_names_in_order_of_first_appearance(texts):
    named = ["ab" if text is None else text for text in texts]
    for dtype in (pl.String, pl.Categorical):
        codes, names = tc.categorize(series(texts, dtype), missing="ab")
        assert [names[code] for code in codes] == named
        assert list(names) == list(dict.fromkeys(named))
        assert tc.count_codes(codes, names) == {name: named.count(name) for name in names}
        chosen = tc.among(codes, names, ("ab", "b"))
        assert chosen.tolist() == [name in ("ab", "b") for name in named]


@given(begin=TEXTS, end=TEXTS)
def test_labels(begin, end):
    size = min(len(begin), len(end))
    begin, end = begin[:size], end[:size]
    for dtype in (pl.String, pl.Categorical):
        labels = tc.label_array(series(begin, dtype))
        assert labels.tolist() == [text or "" for text in begin]
    expected = [f"{first or ''}/{last or ''}" for first, last in zip(begin, end, strict=True)]
    joined = tc.joined_labels(series(begin), series(end, pl.Categorical), "/")
    assert joined.tolist() == expected
    joined = tc.joined_labels(series(["xy"] * size), series(end, pl.Categorical), "/")
    assert joined.tolist() == [f"xy/{last or ''}" for last in end]


@given(texts=TEXTS)
def test_repeated_texts_and_words_left_out(texts):
    plain = [text or "" for text in texts]
    assert tc.count_repeated(series(texts)) == len(plain) - len(set(plain))
    left = tc.without(series(texts), "a", "b").to_list()
    assert left == [None if text in ("a", "b") else text for text in texts]


def test_ids_that_are_equal_numbers_may_be_different_texts():
    assert tc.count_repeated(series(["1", "01", "2", "2"])) == 1


def test_distinct_rows():
    numbers = np.array([1.0, 2.0, 1.0, 1.0])
    codes, rows = tc.distinct_rows([series(["a", "a", "a", None], pl.Categorical), numbers])
    assert codes.tolist() == [0, 1, 0, 2]
    assert rows == [("a", 1.0), ("a", 2.0), ("", 1.0)]
