"""Which rows of a trace become jobs: rows are dropped for named reasons, and always counted.

Jobs that need CPUs or memory but no GPU are left out of GPU traces by default. They take CPUs and
memory that GPU jobs need too, so they matter on nodes where these are scarce. Formats that contain
the CPUs or the memory of such jobs have the option `cpu_jobs`.

Jobs that were still running when the log was taken are also left out by default. They held GPUs
that other jobs waited for, so a replay of the log lacks them; with `running_jobs="keep"` they end
with the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, TraceError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# The reasons that formats share; a format may add its own.
NO_RUN_TIME = "run time 0 or unknown"
NO_GPUS = "no GPUs"
NO_SUBMIT_TIME = "submit time unknown"
NEVER_STARTED = "never started"
NOT_FINISHED = "not finished when the trace ends"
CANCELLED = "cancelled before start"
NEEDS_NOTHING = "no GPUs, CPUs or memory"

_SETTINGS = ("drop", "keep")
CPU_JOBS_OPTION = {
    "cpu_jobs": "jobs that need CPUs or memory but no GPU: drop (default) or keep",
}
RUNNING_JOBS_OPTION = {
    "running_jobs": "jobs still running when the log was taken: drop (default), or keep with the"
    " run time until then",
}


def choose_rows(
    reasons: Mapping[str, npt.NDArray[np.bool_]], *, path: Path, expected: str
) -> tuple[npt.NDArray[np.bool_], dict[str, int]]:
    """Return which rows are used, and how many are dropped, each counted under its first reason.

    Args:
        reasons: for each reason, in order, the rows it applies to.
        path: the file, for the error.
        expected: what a usable row has, for the error.

    Raises:
        TraceError: no row is left.
    """
    masks = list(reasons.values())
    used = np.ones(len(masks[0]), dtype=np.bool_)
    dropped: dict[str, int] = {}
    for why, applies in reasons.items():
        count = int((applies & used).sum())
        if count:
            dropped[why] = count
            used &= ~applies
    if not used.any():
        raise TraceError(
            f"none of the {len(used):,} rows is a usable job",
            where=str(path),
            expected=expected,
            hint="left out: " + ", ".join(f"{count:,} {why}" for why, count in dropped.items()),
        )
    return used, dropped


def row_facts(
    format_name: str,
    path: Path,
    used: npt.NDArray[np.bool_],
    dropped: Mapping[str, int],
    *,
    origin: float | None,
    zone: str | None,
) -> dict[str, Any]:
    """Return the part of provenance that every format has; see `load_trace`.

    Args:
        format_name: the format.
        path: the file or directory.
        used: which rows became jobs.
        dropped: how many did not, for each reason; as `choose_rows` returns it.
        origin: the Unix time of the first job used; None = not known.
        zone: the time zone of the cluster; None = not known.
    """
    return {
        "format": format_name,
        "path": path.absolute().name,
        "rows": len(used),
        "used": int(used.sum()),
        "dropped": dict(dropped),
        "origin_unix_time": origin,
        "time_zone": zone,
    }


def check_drop_or_keep(path: Path, **settings: str) -> None:
    """Check options that take "drop" or "keep", such as `cpu_jobs`.

    Raises:
        ConfigError: a setting has another value.
    """
    for option, setting in settings.items():
        if setting not in _SETTINGS:
            what, expected, hint = unknown_name(f"setting of {option}", setting, _SETTINGS)
            raise ConfigError(what, where=str(path), expected=expected, hint=hint)


def without_gpus(
    setting: str, gpus: npt.NDArray[Any], cpus: npt.NDArray[Any], memory: npt.ArrayLike = 0.0
) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the reason for leaving out rows without GPUs, for `choose_rows`.

    Args:
        setting: of the option.
        gpus: of each row; this and the next two may also be booleans: whether there are any.
        cpus: of each row.
        memory: of each row, in any unit.
    """
    none = gpus == 0
    if setting == "drop":
        return {NO_GPUS: none}
    return {NEEDS_NOTHING: none & (cpus == 0) & (np.asarray(memory) == 0)}
