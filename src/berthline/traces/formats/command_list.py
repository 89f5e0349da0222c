"""Lists of commands to run on one node: CSV with a program, its estimate and when it is submitted.

Columns: `name,command,est_runtime_s,submit_time`, and where needed `deadline_s` (seconds after the
submission; empty = none), `priority` (larger is more important), `gpus` (1 if there is no such
column) and `memory_mib` (a limit; 0 or empty = none). Times are seconds from the start of the list.
As a workload for simulations a job runs as long as its estimate. Other columns are
refused: a misspelt one would change what is run.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from berthline.errors import unknown_name
from berthline.model.gpu_types import RECORDED
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.row_filter import row_facts
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name, is_binary
from berthline.traces.reading.line_error import LineError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

REQUIRED = ("name", "command", "est_runtime_s", "submit_time")
OPTIONAL = ("deadline_s", "priority", "gpus", "memory_mib")
_LONGEST_TIME = 1e9
_MOST_GPUS = 2**15
_MOST_MEMORY = 2**31 - 1


class CommandList(NamedTuple):
    """The jobs of a list, and what to run.

    Attributes:
        workload: the jobs; each runs as long as its estimate.
        commands: for each job of the workload, its cell `command`.
        lines: for each job of the workload, its line in the file.
    """

    workload: Workload
    commands: list[str]
    lines: list[int]


def detect(head: bytes, path: Path) -> Match:  # noqa: ARG001 - as of every format
    """Return whether a file is a list of commands, by the names of its columns."""
    if is_binary(head):
        return Match.NO
    return Match.CERTAIN if set(REQUIRED) <= set(header_cells(head)) else Match.NO


def read(path: Path) -> Workload:
    """Return the jobs of a list of commands, each as long as its estimate.

    Raises:
        TraceError: the file cannot be read, or a cell is invalid.
    """
    return read_commands(path).workload


def read_commands(path: Path) -> CommandList:
    """Return the jobs of a list of commands, and the commands.

    Raises:
        TraceError: the file cannot be read, or a cell is invalid.
    """
    table = CsvTable(
        path,
        required=REQUIRED,
        numbers=("est_runtime_s", "submit_time", *OPTIONAL),
        texts=("name", "command"),
    )
    for column in table.columns:
        if column not in (*REQUIRED, *OPTIONAL):
            what, expected, hint = unknown_name("column", column, (*REQUIRED, *OPTIONAL))
            raise LineError(
                what, where=f"{path}, line 1", expected=expected, hint=hint, lines=lambda: [1]
            )

    def column_of(
        name: str, default: float, lowest: float, highest: float
    ) -> npt.NDArray[np.float64]:
        if name not in table.columns:
            return np.full(len(table), default)
        whole = name in ("gpus", "memory_mib")
        return table.numbers(name, missing=default, whole=whole, lowest=lowest, highest=highest)

    submit = table.numbers("submit_time", lowest=0, highest=_LONGEST_TIME)
    run = table.numbers("est_runtime_s", lowest=1e-3, highest=_LONGEST_TIME)
    deadline = column_of("deadline_s", np.inf, 0, _LONGEST_TIME)
    commands = [str(text or "") for text in table.text("command").to_list()]
    no_command = np.array([not text or "\0" in text for text in commands])
    table.refuse(no_command, "command", "a program and its arguments")
    used = np.ones(len(table), dtype=np.bool_)
    workload = Workload.from_columns(
        submit=submit,
        run=run,
        estimate=run,
        deadline=submit + deadline,
        priority=column_of("priority", 0, -1e9, 1e9),
        gpus=column_of("gpus", 1, 0, _MOST_GPUS),
        memory_mib=column_of("memory_mib", 0, 0, _MOST_MEMORY),
        reference_type=RECORDED,
        names=table.labels("name"),
        name=bare_name(path, ".csv"),
        provenance=row_facts("commands", path, used, {}, origin=None, zone=None),
    )
    order = np.argsort(submit, kind="stable").tolist()
    lines = [table.line_of(row) for row in order]
    return CommandList(workload, [commands[row] for row in order], lines)


def arguments_of(command: str, *, shell: bool) -> list[str]:
    """Return the arguments of a command.

    Without a shell nothing in it has a meaning but blanks, quotes and backslashes: `;`, `$HOME` and
    `*` are text. A command that begins with `[` is a JSON list of texts.

    Args:
        command: the cell.
        shell: hand it to `/bin/sh`.

    Raises:
        ValueError: it is not a command.
    """
    if shell:
        return ["/bin/sh", "-c", command]
    if command.lstrip().startswith("["):
        arguments = json.loads(command)
        if not all(isinstance(one, str) for one in arguments):
            raise ValueError("a list holds texts only")
    else:
        arguments = shlex.split(command)
    if not arguments or not arguments[0] or any("\0" in one for one in arguments):
        raise ValueError("there is no program")
    return [str(one) for one in arguments]
