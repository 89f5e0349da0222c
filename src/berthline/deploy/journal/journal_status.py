"""The state of a journal and of its controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from berthline.deploy.control.guard import HEARTBEAT, read_sign
from berthline.deploy.control.run_controller import running_controller
from berthline.deploy.journal.journal_file import JournalReader
from berthline.deploy.systems.contract import BY_US, HELD, RUNNING, WAITING

if TYPE_CHECKING:
    from pathlib import Path


class JournalStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller does and did last.

    Attributes:
        journal: the directory.
        system: what it is about.
        controller: the process that writes it; None = none does.
        heartbeat_age: seconds since its last sign of life.
        mode: of the last cycle.
        scheduler: of the last cycle.
        cycles: how many.
        time: of the last cycle, on the system's clock.
        fault: why nothing was done in it; empty = it was sound.
        waiting: jobs that waited in the last look.
        running: jobs that ran.
        held: jobs that were held by us.
        gpus: GPUs of all nodes.
        gpus_in_use: of them.
        parts: files of the journal.
        megabytes: their size.
        remark: the last one.
    """

    journal: str
    system: str
    controller: int | None
    heartbeat_age: float
    mode: str
    scheduler: str
    cycles: int
    time: float
    fault: str
    waiting: int
    running: int
    held: int
    gpus: int
    gpus_in_use: int
    parts: int
    megabytes: float
    remark: str


def journal_status(directory: Path) -> JournalStatus:
    """Return the state of a journal.

    Raises:
        ConfigError: there is none, or it cannot be read.
    """
    reader = JournalReader(directory)
    last, remarks, look = reader.last(), reader.remarks(), reader.last_look()
    age, _, _ = read_sign(directory / HEARTBEAT)
    jobs = look.jobs if look is not None else ()
    nodes = look.nodes if look is not None else ()
    states = [job.state for job in jobs]
    return JournalStatus(
        journal=str(directory),
        system=reader.start().system,
        controller=running_controller(directory),
        heartbeat_age=min(age, 1e9),
        mode=last.mode if last else "",
        scheduler=last.scheduler if last else "",
        cycles=last.number if last else 0,
        time=last.time if last else 0.0,
        fault=last.fault if last else "",
        waiting=states.count(WAITING) + states.count(HELD),
        running=states.count(RUNNING),
        held=sum(job.state == HELD and job.held_by == BY_US for job in jobs),
        gpus=sum(node.gpus for node in nodes),
        gpus_in_use=sum(node.gpus_in_use or 0 for node in nodes),
        parts=len(reader.parts),
        megabytes=sum(file.stat().st_size for file in directory.glob("journal-*")) / 1e6,
        remark=f"{remarks[-1].kind}: {remarks[-1].words}" if remarks else "",
    )
