r"""Slurm's own job table, as a database dump: one column for each field, times in Unix seconds.

The public MIT Supercloud dataset has this form (with more columns, which are not used). States are
numbers, `timelimit` is minutes with 4294967295 for none, `\N` is null, and resources are lists of
numbers such as `1=4,2=34000,4=1,1002=1`: 1 is CPUs, 2 is MiB of memory, and 1001 and above are
defined by the site. 1001 and 1002 are interpreted as GPUs, as at MIT. If a job has both, the larger
one counts: a site that tracks all GPUs and one type would otherwise count them twice. Jobs without
GPUs are left out unless `cpu_jobs="keep"`. Ids in the MIT files are rounded, so they are not
unique. `nodelist`, `priority`, `time_eligible`, `account` and the GPU type in `gres_used` (such as
`gpu:volta:2`) are used if present. A list of nodes is in Slurm's notation, or as `['a', 'b']`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.gpu_types import RECORDED
from berthline.model.history import History
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.recorded_types import recorded_types
from berthline.traces.formats.row_filter import (
    CANCELLED,
    CPU_JOBS_OPTION,
    NEVER_STARTED,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    NOT_FINISHED,
    check_drop_or_keep,
    choose_rows,
    row_facts,
    without_gpus,
)
from berthline.traces.formats.slurm import slurm_fields
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name, read_head
from berthline.traces.reading.request_columns import number_pools
from berthline.traces.reading.text_columns import categorize, count_repeated, label_array, without

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

COLUMNS = (
    "id_job",
    "id_user",
    "partition",
    "state",
    "timelimit",
    "time_submit",
    "time_start",
    "time_end",
    "tres_alloc",
    "tres_req",
)
_NUMBERS = (
    "state",
    "timelimit",
    "time_submit",
    "time_eligible",
    "time_start",
    "time_end",
    "priority",
)
_WORDS = ("id_user", "account", "partition", "nodelist", "gres_used", "tres_alloc", "tres_req")
GPU_RESOURCES = ("1001", "1002")
OPTIONS = CPU_JOBS_OPTION

_NULL = (r"\N", "NULL")
_NO_LIMIT = 4_294_967_294  # and the next number: "not set" and "infinite" in 32 bits
_CPUS, _MEMORY = "1", "2"


def detect(head: bytes, path: Path) -> Match:
    """Return whether the header line is that of a dump of the job table."""
    del path  # only the content counts
    return Match.CERTAIN if _separator(head) else Match.NO


def lists_nodes(head: bytes, path: Path) -> bool:
    """Return whether the dump has a column of node lists."""
    del path  # only the content counts
    separator = _separator(head)
    return separator is not None and "nodelist" in header_cells(head, separator)


def read(path: Path, *, cpu_jobs: str = "drop") -> Workload:
    """Return the jobs of a dump separated by commas or tabs; the partition is the pool.

    Provenance, besides what `load_trace` lists: `status` (rows by state), `gpu_resources` (jobs
    used by the resource number of their GPUs), `repeated_ids` (jobs used that have the id of
    another job) and `cpu_jobs` (jobs used that need no GPU).

    Args:
        path: the file.
        cpu_jobs: "drop" leaves out jobs without GPUs, "keep" keeps them.

    Raises:
        ConfigError: `cpu_jobs` is not "drop" or "keep".
        TraceError: the file cannot be read, a line is invalid, or no job is usable.
    """
    check_drop_or_keep(path, cpu_jobs=cpu_jobs)
    table = CsvTable(
        path,
        required=COLUMNS,
        numbers=_NUMBERS,
        words=_WORDS,
        texts=("id_job",),
        separator=_separator(read_head(path)) or ",",
    )
    submit, start, end = (
        table.numbers(f"time_{name}", lowest=0, whole=True, missing=0.0, empty=_NULL)
        for name in ("submit", "start", "end")
    )
    minutes = table.numbers("timelimit", lowest=0, missing=0.0, empty=_NULL)
    state = table.numbers("state", lowest=0, whole=True, missing=-1, empty=_NULL)
    held, tres = _tres(table)
    by_resource = {number: _amount(tres, number)[held] for number in GPU_RESOURCES}
    gpus = np.maximum.reduce(list(by_resource.values()))
    cpus, memory = _amount(tres, _CPUS)[held], _amount(tres, _MEMORY)[held]
    for amount in (gpus, cpus):
        table.refuse(
            amount > slurm_fields.MOST, "tres_alloc", f"up to {slurm_fields.MOST} GPUs or CPUs"
        )
    memory = np.where(memory <= slurm_fields.MOST_MEMORY_MIB, memory, 0.0)
    run = end - start
    used, dropped = choose_rows(
        {
            CANCELLED: _among(state, slurm_fields.CANCELLED_STATES) & ((start == 0) | (run <= 0)),
            NEVER_STARTED: _among(state, slurm_fields.WAITING_STATES) | (start == 0),
            NOT_FINISHED: _among(state, slurm_fields.RUNNING_STATES) | (end == 0),
            NO_SUBMIT_TIME: submit == 0,
            **without_gpus(cpu_jobs, gpus, cpus, memory),
            NO_RUN_TIME: run <= 0,
        },
        path=path,
        expected="times of submission, start and end, and 1001 or 1002 among the resources",
    )
    user, user_names = _users(table, used)
    pool, pool_names = number_pools(without(table.text("partition", rows=used), *_NULL))
    table.refuse_long("id_job")
    names = _without_fraction(without(table.text("id_job", rows=used), *_NULL))
    history = _history(table, used, start, state)
    ran_on, ran_on_types = recorded_types(history)
    del table, start, end, held  # the table takes more memory than the workload
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        estimate=np.where((minutes > 0) & (minutes < _NO_LIMIT), 60.0 * minutes, np.nan)[used],
        cpus=cpus[used],
        memory_mib=memory[used],
        user=user,
        user_names=user_names,
        pool=pool,
        pool_names=pool_names,
        ran_on=ran_on,
        ran_on_types=ran_on_types,
        reference_type=RECORDED,
        names=label_array(names),
        history=history,
        name=bare_name(path, ".csv"),
        provenance={
            **row_facts(
                "slurm-database", path, used, dropped, origin=float(submit[used].min()), zone=None
            ),
            "status": _state_counts(state),
            "gpu_resources": {
                number: count
                for number, amount in by_resource.items()
                if (count := int((amount[used] > 0).sum()))
            },
            "cpu_jobs": int((used & (gpus == 0)).sum()),
            "repeated_ids": count_repeated(names),
        },
    )


def _history(
    table: CsvTable,
    used: npt.NDArray[np.bool_],
    start: npt.NDArray[np.float64],
    state: npt.NDArray[np.float64],
) -> History:
    """Return what the dump has about its jobs besides what a simulation needs."""
    import polars as pl

    def text(name: str) -> pl.Series:
        if name not in table.columns:
            return pl.repeat(None, int(used.sum()), dtype=pl.String, eager=True)
        return without(table.text(name, rows=used).cast(pl.String), *_NULL)

    def numbers(name: str) -> npt.NDArray[np.float64] | None:
        if name not in table.columns:
            return None
        found = table.numbers(name, lowest=0, missing=0.0, empty=_NULL)[used]
        return np.where(found > 0, found, np.nan)

    # Python's way to write a list, as in the MIT files.
    listed = text("nodelist")
    plain = listed.str.replace_all(r"^\[|\]$|['\"\s]", "")
    lists = listed.zip_with(~listed.str.starts_with("[").fill_null(False), plain)
    nodes, node_lists = number_pools(without(lists, *slurm_fields.NO_NODES))
    kind, type_names = number_pools(text("gres_used").str.extract(r"gpu:([^:,()]+):[1-9]"))
    group, group_names = number_pools(text("account"))
    codes, status = np.unique(state[used], return_inverse=True)
    return History(
        start[used],
        eligible=numbers("time_eligible"),
        priority=numbers("priority"),
        nodes=nodes if node_lists else None,
        node_lists=node_lists,
        gpu_type=kind,
        gpu_type_names=type_names,
        status=status.reshape(-1).astype(np.int32),
        status_names=tuple(map(_state_name, codes.tolist())),
        group=group,
        group_names=group_names,
    )


def _separator(head: bytes) -> str | None:
    """Return the separator of a dump; None = not a dump."""
    return next((mark for mark in ",\t" if set(COLUMNS) <= set(header_cells(head, mark))), None)


def _tres(table: CsvTable) -> tuple[npt.NDArray[np.int32], pl.Series]:
    """Return the resources allocated, else those requested, as codes of distinct texts."""
    import polars as pl

    held = without(table.text("tres_alloc"), *_NULL)
    if held.null_count():
        held = held.zip_with(held.is_not_null(), without(table.text("tres_req"), *_NULL))
    codes, names = categorize(held, missing="")
    return codes, pl.Series(names, dtype=pl.String)


def _amount(tres: pl.Series, number: str) -> npt.NDArray[np.float64]:
    """Return the amount of a resource that each job has, 0 = none."""
    import polars as pl

    amount = tres.str.extract(rf"(?:^|,){number}=(\d+)").cast(pl.Float64, strict=False)
    return amount.fill_null(0.0).to_numpy()


def _users(
    table: CsvTable, used: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return the users of the rows used as codes and their names."""
    import polars as pl

    codes, written = categorize(without(table.text("id_user", rows=used), *_NULL))
    merged, names = categorize(_without_fraction(pl.Series(written, dtype=pl.String)))
    return merged[codes], names


def _without_fraction(ids: pl.Series) -> pl.Series:
    """Return ids without the `.0` that conversion to floats adds."""
    return ids.str.strip_suffix(".0")


def _state_counts(state: npt.NDArray[np.float64]) -> dict[str, int]:
    """Return how many rows are in each state, the most frequent first."""
    codes, counts = np.unique(state, return_counts=True)
    return {
        _state_name(codes[at]): int(counts[at])
        for at in np.argsort(-counts, kind="stable").tolist()
    }


def _state_name(code: float) -> str:
    return slurm_fields.STATES.get(int(code), f"state {code:.0f}")


def _among(state: npt.NDArray[np.float64], names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    return np.isin(state, [code for code, name in slurm_fields.STATES.items() if name in names])
