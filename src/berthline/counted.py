"""counted: a number and what is counted, in words."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count and what is counted.

    Example:
        >>> counted(1, "job"), counted(2000, "job")
        ('1 job', '2,000 jobs')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
