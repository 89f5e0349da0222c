"""Workers on a Ray cluster: one actor for each, with one CPU.

Only the core of Ray is used: actors, and generators of what they answer. What is sent is bytes that
this package has pickled, so that a worker reads the same on every engine. Ray repeats nothing by
itself: a worker that is lost with its node is replaced here, and the caller decides what to send
again.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import pickle
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

from berthline.errors import ClusterError, ConfigError, MissingExtraError
from berthline.worker_pool import MOST_ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

ADDRESS = "RAY_ADDRESS"
"""The environment variable that Ray reads too."""
AUTO = "auto"
"""The address of the cluster that runs on this machine."""
KNOCK_SECONDS = 5.0
"""So long the address may take to accept a connection."""
START_SECONDS = 60.0
"""So long the first worker may take to start."""
_TELL_SECONDS = 0.25
"""Answers are sent together until the first of them is so old."""
_LOOK_SECONDS = 1.0


def connect(address: str | None) -> ModuleType:
    """Connect to a Ray cluster, unless that was done before, and return the package.

    Args:
        address: of the cluster; None = RAY_ADDRESS.

    Raises:
        MissingExtraError: Ray is not installed.
        ConfigError: there is no address.
        ClusterError: no Ray answers there.
    """
    if importlib.util.find_spec("ray") is None:
        raise MissingExtraError("ray", "ray", "the engine ray")
    wanted = address or os.environ.get(ADDRESS, "")
    if not wanted:
        raise ConfigError(
            "the engine ray has no address",
            expected=f"`address`, or the environment variable {ADDRESS}: HOST:PORT",
            hint="start a cluster on this machine: ray start --head; its address is then auto",
        )
    if wanted != AUTO:
        _knock(wanted)
    # Ray asks for the time zone and such in the background, and reports usage unless told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    if ray.is_initialized():
        return ray
    try:
        ray.init(address=wanted, logging_level=logging.ERROR, log_to_driver=False)
    except Exception as error:
        raise ClusterError(
            f"no Ray cluster answers ({type(error).__name__}: {_first_line(error)})",
            where=wanted,
            expected="the address of a running cluster of the same Ray and Python versions",
            hint="ray status --address HOST:PORT shows whether it runs",
        ) from None
    # Even so Ray prints lost workers to standard output, where results go; its switch is private.
    ray._private.worker._worker_logs_enabled = False
    return ray


def _knock(address: str) -> None:
    """Raise if nothing listens at an address; Ray itself would try for minutes.

    Raises:
        ConfigError: it is not an address.
        ClusterError: nothing listens there.
    """
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdigit()) or "/" in host:
        raise ConfigError(
            f"the address of the Ray cluster is {address!r}",
            expected="HOST:PORT, such as 10.0.0.1:6379; or auto",
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"nothing listens at the address of the Ray cluster ({error})",
            where=address,
            expected="the address that `ray start --head` printed",
            hint="ray status --address HOST:PORT shows whether it runs",
        ) from None


def cluster_cores() -> int:
    """Return the number of CPUs of the connected cluster."""
    import ray

    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return max(1, int(resources.get("CPU", 1)))


class RayActor:
    """A worker: it runs on a node of the cluster."""

    def __init__(self, module: str, setup: bytes, path: list[str]) -> None:
        sys.path += [place for place in path if place not in sys.path and os.path.isdir(place)]  # noqa: PTH112
        self._answer = importlib.import_module(module).answers_of(pickle.loads(setup))

    def where(self) -> tuple[str, int]:
        """Return the node and the process; it answers as soon as the worker is there."""
        import ray

        return ray.get_runtime_context().get_node_id(), os.getpid()

    def answers(self, message: bytes) -> Iterator[bytes]:
        """Yield the answers to a message, several at a time."""
        ready: list[Any] = []
        began = time.monotonic()
        for one in self._answer(pickle.loads(message)):
            ready.append(one)
            if time.monotonic() - began > _TELL_SECONDS:
                yield pickle.dumps(ready, protocol=pickle.HIGHEST_PROTOCOL)
                ready, began = [], time.monotonic()
        yield pickle.dumps(ready, protocol=pickle.HIGHEST_PROTOCOL)


class RayWorker:
    """An actor as its pool sees it.

    Attributes:
        actor: the actor.
        node: the node that it runs on; empty = it has not started yet.
        process: its process there.
        stream: the answers that it is sending; None = it is idle.
        heard: when it last sent something, or was sent something.
    """

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.node, self.process = "", 0
        self.starting: Any = actor.where.remote()
        self.stream: Any = None
        self.heard = time.monotonic()


class RayPool:
    """Workers on the connected Ray cluster; as `worker_pool.WorkerPool`.

    Args:
        module: the module whose `answers_of` does the work; every node must be able to import it.
        setup: what every worker gets first.
        count: how many workers.
        timeout: a busy worker that sends nothing for this many seconds is ended; None = never.

    Attributes:
        workers: the workers.
    """

    def __init__(
        self, module: str, setup: Any, count: int, *, timeout: float | None = None
    ) -> None:
        import ray

        self._ray, self._timeout = ray, timeout
        self._class = ray.remote(RayActor).options(num_cpus=1, max_restarts=0, max_task_retries=0)
        content = pickle.dumps(setup, protocol=pickle.HIGHEST_PROTOCOL)
        self._arguments = (module, ray.put(content), list(sys.path))
        self._failed_starts = 0
        self._any_has_started = False
        self._began = time.monotonic()
        self.workers: list[RayWorker] = []
        try:
            for _ in range(count):
                self.workers.append(self._new())
        except BaseException:
            self.close()
            raise

    def _new(self) -> RayWorker:
        return RayWorker(self._class.remote(*self._arguments))

    def answers(
        self,
        next_message: Callable[[RayWorker], Any | None],
        lost: Callable[[RayWorker, str], None],
    ) -> Iterator[tuple[RayWorker, Any]]:
        """Keep all workers busy, and yield their answers; see `engines.engine.Pool`.

        Raises:
            ClusterError: no worker could be started.
        """
        while True:
            for worker in self.workers:
                if worker.node and worker.stream is None:
                    self._give(worker, next_message)
            streams = {one.stream: one for one in self.workers if one.stream is not None}
            if not streams and any(worker.node for worker in self.workers):
                return  # the ones that are still starting would find nothing to do
            starting = {w.starting: w for w in self.workers if not w.node}
            ready, _ = self._ray.wait([*streams, *starting], num_returns=1, timeout=_LOOK_SECONDS)
            for one in ready:
                if one in starting:
                    self._note_start(starting[one], lost)
                else:
                    yield from self._received(streams[one], lost)
            self._end_late(lost)

    def _give(self, worker: RayWorker, next_message: Callable[[RayWorker], Any | None]) -> None:
        message = next_message(worker)
        if message is not None:
            content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
            method = worker.actor.answers.options(num_returns="streaming")
            worker.stream = method.remote(content)
            worker.heard = time.monotonic()

    def _received(
        self, worker: RayWorker, lost: Callable[[RayWorker, str], None]
    ) -> Iterator[tuple[RayWorker, Any]]:
        worker.heard = time.monotonic()
        try:
            for one in pickle.loads(self._ray.get(next(worker.stream))):
                yield worker, one
        except StopIteration:
            worker.stream = None
        except self._ray.exceptions.RayError as error:
            self._replace(worker, lost, f"{type(error).__name__}: {_first_line(error)}")

    def _note_start(self, worker: RayWorker, lost: Callable[[RayWorker, str], None]) -> None:
        try:
            worker.node, worker.process = self._ray.get(worker.starting)
            self._any_has_started = True
        except self._ray.exceptions.RayError as error:
            self._failed_starts += 1
            if self._failed_starts >= MOST_ATTEMPTS * len(self.workers):
                raise ClusterError(
                    f"workers do not start on the Ray cluster: {_first_line(error)}",
                    expected="Berthline, of this version, installed on every node",
                ) from None
            self._replace(worker, lost, "it did not start")

    def _replace(self, worker: RayWorker, lost: Callable[[RayWorker, str], None], how: str) -> None:
        """Start a worker in the place of one that is lost."""
        self._end(worker)
        was_busy, worker.stream = worker.stream is not None, None
        self.workers[self.workers.index(worker)] = self._new()
        if was_busy:
            lost(worker, how)

    def _end_late(self, lost: Callable[[RayWorker, str], None]) -> None:
        now = time.monotonic()
        for worker in list(self.workers):
            late = self._timeout is not None and now - worker.heard > self._timeout
            if late and worker.stream is not None:
                self._replace(worker, lost, f"no answer for {self._timeout:g} s")
        if not self._any_has_started and now - self._began > START_SECONDS:
            raise ClusterError(
                f"no worker has started on the Ray cluster in {START_SECONDS:g} s",
                expected="a node with a free CPU",
                hint="ray status shows what the nodes do",
            )

    def names(self) -> list[tuple[RayWorker, str, str]]:
        """Return each worker with its name and its node."""
        return [
            (one, f"process {one.process}" if one.node else "starting", one.node[:8])
            for one in self.workers
        ]

    def _end(self, worker: RayWorker) -> None:
        with contextlib.suppress(Exception):
            self._ray.kill(worker.actor)

    def close(self) -> None:
        """End all workers; the connection stays."""
        for worker in self.workers:
            self._end(worker)

    def __enter__(self) -> RayPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
