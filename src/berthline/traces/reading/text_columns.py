"""Columns of text converted for a workload: codes and names, labels, counts.

Traces are repetitive: a million jobs have a few hundred users and a few thousand durations. Slow
operations are done once for each distinct text. Text may be polars' String or Categorical.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

_BLOCK_ROWS = 2**16  # labels converted together, since conversion takes several times their memory

LONGEST_LABEL = 200
"""Characters. All labels are stored with the width of the longest, so the width is limited."""


def label_array(text: pl.Series) -> npt.NDArray[np.str_]:
    """Return short texts as an array; null becomes an empty text."""
    import polars as pl

    text = text.cast(pl.String).fill_null("")
    lengths = text.str.len_chars().to_numpy()
    width = max(int(lengths.max(initial=0)), 1)
    # Written in numpy's own layout, padded with zeros: much faster than through a list.
    characters = np.zeros((len(text), width), np.uint32)
    for first in range(0, len(text), _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        joined: str = text[rows].str.join("").item()
        if joined.isascii():
            codes = np.frombuffer(joined.encode("ascii"), np.uint8)
        else:
            codes = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
        block = characters[rows]
        if codes.size == block.size:
            block[:] = codes.reshape(block.shape)
        else:
            block[np.arange(width) < lengths[rows, np.newaxis]] = codes
    return characters.view(f"<U{width}").ravel()


def joined_labels(begin: pl.Series, end: pl.Series, between: str) -> npt.NDArray[np.str_]:
    """Return labels made of two texts each, like `label_array`.

    Args:
        begin: the first texts.
        end: the second texts, with few distinct values.
        between: the text between the two.
    """
    import polars as pl

    lengths = begin.str.len_chars()
    if begin.null_count() or lengths.min() != lengths.max() or not lengths.max():
        return label_array(begin.fill_null("") + between + end.cast(pl.String).fill_null(""))
    # All have the same length, like hashes: the second text begins at the same position in all.
    codes, distinct = _distinct(end)
    endings = label_array(between + distinct.fill_null(""))
    place, more = int(lengths[0]), endings.dtype.itemsize // 4  # bytes of a character
    characters = np.empty((len(begin), place + more), np.uint32)
    rows_of_endings = endings.view(np.uint32).reshape(-1, more)
    for first in range(0, len(begin), _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        labels = label_array(begin.slice(first, _BLOCK_ROWS))
        characters[rows, :place] = labels.view(np.uint32).reshape(-1, place)
        characters[rows, place:] = rows_of_endings[codes[rows]]
    return characters.view(f"<U{place + more}").ravel()


def categorize(
    text: pl.Series, *, missing: str = "unknown"
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return texts as codes and the names they stand for, in order of first appearance."""
    codes, distinct = _distinct(text)
    names = [missing if name is None else name for name in distinct.to_list()]
    if distinct.null_count() and names.count(missing) > 1:  # it is also a real name
        merged = list(dict.fromkeys(names))
        codes = np.array([merged.index(name) for name in names], np.int32)[codes]
        names = merged
    return codes, tuple(names)


def _distinct(text: pl.Series) -> tuple[npt.NDArray[np.int32], pl.Series]:
    """Return texts as codes and the distinct texts, including null, in order of appearance."""
    import polars as pl

    coded = text.cast(pl.Categorical)
    distinct = coded.unique(maintain_order=True)
    known, numbers = distinct.to_physical(), coded.to_physical()
    place_of = np.zeros(int(known.max() or 0) + 2, np.int32)  # type: ignore[arg-type]  # an int
    null_at = len(place_of) - 1
    place_of[known.fill_null(null_at).to_numpy()] = np.arange(len(known))
    codes: npt.NDArray[np.int32] = place_of[numbers.fill_null(null_at).to_numpy()]
    return codes, distinct.cast(pl.String)


def without(text: pl.Series, *words: str) -> pl.Series:
    """Return texts with null in place of some words."""
    import polars as pl

    return text.zip_with(~text.is_in(list(words)), pl.Series([None], dtype=text.dtype))


def count_values(text: pl.Series, *, missing: str = "unknown") -> dict[str, int]:
    """Return how often each text occurs, the most frequent first."""
    return count_codes(*categorize(text, missing=missing))


def count_codes(codes: npt.NDArray[np.int32], names: tuple[str, ...]) -> dict[str, int]:
    """Return how often the name of each code occurs, the most frequent first.

    Several codes may stand for the same name.
    """
    counts: dict[str, int] = {}
    for name, count in zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True):
        if count:
            counts[name] = counts.get(name, 0) + count
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def among(
    codes: npt.NDArray[np.int32], names: Sequence[str], wanted: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Return which codes stand for one of the wanted names."""
    is_wanted = np.array([name in wanted for name in names], dtype=np.bool_)
    chosen: npt.NDArray[np.bool_] = is_wanted[codes]
    return chosen


def count_repeated(text: pl.Series) -> int:
    """Return how many texts are equal to an earlier one."""
    import polars as pl

    # Ids are usually whole numbers, and different numbers are different texts.
    numbers = text.cast(pl.Int64, strict=False)
    if numbers.null_count() == 0 and numbers.n_unique() == len(numbers):
        return 0
    return len(text) - text.fill_null("").n_unique()


def distinct_rows(
    columns: Sequence[pl.Series | npt.NDArray[np.float64]],
) -> tuple[npt.NDArray[np.int64], list[tuple[Any, ...]]]:
    """Return, for each row of some columns, the index of its distinct row, and the distinct rows.

    The rows are in order of first appearance; null in text becomes an empty text.
    """
    import polars as pl

    frame = pl.DataFrame({str(at): column for at, column in enumerate(columns)})
    rows = frame.unique(maintain_order=True).with_row_index("at")
    joined = frame.join(rows, on=frame.columns, how="left", nulls_equal=True, maintain_order="left")
    texts = rows.select(frame.columns).with_columns(
        pl.col(pl.String, pl.Categorical).cast(pl.String).fill_null("")
    )
    return joined["at"].to_numpy().astype(np.int64), texts.rows()
