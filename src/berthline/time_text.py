"""A length of time as people write it: `90`, `30m`, `2h`, `1.5d`, `02:30:00`, `1-12:00:00`."""

from __future__ import annotations

import re

FORM = "seconds, or a time such as 30m, 12h, 1.5d, 2w, 02:30:00 or 1-12:00:00"

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_WITH_UNIT = re.compile(r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*([smhdw]?)")
_WITH_COLONS = re.compile(r"(?:(\d+)-)?(\d+):(\d\d)(?::(\d\d))?")


def seconds_in(text: str) -> float | None:
    """Return the seconds that a text says; None = it is not a length of time.

    Example:
        >>> seconds_in("90"), seconds_in("1.5h"), seconds_in("1-12:00:00"), seconds_in("soon")
        (90.0, 5400.0, 129600.0, None)
    """
    text = text.strip()
    number = _WITH_UNIT.fullmatch(text)
    if number is not None:
        return float(number[1]) * _UNITS[number[2]]
    parts = _WITH_COLONS.fullmatch(text)
    if parts is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60.0 + seconds
