"""A worker process: makes the runs it is told to, and sends back what is kept of them.

It reads messages from its standard input and writes answers to its standard output, each a pickle
behind its length; the end of the input ends it. Imports are few, because every worker pays them.

    to the worker     Setup once; then Batch after Batch
    from the worker   Answer for each run, and None when a batch is done
"""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import struct
import sys
import traceback
from typing import IO, Any

from berthline.evaluate.energy_rate import EnergyRate
from berthline.evaluate.grid import Place
from berthline.evaluate.run_record import RunSettings
from berthline.model.cluster import Cluster
from berthline.model.schedule import Schedule
from berthline.model.workload import Workload
from berthline.policies.scheduler import Scheduler

_LENGTH = struct.Struct("<Q")


@dataclasses.dataclass(frozen=True, eq=False)
class Setup:
    """What all runs of a grid share, sent once."""

    schedulers: tuple[Scheduler, ...]
    clusters: tuple[Cluster, ...]
    seeds: tuple[int, ...]
    settings: RunSettings


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Runs on one window; its jobs are None where the worker has them from the batch before."""

    workload: Workload | None
    energy_rate: EnergyRate | None
    runs: tuple[tuple[Place, bool, bool], ...]
    """Each with whether its log is wanted, and whether the bound is."""


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
    """What one run gave: its record and job outcomes as bytes; or the error that it ended with."""

    place: Place
    record: bytes = b""
    jobs: bytes | None = None
    log: Schedule | None = None
    error: tuple[str, str, str, str, str] | None = None
    """Class, what, where, expected and hint; of an unexpected error its class and traceback."""


def command(module: str = __name__) -> list[str]:
    """Return the command that starts a worker, with the import path of this process.

    Args:
        module: whose `main` serves.
    """
    code = (
        "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
        f"from {module} import main; main()"
    )
    return [sys.executable, "-P", "-c", code, json.dumps(sys.path)]


def send(stream: IO[bytes], message: Any) -> None:
    """Write a message."""
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Return the next message.

    Raises:
        EOFError: there is none.
    """
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return pickle.loads(content)


def main() -> None:
    """Serve until the input ends."""
    # What a library prints must not get in between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    messages = sys.stdin.buffer
    try:
        setup: Setup = receive(messages)
        workload: Workload | None = None
        while True:
            batch: Batch = receive(messages)
            workload = batch.workload or workload
            assert workload is not None
            for place, keeps_log, bounds in batch.runs:
                answer = _answer(setup, workload, batch, place, keeps_log=keeps_log, bounds=bounds)
                send(answers, answer)
            send(answers, None)
    except (EOFError, BrokenPipeError):
        os._exit(0)  # nobody is there any more to whom anything could matter


def _answer(
    setup: Setup, workload: Workload, batch: Batch, place: Place, *, keeps_log: bool, bounds: bool
) -> Answer:
    import msgspec

    from berthline.errors import BerthlineError
    from berthline.evaluate.run_record import make_run

    try:
        run = make_run(
            workload,
            setup.clusters[place.cell],
            setup.schedulers[place.scheduler],
            setup.settings,
            seed=setup.seeds[place.seed],
            energy_rate=batch.energy_rate,
            keeps_log=keeps_log,
            bounds=bounds,
        )
    except BerthlineError as error:
        told = (type(error).__name__, error.what, error.where, error.expected, error.hint)
        return Answer(place, error=told)
    except Exception as error:
        return Answer(place, error=(type(error).__name__, traceback.format_exc(), "", "", ""))
    return Answer(
        place,
        msgspec.msgpack.encode(run.record),
        None if run.jobs is None else run.jobs.to_bytes(),
        run.log,
    )
