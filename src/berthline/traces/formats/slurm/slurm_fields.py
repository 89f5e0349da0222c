"""Fields common to all forms of Slurm accounting: states, resources (TRES) and durations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import polars as pl

STATES = {
    0: "PENDING",
    1: "RUNNING",
    2: "SUSPENDED",
    3: "COMPLETED",
    4: "CANCELLED",
    5: "FAILED",
    6: "TIMEOUT",
    7: "NODE_FAIL",
    8: "PREEMPTED",
    9: "BOOT_FAIL",
    10: "DEADLINE",
    11: "OUT_OF_MEMORY",
}
"""The states of a job, by their number in the database."""

CANCELLED_STATES = ("CANCELLED",)
WAITING_STATES = ("PENDING", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT")
RUNNING_STATES = (
    "RUNNING",
    "SUSPENDED",
    "CONFIGURING",
    "COMPLETING",
    "RESIZING",
    "SIGNALING",
    "STAGE_OUT",
    "STOPPED",
)

NO_NODES = ("None assigned", "None", "Unknown", "(null)", "")
"""What stands for the nodes of a job that has none."""

MOST = 2**31 - 1
"""GPUs or CPUs of a job: the limit of the workload's columns."""
MOST_MEMORY_MIB = 2**40
"""An EiB. A larger value counts as none: Slurm writes its largest numbers for "no limit"."""

_SECONDS_PER = (86_400.0, 3_600.0, 60.0, 1.0)
_MIB_PER_UNIT = {"K": 2.0**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30}


def tres_gpus(tres: pl.Series) -> npt.NDArray[np.float64]:
    """Return the GPUs in texts such as `cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G`; 0 = none.

    `gres/gpu` is the sum over all types; if a site does not track it, the types are summed.
    """
    import polars as pl

    total = tres.str.extract(r"(?:^|,)gres/gpu=(\d+)").cast(pl.Float64, strict=False)
    typed = tres.str.extract_all(r"gres/gpu:[^=,]+=\d+")
    of_types = (
        pl.DataFrame({"typed": typed})
        .select(
            pl.col("typed")
            .list.eval(pl.element().str.extract(r"=(\d+)$").cast(pl.Float64, strict=False))
            .list.sum()
        )
        .to_series()
    )
    return _filled(total.zip_with(total.is_not_null(), of_types))


def tres_cpus(tres: pl.Series) -> npt.NDArray[np.float64]:
    """Return the CPUs in texts like those of `tres_gpus`; 0 = none."""
    import polars as pl

    return _filled(tres.str.extract(r"(?:^|,)cpu=(\d+)").cast(pl.Float64, strict=False))


def tres_memory_mib(tres: pl.Series) -> npt.NDArray[np.float64]:
    """Return the MiB of memory in texts like those of `tres_gpus`, rounded up; 0 = none."""
    import polars as pl

    number = tres.str.extract(r"(?:^|,)mem=(\d+(?:\.\d+)?)[KMGTP]?").cast(pl.Float64, strict=False)
    unit = tres.str.extract(r"(?:^|,)mem=[\d.]+([KMGTP])").fill_null("M")
    factor = unit.replace_strict(_MIB_PER_UNIT, return_dtype=pl.Float64)
    memory = np.ceil(_filled(number * factor))
    return np.where(memory <= MOST_MEMORY_MIB, memory, 0.0)


def gpu_types(tres: pl.Series, num_jobs: npt.NDArray[np.int64]) -> dict[str, int]:
    """Return how many jobs have GPUs of each type that the texts name.

    Args:
        tres: distinct texts like those of `tres_gpus`.
        num_jobs: how many jobs have each text.
    """
    counts: dict[str, int] = {}
    types = tres.str.extract_all(r"gres/gpu:[^=,]+=[1-9]").to_list()
    for named, jobs in zip(types, num_jobs.tolist(), strict=True):
        for name in named if jobs and named else ():
            name = name.removeprefix("gres/gpu:").rpartition("=")[0]
            counts[name] = counts.get(name, 0) + jobs
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def gpu_type_codes(tres: pl.Series) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return the GPU type in each text like those of `tres_gpus`, as a code, and the type names.

    The code is -1 for a text that names no type or several.
    """
    names: dict[str, int] = {}
    codes = np.full(len(tres), -1, dtype=np.int32)
    for at, found in enumerate(tres.str.extract_all(r"gres/gpu:[^=,]+=[1-9]").to_list()):
        if found is not None and len(found) == 1:
            name = found[0].removeprefix("gres/gpu:").rpartition("=")[0]
            codes[at] = names.setdefault(name, len(names))
    return codes, tuple(names)


def durations(text: pl.Series) -> pl.Series:
    """Return texts such as `2-00:00:20` or `04:00:00` as seconds; null = not a duration."""
    import polars as pl

    parts = text.str.extract_groups(r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$")
    seconds = pl.Series(np.zeros(len(text)))
    for part, unit in zip(parts.struct.unnest(), _SECONDS_PER, strict=True):
        seconds += part.cast(pl.Float64, strict=False).fill_null(0.0) * unit
    fits = text.str.contains(r"^(?:\d+-)?(?:\d+:)?\d+:\d+(?:\.\d+)?$").fill_null(False)
    return seconds.set(~fits, None)


def _filled(values: pl.Series) -> npt.NDArray[np.float64]:
    return values.fill_null(0.0).to_numpy().astype(np.float64, copy=True)
