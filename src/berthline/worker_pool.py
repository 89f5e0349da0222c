"""Worker pool: long-lived processes that get a setup, then answer messages one by one.

A worker is a separate program, not a fork: this process may have threads and use much memory. It
reads messages from its standard input and writes answers to its standard output, each a pickle
preceded by its length. It ends when its input ends.

    to the worker     the setup once; then message after message
    from the worker   Ready once; any number of answers to a message, then Done

The module that does the work defines `main`, which calls `serve`. It should import little: every
worker pays for its imports.

A worker that ends by itself (killed for its memory, say) is replaced. The caller decides with
`Attempts` whether to send its message again.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
import time
import traceback
from typing import IO, TYPE_CHECKING, Any

from berthline import errors
from berthline.errors import BerthlineError, SimulationError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

_LENGTH = struct.Struct("<Q")

START_SECONDS = 60.0
"""A worker may take this long to start, whatever its timeout."""

MOST_ATTEMPTS = 3
"""A piece of work whose workers end so often is given up."""


class Done:
    """Follows the last answer to a message."""


class Ready:
    """Says that a worker has started and has its setup: it comes before its first answer."""


class _Ended:
    """Stands for the end of a worker's output."""


@dataclasses.dataclass(frozen=True)
class ErrorText:
    """An error as text, because not every error can be pickled.

    Attributes:
        kind: its class.
        what: what is wrong; for an unexpected error, its traceback.
        where: as in BerthlineError.
        expected: as in BerthlineError.
        hint: as in BerthlineError.
    """

    kind: str
    what: str
    where: str = ""
    expected: str = ""
    hint: str = ""

    @classmethod
    def of(cls, error: Exception) -> ErrorText:
        """Return the text of an error that is being handled."""
        name = type(error).__name__
        if isinstance(error, BerthlineError):
            return cls(name, error.what, error.where, error.expected, error.hint)
        return cls(name, traceback.format_exc())

    def error(self) -> Exception:
        """Return the error, as if it had happened in this process."""
        kind = getattr(errors, self.kind, None)
        if isinstance(kind, type) and issubclass(kind, BerthlineError):
            error = kind.__new__(kind)
            BerthlineError.__init__(
                error, self.what, where=self.where, expected=self.expected, hint=self.hint
            )
            return error
        unexpected = RuntimeError(f"{self.kind} in a worker process")
        unexpected.add_note(self.what)
        return unexpected


def usable_cores() -> int:
    """Return how many cores this process may use."""
    with contextlib.suppress(AttributeError):  # not available on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Attempts:
    """Counts how often a piece of work was lost with its worker.

    Args:
        most: a piece of work that was lost so often is given up.
    """

    def __init__(self, most: int = MOST_ATTEMPTS) -> None:
        self._most = most
        self._lost: collections.Counter[Hashable] = collections.Counter()

    def lost(self, work: Hashable, how: str, *, name: str) -> SimulationError | None:
        """Note that a worker ended; return the error once it has happened too often.

        Args:
            work: what the worker was doing.
            how: how it ended.
            name: what it was doing, in words.
        """
        self._lost[work] += 1
        if self._lost[work] < self._most:
            return None
        return SimulationError(
            f"a worker process ended {self._most} times before its work was done ({how})",
            where=name,
            expected="workers that run until they are told to stop",
            hint="check the free memory; fewer workers need less: `workers=1`",
        )


