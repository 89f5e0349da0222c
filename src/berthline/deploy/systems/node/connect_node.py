"""`berthline deploy node`: checks a list of commands, and starts the runner that runs it."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import platform
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berthline.deploy.systems.contract import AdapterError
from berthline.deploy.systems.node.lift_node import begin
from berthline.deploy.systems.node.node_adapter import NodeAdapter
from berthline.deploy.systems.node.node_options import NodeOptions
from berthline.deploy.systems.node.runner.control_groups import CHOICES, find_control_groups
from berthline.deploy.systems.node.runner.keeper import write_whole
from berthline.deploy.systems.node.runner.runner import PREEMPTIONS, SETTINGS
from berthline.deploy.systems.node.runner.telemetry import SOURCES, find_gpus
from berthline.errors import ConfigError, TraceError, unknown_name
from berthline.traces.formats.command_list import arguments_of, read_commands

if TYPE_CHECKING:
    from berthline.traces.formats.command_list import CommandList

Options = NodeOptions
"""What `system_table.py` reads."""

NODE = "node"
"""The room of the runner in the directory of a journal."""
_MOST_SLOTS = 4096


def connect(options: NodeOptions, journal: Path) -> NodeAdapter:
    """Return the adapter of this node, whose runner is started if needed.

    Raises:
        BerthlineError: an option or the list of commands is wrong, or the journal is of another.
        AdapterError: the runner does not start.
    """
    _check(options)
    directory = journal.absolute() / NODE
    path = Path(options.workload)
    commands = read_commands(path)
    settings = _settings(options, path, commands)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = directory / SETTINGS
    if file.exists():
        _check_same(_kept(file), settings, file)
    else:
        name = "berthline-" + hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]
        settings["groups"] = find_control_groups(name, options.cgroups)
        write_whole(file, settings)
    try:
        begin(directory)
    except OSError as error:
        raise AdapterError(
            str(error), where=str(directory), expected="a runner that answers"
        ) from None
    return NodeAdapter(directory)


def _check(options: NodeOptions) -> None:
    for flag, given, known in (
        ("`preempt`", options.preempt, PREEMPTIONS),
        ("`cgroups`", options.cgroups, CHOICES),
        ("`telemetry`", options.telemetry, SOURCES),
    ):
        if given not in known:
            what, expected, hint = unknown_name("value", given, known)
            raise ConfigError(what, where=flag, expected=expected, hint=hint)
    if options.signal not in signal.Signals.__members__:
        what, _, hint = unknown_name("signal", options.signal, signal.Signals.__members__)
        raise ConfigError(what, where="`signal`", expected="a name as kill -l lists", hint=hint)
    if not 0 <= options.grace < math.inf:
        raise ConfigError(f"`grace` is {options.grace:g}", expected="0 or more seconds")
    if not 0 < options.time_scale < math.inf:
        raise ConfigError(f"`time_scale` is {options.time_scale:g}", expected="more than 0")
    if options.slots is not None and not 1 <= options.slots <= _MOST_SLOTS:
        raise ConfigError(f"`slots` is {options.slots}", expected=f"1 to {_MOST_SLOTS}")


def _settings(options: NodeOptions, path: Path, commands: CommandList) -> dict[str, Any]:
    source, gpus, why = find_gpus(options.telemetry)
    found, names = _visible(gpus.names() if gpus else [])
    slots = options.slots or len(found)
    if not slots:
        raise ConfigError(
            "this machine has no GPUs that can be asked for",
            expected="GPUs that NVML or nvidia-smi lists, or declared slots",
            hint=f"`slots=4` runs four jobs side by side ({why or 'telemetry is off'})",
        )
    if found and slots > len(found):
        raise ConfigError(f"`slots` is {slots}", expected=f"at most {len(found)}, the GPUs here")
    now, workload, scale = time.time(), commands.workload, options.time_scale
    labels = workload.names
    jobs = []
    for number, text in enumerate(commands.commands):
        where = f"{path}, line {commands.lines[number]}"
        if workload.gpus[number] > slots:
            raise TraceError(
                f"a job needs {workload.gpus[number]} GPUs",
                where=where,
                expected=f"at most {slots}, which this node has",
            )
        try:
            arguments = arguments_of(text, shell=options.shell)
        except (ValueError, TypeError) as error:
            raise TraceError(
                f"the command cannot be read: {error}",
                where=where,
                expected="a program and its arguments, in quotes where they hold blanks",
                hint="" if options.shell else "`shell` hands commands to /bin/sh",
            ) from None
        submit = float(workload.submit[number])
        deadline = float(workload.deadline[number])
        jobs.append(
            {
                "id": str(number + 1),
                "name": str(labels[number]) if labels is not None else str(number + 1),
                "arguments": arguments,
                "submitted": now + submit * scale,
                "estimate": float(workload.estimate[number]) * scale,
                "deadline": None if math.isinf(deadline) else now + deadline * scale,
                "priority": float(workload.priority[number]),
                "gpus": int(workload.gpus[number]),
                "memory_mib": int(workload.memory_mib[number]),
            }
        )
    facts = {
        "trace": hashlib.sha256(path.read_bytes()).hexdigest(),
        "shell": options.shell,
        "preempt": options.preempt,
        "signal": options.signal,
        "grace": options.grace,
        "time_scale": scale,
        "gpus": slots,
    }
    return {
        **facts,
        "node": platform.node() or "node",
        "name": path.name,
        "begin": now,
        "are_real": bool(found),
        "gpu_type": found[0][0] if found else "",
        "gpu_names": names or [str(number) for number in range(slots)],
        "telemetry": source,
        "working_directory": str(path.absolute().parent),
        "jobs": jobs,
    }


def _visible(found: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the GPUs that this process may use, and what CUDA_VISIBLE_DEVICES calls each."""
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return found, [str(number) for number in range(len(found))]
    # An allocation of another scheduler, for example: no others are ours to give away.
    names = [name.strip() for name in text.split(",") if name.strip()]
    names = list(itertools.takewhile(lambda name: name != "-1", names))[: len(found)]
    return found[: len(names)], names


_FIXED = ("trace", "shell", "preempt", "signal", "grace", "time_scale", "gpus")
_FLAGS = {"trace": "the list of commands", "gpus": "`slots`"}


def _kept(file: Path) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(file.read_bytes())
        if set(kept) >= set(_FIXED):
            return kept
    except (OSError, ValueError, TypeError):
        pass
    raise ConfigError(
        "the settings of the node cannot be read",
        where=str(file),
        expected="the file as it was written",
        hint="use a new journal: `journal=DIR`",
    )


def _check_same(kept: dict[str, Any], given: dict[str, Any], file: Path) -> None:
    """Raise if a journal was begun with another list or other options."""
    for name in _FIXED:
        if kept[name] != given[name]:
            what = _FLAGS.get(name, f"`{name}`")
            raise ConfigError(
                f"{what} is not what this journal was begun with",
                where=str(file),
                expected="the same list and the same options, or a new journal",
                hint="`journal=DIR`",
            )
