"""start.json: the state in which a resumed run began, as far as its log does not say it.

The jobs and the rows of that state are the first of the run's workload and log. A snapshot on disk
is a run directory with this file whose horizon is the instant of the snapshot.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import ConfigError
from berthline.model.snapshot import Memory, Snapshot
from berthline.sealed_json import seal, unseal
from berthline.sim.snapshots.check import check_snapshot
from berthline.sim.snapshots.take import cut_log, take_jobs

if TYPE_CHECKING:
    from pathlib import Path

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload

_PLAIN = ("now", "decides", "timer", "scheduler", "knowledge", "seed")
"""Fields of a snapshot that JSON can hold."""


def write_start(snapshot: Snapshot, path: Path) -> None:
    """Write what the log of a run that begins with a snapshot does not say."""
    facts: dict[str, Any] = {name: getattr(snapshot, name) for name in _PLAIN}
    facts |= {
        "jobs": snapshot.num_jobs,
        "rows": len(snapshot.log),
        "decisions": snapshot.log.decisions,
        "number": snapshot.number.tolist(),
        # That of the file of jobs would be about the file.
        "provenance": dict(snapshot.workload.provenance),
        "memory": {
            field.name: _plain(getattr(snapshot.memory, field.name))
            for field in dataclasses.fields(Memory)
        },
    }
    path.write_text(json.dumps(seal(facts), indent=1) + "\n", encoding="utf-8")


def read_start(path: Path, workload: Workload, cluster: Cluster, log: Schedule) -> Snapshot:
    """Return the snapshot with which a run began.

    Args:
        path: the file.
        workload: the jobs of the run.
        cluster: its nodes.
        log: its log.

    Raises:
        ConfigError: the file is damaged, or does not belong to the run.
    """
    facts = unseal(path.read_bytes(), where=str(path), what=path.name)
    try:
        jobs, rows = int(facts["jobs"]), int(facts["rows"])
        now = float(facts["now"])
        kept = np.arange(jobs)
        if jobs > len(workload) or rows > len(log):
            raise ConfigError(
                f"{path.name} is about {jobs} jobs and {rows} rows of the log",
                where=str(path),
                expected=f"at most {len(workload)} and {len(log)}, as the run has",
            )
        snapshot = Snapshot(
            workload=dataclasses.replace(take_jobs(workload, kept), provenance=facts["provenance"]),
            cluster=cluster,
            log=dataclasses.replace(
                cut_log(log, np.arange(len(log)) < rows, kept, now),
                decisions=int(facts["decisions"]),
            ),
            number=np.array(facts["number"], np.int64),
            memory=Memory(**{name: _read(name, value) for name, value in facts["memory"].items()}),
            **{name: facts[name] for name in _PLAIN},
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path.name} cannot be read: {error}",
            where=str(path),
            expected="a file that this version of Berthline wrote",
        ) from None
    check_snapshot(snapshot)
    return snapshot


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _read(name: str, value: Any) -> Any:
    """Return a field of Memory of the type and shape that it has there."""
    empty = getattr(Memory(), name)
    if not isinstance(empty, np.ndarray):
        return type(empty)(value)
    found = np.array(value, empty.dtype)
    return found.reshape(empty.shape) if not found.size else found
