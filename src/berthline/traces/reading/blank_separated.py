"""Columns of a text whose fields are separated by blanks, read with numpy.

Lines may differ in the number of fields and in the content of unused fields: at first only the
positions of the wanted fields are found, and a column is converted when it is needed. This is as
fast as a parser of fixed tables, keeps the line number of every row, and tolerates a few irregular
lines. Errors name the line, the field and the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from berthline.traces.reading.line_error import LineError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SPACE = ord(" ")  # every byte up to it is a blank, including tabs and other control characters
_NEWLINE = ord("\n")
_MINUS = ord("-")
_PIECE_BYTES = 2**20
_BLOCK_ROWS = 2**15  # of numbers read together, so that their arrays fit a processor's cache
_LONGEST_LENGTH = 2**16 - 1
_MOST_DIGITS = 15  # float64 represents every whole number of up to this many digits exactly
_WORD = 8  # characters that are read at once
_EIGHT_BITS = np.uint64(8)
_ONE = np.uint64(1)
_ZEROS = np.uint64(0x3030303030303030)  # as characters
_SIXES = np.uint64(0x0606060606060606)  # moves characters above "9" out of the range of digits
_HIGH = np.uint64(0xF0F0F0F0F0F0F0F0)
_PAIRS = (  # to join neighbours into one number: the width of each, the left one's factor, a mask
    (np.uint64(8), np.uint64(10), np.uint64(0x00FF00FF00FF00FF)),
    (np.uint64(16), np.uint64(100), np.uint64(0x0000FFFF0000FFFF)),
    (np.uint64(32), np.uint64(10_000), np.uint64(0x00000000FFFFFFFF)),
)

LONGEST_NUMBER = 40
"""Characters; a longer field is not a number of a log, and a limit keeps columns small."""

LARGEST_EXACT = 2.0**53
"""Above this, float64 does not represent every whole number, so seconds would be lost."""


class BlankSeparated:
    """The rows of a text: its lines with at least one field.

    Attributes:
        line: the line number of each row, from 1.
        num_fields: the number of fields in each row.
    """

    line: npt.NDArray[np.int64]  # (num_rows,)
    num_fields: npt.NDArray[np.int32]  # (num_rows,)

    def __init__(
        self,
        text: bytes,
        path: Path,
        field_names: tuple[str, ...],
        *,
        wanted: tuple[str, ...],
        hint: str,
    ) -> None:
        r"""Find the fields of `text`.

        Args:
            text: lines, each ended by `\n`, with comments already blanked out.
            path: the file, for errors.
            field_names: the names of the fields in order, for errors.
            wanted: the fields that will be used.
            hint: what to do about an invalid value, for errors.
        """
        self._path = path
        self._field_names = field_names
        self._wanted = wanted
        self._hint = hint
        self._bytes = np.frombuffer(text, dtype=np.uint8)
        # The eight characters from each position on, as one number; the text is not copied.
        enough = text if len(text) >= _WORD else text.ljust(_WORD)
        self._eights: npt.NDArray[np.uint64] = np.ndarray(
            (len(enough) - _WORD + 1,), "<u8", enough, strides=(1,)
        )
        numbers = np.array([field_names.index(name) for name in wanted])
        place = np.uint32 if len(text) < 2**32 else np.int64
        lines_before = 0
        lines, counts, starts, lengths = [], [], [], []
        for begin, end in _pieces(text):
            piece = _find_fields(self._bytes[begin:end], numbers)
            lines.append(piece.row + lines_before + 1)
            counts.append(piece.num_fields)
            # As small as possible: for a long text, these two take most of the memory.
            starts.append((piece.start + begin).astype(place))
            lengths.append(piece.length)
            lines_before += piece.num_lines
        self.line = np.concatenate(lines)
        self.num_fields = np.concatenate(counts)
        self._starts = np.concatenate(starts, axis=1)  # (len(wanted), num_rows) uint32 or int64
        self._lengths = np.concatenate(lengths, axis=1)  # (len(wanted), num_rows) uint16

    def __len__(self) -> int:
        return len(self.line)

    def require_fields(self) -> None:
        """Refuse rows with fewer fields than names, or with enough fields for two rows.

        Raises:
            TraceError: with the first such line, and the number of further ones.
        """
        long = np.flatnonzero(self.num_fields >= 2 * len(self._field_names))
        if long.size:
            raise LineError(
                f"the line has {self.num_fields[long[0]]} fields",
                where=self._where(long),
                expected=f"{len(self._field_names)} fields separated by blanks, one job on a line",
                hint="the line break between two jobs may have been lost",
                lines=self.line[long].tolist,
            )
        short = np.flatnonzero(self.num_fields < len(self._field_names))
        if short.size:
            num_fields = self.num_fields[short[0]]
            raise LineError(
                f"the line has only {num_fields} field{'' if num_fields == 1 else 's'}",
                where=self._where(short),
                expected=f"{len(self._field_names)} fields separated by blanks",
                hint="if it is the last line, the file may have been cut short",
                lines=self.line[short].tolist,
            )

    def words(self, name: str) -> npt.NDArray[np.bytes_]:
        """Return a wanted field of every row as written in the text.

        Raises:
            TraceError: a value is too long to be a number or an id.
        """
        return self._words(name, np.arange(len(self)))

    def _words(self, name: str, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bytes_]:
        """Return a wanted field of some rows as written in the text."""
        column = self._wanted.index(name)
        starts, lengths = self._starts[column, rows], self._lengths[column, rows]
        width = int(lengths.max(initial=1))
        if width > LONGEST_NUMBER:
            at = int(np.argmax(lengths > LONGEST_NUMBER))
            shown = self._bytes[starts[at] : starts[at] + LONGEST_NUMBER].tobytes()
            raise self._value_error(name, shown + b"...", rows[at : at + 1], "a number")
        within = np.arange(width)
        characters = np.empty((len(rows), width), dtype=np.uint8)
        for first in range(0, len(rows), _BLOCK_ROWS):
            block = slice(first, first + _BLOCK_ROWS)
            # Reading goes past the end of short fields; the mask removes those characters.
            begin = starts[block, None].astype(np.int64)
            at = np.minimum(begin + within, self._bytes.size - 1)
            characters[block] = np.where(within < lengths[block, None], self._bytes[at], 0)
        words: npt.NDArray[np.bytes_] = characters.view(f"S{width}").ravel()
        return words

    def numbers(
        self, name: str, *, whole: bool = False, highest: float = LARGEST_EXACT
    ) -> npt.NDArray[np.float64]:
        """Return a wanted field of every row as numbers.

        Args:
            name: which field.
            whole: refuse fractions.
            highest: refuse values with a larger absolute value.

        Raises:
            TraceError: with the first line in which the field is not such a number.
        """
        expected = f"a {'whole ' if whole else ''}number"
        values, others = self._whole_numbers(name)
        words = self._words(name, others)
        try:
            values[others] = words.astype(np.float64)
        except ValueError:
            wrong = [at for at, text in enumerate(words.tolist()) if not _is_number(text)] or [0]
            raise self._value_error(name, words[wrong[0]], others[wrong], expected) from None
        good = np.abs(values) <= highest  # false for NaN and infinity too
        if whole:
            good &= values == np.floor(values)
        bad = np.flatnonzero(~good)
        if bad.size:
            expected = f"{expected} from {-highest:.0f} to {highest:.0f}"
            raise self._value_error(name, self._words(name, bad[:1])[0], bad, expected)
        return values

    def _whole_numbers(self, name: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return a field of every row as numbers, and the rows where it is not a plain integer.

        Nearly all fields of a log are a few digits. Arithmetic on eight characters at once reads
        them many times as fast as converting every text.
        """
        column = self._wanted.index(name)
        values = np.empty(len(self), dtype=np.float64)
        is_other = np.empty(len(self), dtype=np.bool_)
        for first in range(0, len(self), _BLOCK_ROWS):
            block = slice(first, first + _BLOCK_ROWS)
            starts = self._starts[column, block].astype(np.int64)
            lengths = self._lengths[column, block].astype(np.int64)
            is_negative = self._bytes[starts] == _MINUS
            digits = lengths - is_negative
            ends = starts + lengths
            value, good = self._digits_before(ends, np.minimum(digits, _WORD))
            if (digits > _WORD).any():
                more = np.clip(digits - _WORD, 0, _MOST_DIGITS - _WORD)
                high, good_too = self._digits_before(ends - _WORD, more)
                value += high * np.uint64(10**_WORD)
                good &= good_too
            number = value.astype(np.float64)
            # Negate the float, so that "-0" keeps its sign.
            values[block] = np.negative(number, out=number, where=is_negative)
            is_other[block] = ~good | (digits < 1) | (digits > _MOST_DIGITS)
        return values, np.flatnonzero(is_other)

    def _digits_before(
        self, ends: npt.NDArray[np.int64], count: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """Return the number in up to eight characters before `ends`, and whether it is one."""
        begin = ends - _WORD
        if begin.min(initial=0) < 0:
            # Nothing can be read before the start of the text: read from there and shift.
            missing = np.maximum(-begin, 0).astype(np.uint64)
            word = self._eights[np.maximum(begin, 0)] << (missing * _EIGHT_BITS)
        else:
            word = self._eights[begin]
        # Unused characters, which are the lowest bytes, become leading zeros. If all are unused,
        # numpy's shift by 64 bits gives 0, as needed here.
        unused = (_WORD - count).astype(np.uint64) * _EIGHT_BITS
        word >>= unused
        word <<= unused
        word |= ((_ONE << unused) - _ONE) & _ZEROS
        good = ((word & _HIGH) == _ZEROS) & (((word + _SIXES) & _HIGH) == _ZEROS)
        word -= _ZEROS
        for width, scale, kept in _PAIRS:
            high = word >> width
            word *= scale
            word += high
            word &= kept
        return word, good

    def _value_error(
        self, name: str, value: bytes, rows: npt.NDArray[np.int64], expected: str
    ) -> LineError:
        number = self._field_names.index(name) + 1
        return LineError(
            f"field {number} ({name}) is {value.decode('utf-8', errors='replace')!r}",
            where=self._where(rows),
            expected=expected,
            hint=self._hint,
            lines=self.line[rows].tolist,
        )

    def _where(self, rows: npt.NDArray[np.int64]) -> str:
        more = rows.size - 1
        suffix = f" and {more} more line{'' if more == 1 else 's'}" if more else ""
        return f"{self._path}, line {self.line[rows[0]]}{suffix}"


class _Fields(NamedTuple):
    """The positions of the wanted fields in a piece of text, for its rows."""

    row: npt.NDArray[np.int64]  # (num_rows,) line of the piece, from 0
    num_fields: npt.NDArray[np.int32]  # (num_rows,)
    start: npt.NDArray[np.int64]  # (num_wanted, num_rows) position in the piece
    length: npt.NDArray[np.uint16]  # (num_wanted, num_rows), limited to 16 bits
    num_lines: int


def _find_fields(piece: npt.NDArray[np.uint8], wanted: npt.NDArray[np.int64]) -> _Fields:
    is_blank = np.empty(piece.size + 1, dtype=np.bool_)
    is_blank[0] = True  # as if a blank preceded the text, so that the first field has a start
    np.less_equal(piece, _SPACE, out=is_blank[1:])
    edges = np.flatnonzero(is_blank[1:] != is_blank[:-1])
    starts, ends = edges[0::2], edges[1::2]
    line_ends = np.flatnonzero(piece == _NEWLINE)
    even = _fields_of_even_lines(starts, line_ends)
    if even > wanted.max():
        rows = np.arange(line_ends.size)
        num_fields = np.full(line_ends.size, even, np.int32)
        begin = starts.reshape(-1, even).T[wanted]
        end = ends.reshape(-1, even).T[wanted]
    else:
        fields_so_far = np.searchsorted(starts, line_ends)
        of_line = np.diff(fields_so_far, prepend=0)
        rows = np.flatnonzero(of_line)
        num_fields = of_line[rows].astype(np.int32)
        # In a row with too few fields this points into the next row; `require_fields` checks that.
        first = (fields_so_far - of_line)[rows]
        at = np.minimum(first + wanted[:, None], starts.size - 1)
        begin, end = starts[at], ends[at]
    lengths = np.minimum(end - begin, _LONGEST_LENGTH).astype(np.uint16)
    return _Fields(rows, num_fields, begin, lengths, line_ends.size)


def _fields_of_even_lines(starts: npt.NDArray[np.int64], line_ends: npt.NDArray[np.int64]) -> int:
    """Return the number of fields in every line; 0 = it differs, which is rare in long texts."""
    count, rest = divmod(starts.size, line_ends.size)
    if rest or not count:
        return 0
    last, next_first = starts[count - 1 :: count], starts[count::count]
    return count if (last < line_ends).all() and (next_first > line_ends[:-1]).all() else 0


def _pieces(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of pieces of whole lines that fit a processor's cache.

    Finding fields needs temporary arrays several times the size of the text: for a whole long file
    they would take more memory than everything else.
    """
    begin = 0
    while begin < len(text):
        end = text.rfind(b"\n", begin, begin + _PIECE_BYTES) + 1
        if end == 0:  # one line is longer than a piece
            end = text.index(b"\n", begin) + 1
        yield begin, end
        begin = end


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
