"""`berthline deploy simulated`: a simulated cluster in a process of its own, and its adapter."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import Positional, arg

from berthline.atomic_write import write_atomically
from berthline.deploy.systems.contract import (
    NOT_KNOWN,
    Abilities,
    Action,
    AdapterError,
    GuardOrders,
    Look,
    Outcome,
)
from berthline.deploy.systems.deploy_options import DeployOptions
from berthline.deploy.systems.simulated.lift_simulated import call
from berthline.deploy.systems.simulated.simulated_cluster import SimulatedCluster
from berthline.deploy.systems.simulated.simulated_server import ADDRESS
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPTIONS = "simulated-options.json"
_ERRORS = "simulated-errors.txt"
_BEGIN_SECONDS, _END_SECONDS = 60.0, 30.0
_HEARTBEATS = 2.0


class SimulatedOptions(DeployOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Schedule a simulated cluster as if it were a real one.

    The cluster is a process of its own with a native scheduler; it goes on when the controller is
    killed, and the same command continues beside it.

    Examples:
      berthline deploy simulated synthetic --jobs 200 --scheduler sjf+easy --once
      berthline deploy simulated trace.swf --cluster my.toml --scheduler sjf+easy --speed 600
      berthline deploy simulated synthetic --mode act --override "trying it out"
    """

    workload: Annotated[
        Positional[str], arg(metavar="WORKLOAD", help="A trace file or a generator, as in sim.")
    ]
    cluster: Annotated[str, arg(metavar="CLUSTER")] = "uniform:8x8:V100"
    """The nodes, as in sim."""
    native: Annotated[str, arg(metavar="SCHEDULER")] = "static-priority+easy"
    """The cluster's own scheduler."""
    speed: Annotated[float, arg(metavar="X")] = 60.0
    """Seconds of the cluster in a second; 0 = time passes only between cycles, without delay."""
    jobs: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """Jobs to generate or to take from a file."""
    load: Annotated[float | None, arg(metavar="X", help_behavior_hint="")] = None
    """Offered load, as in sim."""
    seed: Annotated[int, arg(metavar="S")] = 0
    """Of generated jobs and random failures."""
    pools: Annotated[str, arg(metavar="NAMES", help_behavior_hint="(default: all)")] = ""
    """The pools whose jobs are ours, separated by commas; other jobs are never touched."""


Options = SimulatedOptions
"""What `system_table.py` reads."""


def cluster_of(options: SimulatedOptions) -> SimulatedCluster:
    """Return the cluster that the options describe, at its beginning.

    Raises:
        BerthlineError: an option is wrong.
    """
    from berthline.traces.cluster_argument import resolve_cluster
    from berthline.traces.workload_argument import resolve_workload

    cluster = resolve_cluster(options.cluster)
    workload = resolve_workload(
        options.workload,
        cluster=cluster,
        jobs=options.jobs,
        load=options.load,
        seed=options.seed,
    )
    pools = [name.strip() for name in options.pools.split(",") if name.strip()]
    return SimulatedCluster(
        workload, cluster, options.native, seed=options.seed, pools=pools or None
    )


