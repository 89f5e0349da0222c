"""A user's own table: any CSV whose columns have a mapping or recognisable names.

See `column_mapping` for mappings. The separator (comma, semicolon, tab or bar) is that of the first
line. Times are seconds or dates; ISO 8601 dates are recognised. An empty cell means that the value
is not known; so does a submission before 0 or a run time of 0 or less. Without a run time the table
must have a start and an end. A part of one GPU, written as 0.25 GPUs or in thousandths
(`gpu_milli`), is not rounded; other fractions are rounded up to whole GPUs. Jobs without GPUs are
left out unless `cpu_jobs="keep"` and they have CPUs or memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.model.gpu_types import RECORDED
from berthline.model.history import History
from berthline.model.workload import WHOLE_GPU, Workload
from berthline.model.workload_columns import MAX_MEMORY_MIB
from berthline.traces.formats.column_mapping import (
    FORM,
    ColumnSource,
    find_sources,
    is_complete,
    numbered_columns,
    parse_mapping,
)
from berthline.traces.formats.detection import Match, head_lines, header_cells
from berthline.traces.formats.row_filter import (
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
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name, is_binary, read_head
from berthline.traces.reading.leading_comments import blank_leading_comments
from berthline.traces.reading.quoted import presentable
from berthline.traces.reading.request_columns import GpuRequests, gpu_type_sets, number_pools

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OPTIONS = {
    "mapping": f"the meaning of columns, such as {FORM}; KEY= leaves a column out",
    **CPU_JOBS_OPTION,
}

_SEPARATORS = ",\t;|"
_HINT = f"if a column was misinterpreted, map the right one: `mapping={FORM}`; KEY= leaves it out"
_TIMES = ("submit", "start", "end", "deadline")  # columns that are not times or text are numbers
_WORDS = ("user", "pool", "gpu_types")
_TEXTS = ("name",)
_MOST = 2**31 - 1  # the limit of the workload's whole-number columns
_LONGEST = 1e15  # seconds
_EARLIEST_ABSOLUTE = 3e8
"""Seconds. A first submission at or after this (mid 1979) is interpreted as a Unix time."""

_ISO_DATE = re.compile(
    r"\d{4}(?P<part>[-/])\d{1,2}[-/]\d{1,2}(?P<gap>[ T])\d{1,2}:\d\d:\d\d(?:\.\d+)?"
    r"(?P<zone>Z|[-+]\d\d(?::?\d\d)?)?"
)


def detect(head: bytes, path: Path) -> Match:  # noqa: ARG001 - every format has the same two
    """Return whether a file is a table whose column names cover all that a job needs."""
    if is_binary(head):
        return Match.NO
    columns = header_cells(head, _separator(head))
    return Match.READABLE if is_complete(find_sources({}, columns, where="")) else Match.NO


def read(path: Path, *, mapping: str | Mapping[str, str] = "", cpu_jobs: str = "drop") -> Workload:
    """Return the jobs of a table.

    Provenance, besides what `load_trace` lists: `mapping` (the source of each column), `cpu_jobs`
    (jobs used that need no GPU) and, if GPUs were rounded, `rounded`.

    Args:
        path: the file.
        mapping: see `column_mapping`; columns that it omits are recognised by their names.
        cpu_jobs: "drop" leaves out jobs without GPUs, "keep" keeps them.

    Raises:
        ConfigError: the mapping or `cpu_jobs` is invalid.
        TraceError: the file cannot be read or lacks a column, a cell is invalid, or no row is
            usable.
    """
    check_drop_or_keep(path, cpu_jobs=cpu_jobs)
    items = parse_mapping(mapping, where=str(path)) if mapping else {}
    separator = _separator(read_head(path))
    names = numbered_columns(items)
    table = CsvTable(path, columns=names, separator=separator, hint=_HINT, read=False)
    sources = find_sources(items, table.columns, where=str(path))
    if not is_complete(sources):
        raise _incomplete(sources, table)
    _read(table, sources)
    reader = _Reader(table, sources)
    del table  # the table takes more memory than everything else
    columns = reader.columns(cpu_jobs)
    del reader
    return Workload.from_columns(**columns)


def _read(table: CsvTable, sources: Mapping[str, ColumnSource]) -> None:
    """Read the wanted columns, each with its own type."""
    columns = {key: source.column for key, source in sources.items()}
    times = {}
    for key in set(_TIMES) & columns.keys():
        pattern = sources[key].pattern or _date_pattern(table.first_text(columns[key]))
        if pattern is not None:
            times[columns[key]] = pattern
    words = {columns[key] for key in _WORDS if key in columns}
    texts = {columns[key] for key in _TEXTS if key in columns}
    numbers = set(columns.values()) - times.keys() - words - texts
    table.read(numbers=numbers, times=times, words=words, texts=texts)


class _Reader:
    """Makes the columns of a workload from a table, each from its source."""

    def __init__(self, table: CsvTable, sources: Mapping[str, ColumnSource]) -> None:
        self._table, self._sources = table, sources
        self._has_zone = False

    def columns(self, cpu_jobs: str) -> dict[str, Any]:
        """Return the arguments of `Workload.from_columns`."""
        table, sources = self._table, self._sources
        submit = self._times("submit")
        requests = self._gpu_requests()
        gpus, cpus = requests.gpus, self._amount("cpus", _MOST)
        memory = self._amount("memory_mib", MAX_MEMORY_MIB)
        reasons = {NO_SUBMIT_TIME: np.isnan(submit)}
        if "run" in sources:
            run = self._numbers("run", lowest=-_LONGEST, highest=_LONGEST)
        else:
            start, end = self._times("start"), self._times("end")
            run = end - start
            reasons |= {NEVER_STARTED: np.isnan(start), NOT_FINISHED: np.isnan(end)}
        used, dropped = choose_rows(
            {
                **reasons,
                NO_RUN_TIME: ~(run > 0),
                **without_gpus(cpu_jobs, gpus, cpus, memory),
            },
            path=table.path,
            expected="a submission of 0 or more, a run time and GPUs of more than 0",
        )
        origin = float(submit[used].min())
        dated = self._sources["submit"].pattern is not None or origin >= _EARLIEST_ABSOLUTE
        provenance: dict[str, Any] = {
            **row_facts(
                "csv",
                table.path,
                used,
                dropped,
                origin=origin if dated else None,
                zone="UTC" if self._has_zone else None,
            ),
            "mapping": {key: str(source) for key, source in self._sources.items()},
            "cpu_jobs": int((used & (gpus == 0)).sum()),
        }
        rounded = requests.rounded(used)
        if rounded:
            provenance["rounded"] = rounded
        return {
            "submit": submit[used],
            "run": run[used],
            "gpus": gpus[used],
            "gpu_milli": requests.gpu_milli[used],
            "cpus": cpus[used],
            "memory_mib": memory[used],
            **self._optional(used, gpus[used]),
            "reference_type": RECORDED,
            "history": History(self._times("start")[used]) if "start" in sources else None,
            "name": bare_name(table.path, ".csv", ".tsv", ".txt"),
            "provenance": provenance,
        }

    def _gpu_requests(self) -> GpuRequests:
        gpus = np.maximum(self._numbers("gpus", lowest=-1, highest=_MOST, missing=0), 0)
        if "gpu_milli" not in self._sources:
            return GpuRequests.of(gpus)
        milli = self._numbers("gpu_milli", lowest=-1, highest=WHOLE_GPU, missing=WHOLE_GPU)
        is_part = (milli >= 0) & (milli < WHOLE_GPU)
        return GpuRequests.of(
            np.where(is_part, milli / WHOLE_GPU, gpus), np.where(is_part, np.ceil(gpus), 1)
        )

    def _amount(self, key: str, highest: float) -> npt.NDArray[np.float64]:
        """Return a column of amounts, rounded up to whole numbers; 0 = not known."""
        if key not in self._sources:
            return np.zeros(len(self._table))
        return np.ceil(np.maximum(self._numbers(key, lowest=-1, highest=highest, missing=0), 0))

    def _optional(
        self, used: npt.NDArray[np.bool_], gpus: npt.NDArray[np.float64]
    ) -> dict[str, Any]:
        """Return the optional columns of a workload, for the rows used and their GPUs."""
        table = self._table
        given: dict[str, Any] = {}
        if "estimate" in self._sources:
            estimate = self._numbers("estimate", lowest=-_LONGEST, highest=_LONGEST)[used]
            given["estimate"] = np.where(estimate > 0, estimate, np.nan)
        if "priority" in self._sources:
            given["priority"] = self._numbers("priority", lowest=-1e15, highest=1e15, missing=0)
            given["priority"] = given["priority"][used]
        if "deadline" in self._sources:
            deadline = self._times("deadline")[used]
            given["deadline"] = np.where(np.isnan(deadline), np.inf, deadline)
        if "user" in self._sources:
            column = self._sources["user"].column
            given["user"], given["user_names"] = table.categories(column, rows=used)
        if "pool" in self._sources:
            text = table.text(self._sources["pool"].column, rows=used)
            given["pool"], given["pool_names"] = number_pools(text)
        if "gpu_types" in self._sources:
            text = table.text(self._sources["gpu_types"].column, rows=used)
            given["gpu_types"], given["gpu_type_sets"] = gpu_type_sets(text, gpus=gpus)
        if "name" in self._sources:
            given["names"] = table.labels(self._sources["name"].column, rows=used)
        return given

    def _numbers(
        self, key: str, *, lowest: float, highest: float, missing: float = np.nan
    ) -> npt.NDArray[np.float64]:
        source = self._sources[key]
        values = self._table.numbers(
            source.column,
            lowest=lowest / source.factor,
            highest=highest / source.factor,
            missing=missing,
        )
        return values if source.factor == 1 else values * source.factor

    def _times(self, key: str) -> npt.NDArray[np.float64]:
        """Return a column of times in seconds; NaN = missing."""
        source = self._sources[key]
        pattern = self._table.time_patterns.get(source.column)
        if pattern is None:
            return self._numbers(key, lowest=-_LONGEST, highest=_LONGEST)
        self._sources = {**self._sources, key: ColumnSource(source.column, 1.0, pattern)}
        self._has_zone |= "z" in pattern
        return self._table.times(source.column, optional=True)


def _separator(head: bytes) -> str:
    """Return the most frequent separator in the first line."""
    first = next(iter(head_lines(blank_leading_comments(head))), "")
    return max(_SEPARATORS, key=first.count)


def _date_pattern(text: str) -> str | None:
    """Return the format of a date such as `2020-04-01 13:05:59`; None = not such a date."""
    match = _ISO_DATE.fullmatch(text)
    if match is None:
        return None
    part = match["part"]
    zone = "%#z" if match["zone"] else ""
    return f"%Y{part}%m{part}%d{match['gap']}%H:%M:%S%.f{zone}"


def _incomplete(sources: Mapping[str, ColumnSource], table: CsvTable) -> TraceError:
    missing = [key for key in ("submit", "gpus") if key not in sources]
    if "run" not in sources and not {"start", "end"} <= sources.keys():
        missing.append("run")
    columns = ", ".join(presentable(table.columns))
    return TraceError(
        "no column was recognised as " + " or ".join(f"{key!r}" for key in missing),
        where=f"{table.path}, line 1",
        expected="columns for the submission, the run time (or start and end) and the GPUs",
        hint=f"the columns are {columns}; map them: `mapping={FORM}`",
    )
