"""Parameters of the library as options of the command line.

The library's texts name parameters in backquotes: `workers` or `workers=1`. The command line prints
them as options: --workers or --workers 1.
"""

from __future__ import annotations

import re

_OPTIONS = {
    "settings": "set",
    "mapping": "map",
    "conditions": "condition",
    "params": "param",
}
"""Parameters whose option has a different name."""

_SAME_NAME = (
    *("against", "at", "blocks", "budget", "by", "cluster", "continuous", "energy_period"),
    *("energy_rate", "force", "format", "init_from", "jobs", "knowledge", "load", "loads", "out"),
    *("resume", "scheduler", "seed", "seeds", "unchecked", "windows", "workers"),
)

_PLACED = {"workload": "WORKLOAD", "run": "RUN"}
"""Parameters that are positional arguments."""

_PARAMETER = re.compile(r"`([a-z_]+)(?:=([^`]*))?`")


def as_options(text: str) -> str:
    """Return a text of the library as the command line prints it.

    Example:
        >>> as_options("fewer workers need less: `workers=1`")
        'fewer workers need less: --workers 1'
        >>> as_options("`mapping` only with a trace file")
        '--map only with a trace file'
    """
    return _PARAMETER.sub(_as_option, text)


def _as_option(found: re.Match[str]) -> str:
    name, value = found.groups()
    if name in _PLACED and value is None:
        return _PLACED[name]
    if name not in _OPTIONS and name not in _SAME_NAME:
        return found[0]
    option = "--" + _OPTIONS.get(name, name).replace("_", "-")
    return option if value is None else f"{option} {value}"
