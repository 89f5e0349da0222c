"""Jobs that need CPUs or memory but no GPU: left out of GPU traces, unless they are asked for.

They take CPUs and memory that GPU jobs need too, so on nodes where these are scarce they matter.
Formats that know the CPUs or the memory of such jobs have the option `cpu_jobs`; the others cannot
keep them, as a job that needs nothing is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, unknown_name
from berthline.traces.usable import NO_GPUS

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = ("drop", "keep")

CPU_JOBS_OPTION = {
    "cpu_jobs": "jobs that need CPUs or memory but no GPU: drop (default) or keep",
}

NEEDS_NOTHING = "no GPUs, CPUs or memory"


def check_cpu_jobs(setting: str, path: Path) -> None:
    """Raise a ConfigError if this is no setting of the option."""
    if setting not in SETTINGS:
        what, expected, hint = unknown_name("setting of cpu_jobs", setting, SETTINGS)
        raise ConfigError(what, where=str(path), expected=expected, hint=hint)


def without_gpus(
    setting: str, gpus: npt.NDArray[Any], cpus: npt.NDArray[Any], memory: npt.ArrayLike = 0.0
) -> dict[str, npt.NDArray[np.bool_]]:
    """Return why rows without GPUs are left out, for `choose_rows`.

    Args:
        setting: of the option.
        gpus: of each row; this and the next two also as whether there are any.
        cpus: of each row.
        memory: of each row, in any unit.
    """
    none = gpus == 0
    if setting == "drop":
        return {NO_GPUS: none}
    return {NEEDS_NOTHING: none & (cpus == 0) & (np.asarray(memory) == 0)}
