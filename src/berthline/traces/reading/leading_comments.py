"""Lines that start with `#` above a table: exports put a title or a query there.

They become blank lines, which readers skip, so that line numbers in errors stay right. Some
programs write the header line itself with a `#` in front; it stays, without the `#`.
"""

from __future__ import annotations

import re

_MARK = b"#"
_UTF8_MARK = b"\xef\xbb\xbf"
_SEPARATORS = (b",", b"|", b"\t", b";")
_DATA = re.compile(rb"[\s\"']*\d")


def blank_leading_comments(text: bytes, *, has_header: bool = True) -> bytes:
    r"""Return a text in which the comments above its first row are blank lines.

    Args:
        text: the start of the text, in whole lines.
        has_header: the first row names the columns.

    Example:
        >>> blank_leading_comments(b"# made by export\nsubmit,run\n0,5\n")
        b'\nsubmit,run\n0,5\n'
        >>> blank_leading_comments(b"# submit,run\n0,5\n")
        b'  submit,run\n0,5\n'
    """
    if not text[:256].removeprefix(_UTF8_MARK).lstrip().startswith(_MARK):
        return text
    text = text.removeprefix(_UTF8_MARK)
    at, last, ends = 0, -1, []
    while at < len(text):
        end = text.find(b"\n", at) + 1 or len(text)
        line = text[at:end].strip()
        if line and not line.startswith(_MARK):
            break
        ends.append(end)
        last = len(ends) - 1 if line else last
        at = end
    lines = [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    following = text[at : text.find(b"\n", at) + 1 or len(text)]
    head = [b"\n" for _ in lines]
    if has_header and last >= 0 and _names_columns_of(lines[last], following):
        head[last] = lines[last].replace(_MARK, b" ", 1)
    return b"".join(head) + text[at:]


def _names_columns_of(comment: bytes, row: bytes) -> bool:
    """Return whether a comment is a header line: the row has data, and as many cells."""
    separator = max(_SEPARATORS, key=row.count)
    cells = row.count(separator)
    return bool(_DATA.match(row)) and cells > 0 and comment.count(separator) == cells
