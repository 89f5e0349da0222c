"""Engine: where the tasks of a plan run. The results do not depend on it.

    this process   one worker that is called directly
    local          worker processes on this machine (worker_pool.py)
    ray            actors on the nodes of a Ray cluster (ray_pool.py)

A task is a message: plain data, sent to an idle worker, answered piece by piece. The module that
does the work defines `answers_of(setup)`, which returns the function from a message to its answers,
and `main`, which serves it as a program. Engines know neither tasks nor answers.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import TYPE_CHECKING, Any, Protocol

from berthline.errors import ConfigError, unknown_name
from berthline.size_limits import check_sizes
from berthline.worker_pool import WorkerPool, usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

LOCAL, RAY = "local", "ray"
ENGINES = {
    LOCAL: "worker processes on this machine, or this process",
    RAY: "the nodes of a Ray cluster; needs the extra `ray`",
}
"""The names of engines, and what they are."""


class Pool(Protocol):
    """Workers of an engine. A worker is anything that can be a key of a dictionary."""

    def answers(
        self,
        next_message: Callable[[Any], Any | None],
        lost: Callable[[Any, str], None],
    ) -> Iterator[tuple[Any, Any]]:
        """Keep all workers busy, and yield (worker, answer) as answers arrive.

        Args:
            next_message: returns what an idle worker should do next; None = nothing.
            lost: called with a worker that ended before its work was done, and how; another one
                takes its place. What it had to do is lost unless `next_message` returns it.
        """

    def names(self) -> list[tuple[Any, str, str]]:
        """Return each worker with its name and its node."""

    def close(self) -> None:
        """End all workers."""

    def __enter__(self) -> Pool:
        """Return the pool itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """End all workers."""


@dataclasses.dataclass(frozen=True)
class Engine:
    """An engine and its settings.

    Attributes:
        name: a key of ENGINES.
        address: of a Ray cluster, such as `127.0.0.1:6379`; None = that of RAY_ADDRESS.
        timeout: a worker that sends no answer for this many seconds is ended and replaced; None =
            never. A worker that is this process cannot be ended.
    """

    name: str = LOCAL
    address: str | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            what, expected, hint = unknown_name("engine", self.name, ENGINES)
            raise ConfigError(what, expected=expected, hint=hint)
        if self.address is not None and self.name != RAY:
            raise ConfigError(
                f"`address` given for the engine {self.name}",
                where=self.address,
                expected=f"the engine {RAY}",
            )
        if self.timeout is not None and not self.timeout > 0:
            raise ConfigError(f"`timeout` is {self.timeout}", expected="more than 0 seconds")

    def connect(self) -> None:
        """Connect to the cluster of the engine, if it has one.

        Raises:
            MissingExtraError: Ray is not installed.
            ClusterError: nothing listens at the address.
        """
        if self.name == RAY:
            from berthline.engines.ray_pool import connect

            connect(self.address)

    def count(self, workers: int | None, *, most: int | None = None) -> int:
        """Return the number of workers to use.

        Args:
            workers: as asked; None = one for each core of this machine or of the cluster.
            most: no more than this number are of use.
        """
        check_sizes(workers=workers)
        if workers is None:
            if self.name == RAY:
                from berthline.engines.ray_pool import cluster_cores

                self.connect()
                workers = cluster_cores()
            else:
                workers = usable_cores()
        return max(1, workers if most is None else min(workers, most))

    def pool(self, module: str, setup: Any, count: int, *, apart: bool = False) -> Pool:
        """Return workers.

        Args:
            module: the module whose `answers_of` does the work.
            setup: what every worker gets first.
            count: how many workers; 1 = this process, except on Ray or with a timeout.
            apart: whether a single one is a process of its own too.

        Raises:
            MissingExtraError: Ray is not installed.
            ClusterError: nothing listens at the address.
        """
        if self.name == RAY:
            from berthline.engines.ray_pool import RayPool

            self.connect()
            return RayPool(module, setup, count, timeout=self.timeout)
        if count == 1 and self.timeout is None and not apart:
            return ThisProcess(module, setup)
        return WorkerPool(module, setup, count, timeout=self.timeout)


class ThisProcess:
    """A pool whose only worker is this process.

    Args:
        module: the module whose `answers_of` does the work.
        setup: what `answers_of` gets.
    """

    def __init__(self, module: str, setup: Any) -> None:
        self._answer = importlib.import_module(module).answers_of(setup)

    def answers(
        self,
        next_message: Callable[[Any], Any | None],
        lost: Callable[[Any, str], None],  # noqa: ARG002 - this process is never lost
    ) -> Iterator[tuple[Any, Any]]:
        """Yield (worker, answer) until there is no message left; see `Pool`."""
        while (message := next_message(self)) is not None:
            for one in self._answer(message):
                yield self, one

    def names(self) -> list[tuple[Any, str, str]]:
        """Return the worker with its name and its node."""
        return [(self, "this process", "")]

    def close(self) -> None:
        """Nothing is to be ended."""

    def __enter__(self) -> ThisProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