def connect(options: SimulatedOptions, journal: Path) -> DistantCluster:
    """Return the adapter of the cluster in a journal's directory, which is started if needed.

    Raises:
        BerthlineError: an option is wrong.
        AdapterError: it does not start.
    """
    if not options.speed >= 0:
        raise ConfigError(f"`speed` is {options.speed:g}", expected="0 or more")
    if (found := _running(journal)) is not None:
        return found
    cluster_of(options)  # an error is raised here, not in another process
    journal.mkdir(parents=True, exist_ok=True)
    (journal / ADDRESS).unlink(missing_ok=True)
    file = journal / _OPTIONS
    write_atomically(file, msgspec.json.encode(options))
    command = [sys.executable, "-m", "berthline.deploy.systems.simulated.simulated_server"]
    with (journal / _ERRORS).open("wb") as errors:
        process = subprocess.Popen(
            [*command, str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    until = time.monotonic() + _BEGIN_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if (found := _running(journal)) is not None:
            found.process = process
            return found
        time.sleep(0.02)
    process.kill()
    process.wait()
    raise AdapterError(
        "the simulated cluster does not start",
        where=str(journal),
        hint=(journal / _ERRORS).read_text(errors="replace").strip()[-300:],
    )


def simulated_system(journal: str | Path, **options: Any) -> DistantCluster:
    """Return a simulated cluster that a controller with this journal finds and leaves running.

    Args:
        journal: the directory of the journal.
        options: of `berthline deploy simulated`, such as `workload`, `jobs`, `load` and `speed`.

    Raises:
        BerthlineError: an option is wrong, or it does not start.
    """
    try:
        found = msgspec.convert({"workload": "synthetic", **options}, SimulatedOptions)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error), where="simulated_system") from None
    return connect(found, Path(journal))


def _running(journal: Path) -> DistantCluster | None:
    try:
        facts = json.loads((journal / ADDRESS).read_bytes())
        options = msgspec.json.decode((journal / _OPTIONS).read_bytes(), type=SimulatedOptions)
        return DistantCluster(str(facts["socket"]), options.speed)
    except (OSError, ValueError, KeyError, AdapterError):
        return None


class _Status(msgspec.Struct):
    now: float
    held: int
    over: bool
    abilities: Abilities
    name: str


class DistantCluster:
    """A simulated cluster in another process, behind the contract.

    Args:
        socket: where it listens.
        speed: of its clock.
        heartbeat_limit: seconds without a heartbeat after which it holds no new jobs.
    """

    def __init__(self, socket: str, speed: float, *, heartbeat_limit: float = 5.0) -> None:
        self._socket, self._speed, self._limit = socket, speed, heartbeat_limit
        self.process: subprocess.Popen[bytes] | None = None
        """The cluster, if it was started here."""
        status = self._status("status")
        self.abilities = status.abilities
        self.name = f"simulated {status.name}"

    def _ask(self, request: dict[str, Any], timeout: float = 30.0) -> bytes:
        try:
            return call(self._socket, msgspec.json.encode(request), timeout=timeout)
        except OSError as error:
            raise AdapterError(f"the simulated cluster does not answer: {error}") from None

    def _status(self, what: str, seconds: float = 0.0) -> _Status:
        answer = self._ask({"call": what, "seconds": seconds}, timeout=600.0)
        return msgspec.json.decode(answer, type=_Status)

    @property
    def is_over(self) -> bool:
        """Whether every job has come and gone."""
        return self._status("status").over

    def look(self) -> Look:
        """Return what the cluster says now."""
        return msgspec.json.decode(self._ask({"call": "look"}), type=Look)

    def do(self, actions: Sequence[Action]) -> list[Outcome]:
        """Do these things now."""
        try:
            answer = self._ask({"call": "do", "actions": list(actions)})
            return msgspec.json.decode(answer, type=list[Outcome])
        except AdapterError as error:
            return [Outcome(NOT_KNOWN, error.what)] * len(actions)

    def clock(self) -> float:
        """Return the time on the cluster's clock."""
        return self._status("status").now

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        if self._speed:
            time.sleep(seconds / self._speed)
        else:
            self._status("wait", seconds)

    def beat(self) -> None:
        """Let the cluster hold new jobs for a while."""
        self._status("beat", self._limit)

    def leave(self) -> None:
        """Let new jobs flow natively from now on."""
        self._status("leave")

    def guard(self) -> GuardOrders | None:
        """Return how a guard reaches the cluster."""
        return GuardOrders(
            module="berthline.deploy.systems.simulated.lift_simulated",
            arguments={"socket": self._socket},
        )

    def close(self) -> None:
        """End the cluster, if it was started here; another one ends when no client asks it."""
        if self.process is None:
            return
        with contextlib.suppress(AdapterError):
            self._status("stop")
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
