"""Parameters of the library as options of the command line.

The library's texts name parameters in backquotes: `workers` or `workers=1`. The command line prints
them as options: --workers or --workers 1. Options of a trace format or an environment become
settings: option `table=FILE` is --set table=FILE.
"""

from __future__ import annotations

import re

_OPTIONS = {
    "settings": "set",
    "mapping": "map",
    "conditions": "condition",
    "folder": "out",
    "params": "param",
    "begin": "from",
    "end": "to",
}
"""Parameters whose option has a different name."""

_SAME_NAME = (
    *("against", "at", "blocks", "budget", "by", "cluster", "continuous", "energy_period"),
    *("energy_rate", "force", "format", "init_from", "jitter", "jobs", "knowledge", "load"),
    *("loads", "out", "resume", "scheduler", "seed", "seeds", "windows", "workers"),
    *("points", "draws", "population", "top", "train_windows", "window_jobs"),
    *("last", "week", "only", "limit", "yes", "address", "timeout"),
    *("preempt", "cgroups", "telemetry", "signal", "grace", "time_scale", "slots", "shell"),
    *("files", "cpu"),
    *("cycles", "every", "journal", "mode", "native", "override", "speed"),
)

_PLACED = {"workload": "WORKLOAD", "run": "RUN"}
"""Parameters that are positional arguments."""

_FLAGS = {"check=False": "--unchecked"}
"""Values of parameters that are options without a value."""

_PARAMETER = re.compile(r"(option )?`([a-z_]+)(?:=([^`]*))?`")


def as_options(text: str) -> str:
    """Return a text of the library as the command line prints it.

    Example:
        >>> as_options("fewer workers need less: `workers=1`")
        'fewer workers need less: --workers 1'
        >>> as_options("`mapping` only with a trace file")
        '--map only with a trace file'
        >>> as_options("give it as option `table=FILE`")
        'give it as --set table=FILE'
    """
    return _PARAMETER.sub(_as_option, text)


def _as_option(found: re.Match[str]) -> str:
    of_settings, name, value = found.groups()
    if of_settings and value is not None:
        return f"--set {name}={value}"
    if f"{name}={value}" in _FLAGS:
        return _FLAGS[f"{name}={value}"]
    if name in _PLACED and value is None:
        return _PLACED[name]
    if name not in _OPTIONS and name not in _SAME_NAME:
        return found[0]
    option = "--" + _OPTIONS.get(name, name).replace("_", "-")
    return option if value is None else f"{option} {value}"