class Worker:
    """A process, and a thread that puts its answers into the queue of the pool.

    Attributes:
        process: the process.
        is_busy: whether its answer to the last message is incomplete.
        has_ended: whether it is known to have ended.
        is_ready: whether it has its setup.
        is_late: whether it was ended because it sent nothing for too long.
        heard: when it last sent something, or was sent something; on the monotonic clock.
    """

    def __init__(
        self, module: str, setup: Any, answers: queue.SimpleQueue[tuple[Worker, Any]]
    ) -> None:
        # In its own session it does not receive Ctrl-C: the parent process decides.
        self.process = subprocess.Popen(
            worker_command(module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.is_busy = self.has_ended = self.is_ready = self.is_late = False
        self.heard = time.monotonic()
        self._answers = answers
        self._setup: list[Any] = [setup]
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            while True:
                self._answers.put((self, _receive(self.process.stdout)))
        except (EOFError, OSError, ValueError):
            self._answers.put((self, _Ended()))

    def send(self, message: Any) -> None:
        """Send a message; only to an idle worker, so that neither side waits for the other."""
        assert self.process.stdin is not None
        self.is_busy = True
        self.heard = time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # it has ended, which its thread reports
            while self._setup:
                _send(self.process.stdin, self._setup.pop())
            _send(self.process.stdin, message)

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class WorkerPool:
    """Several workers.

    Args:
        module: the module whose `main` the workers run.
        setup: the first message to every worker.
        count: how many workers.
        timeout: a busy worker that sends nothing for this many seconds is ended; None = never.

    Attributes:
        workers: the workers.
    """

    def __init__(
        self, module: str, setup: Any, count: int, *, timeout: float | None = None
    ) -> None:
        self._module, self._setup, self._timeout = module, setup, timeout
        self._answers: queue.SimpleQueue[tuple[Worker, Any]] = queue.SimpleQueue()
        self.workers: list[Worker] = []
        try:
            for _ in range(count):
                self.workers.append(Worker(module, setup, self._answers))
        except BaseException:
            self.close()
            raise

    def answers(
        self,
        next_message: Callable[[Worker], Any | None],
        lost: Callable[[Worker, str], None],
    ) -> Iterator[tuple[Worker, Any]]:
        """Keep all workers busy, and yield their answers in the order in which they arrive.

        Args:
            next_message: returns what an idle worker should do next; None = nothing.
            lost: called with a worker that ended before its work was done, and how; another one
                has taken its place. What it had to do is lost unless `next_message` returns it.
        """
        for worker in list(self.workers):
            self._give(worker, next_message)
        while any(worker.is_busy for worker in self.workers):
            worker, answer = self._next_answer()
            worker.heard = time.monotonic()
            if isinstance(answer, _Ended):
                worker.has_ended = True
                if worker.is_busy:
                    new = self._replace(worker)
                    how = f"no answer for {self._timeout:g} s" if worker.is_late else ""
                    lost(worker, how or _how(worker.process.returncode))
                    for idle in [new, *(one for one in self.workers if not one.is_busy)]:
                        if not idle.is_busy:
                            self._give(idle, next_message)
            elif isinstance(answer, Ready):
                worker.is_ready = True
            elif isinstance(answer, Done):
                worker.is_busy = False
                self._give(worker, next_message)
            else:
                yield worker, answer

    def names(self) -> list[tuple[Worker, str, str]]:
        """Return each worker with its name and its node."""
        return [(one, f"process {one.process.pid}", "") for one in self.workers]

    def _next_answer(self) -> tuple[Worker, Any]:
        """Wait for the next answer, and end workers that are late."""
        while self._timeout is not None:
            with contextlib.suppress(queue.Empty):
                return self._answers.get(timeout=min(self._timeout / 4, 1.0))
            for worker in self.workers:
                limit = self._timeout if worker.is_ready else max(self._timeout, START_SECONDS)
                if worker.is_busy and time.monotonic() - worker.heard > limit:
                    worker.is_late = True
                    worker.process.kill()
        return self._answers.get()

    def _give(self, worker: Worker, next_message: Callable[[Worker], Any | None]) -> None:
        if worker.has_ended:
            worker = self._replace(worker)
        message = next_message(worker)
        if message is not None:
            worker.send(message)

    def _replace(self, worker: Worker) -> Worker:
        """Start a worker in the place of one that has ended."""
        worker.process.wait()
        worker.stop()
        worker.is_busy = False
        new = Worker(self._module, self._setup, self._answers)
        self.workers[self.workers.index(worker)] = new
        return new

    def close(self) -> None:
        """End all processes."""
        for worker in self.workers:
            worker.stop()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(start: Callable[[Any], Callable[[Any], Iterable[Any]]]) -> None:
    """Run as a worker: answer messages until the input ends.

    Args:
        start: gets the setup, and returns the function that yields the answers to a message.
    """
    # Output of libraries must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    messages = sys.stdin.buffer
    try:
        answer = start(_receive(messages))
        _send(answers, Ready())
        while True:
            for one in answer(_receive(messages)):
                _send(answers, one)
            _send(answers, Done())
    except (EOFError, BrokenPipeError):
        os._exit(0)  # the parent has ended: there is nothing to clean up


def worker_command(module: str) -> list[str]:
    """Return the command that starts a worker, with the import path of this process."""
    code = (
        "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
        f"from {module} import main; main()"
    )
    return [sys.executable, "-P", "-c", code, json.dumps(sys.path)]


def _send(stream: IO[bytes], message: Any) -> None:
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return pickle.loads(content)


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
