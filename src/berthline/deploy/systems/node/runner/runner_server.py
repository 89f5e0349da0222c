"""The process of the runner: answers requests on a Unix socket, and waits for jobs.

`python -m berthline.deploy.systems.node.runner.runner_server DIRECTORY`. It has one thread, because
it forks. One runner for a directory: a second one ends at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

from berthline.deploy.systems.node.lift_node import SOCKET
from berthline.deploy.systems.node.runner.runner import Runner
from berthline.deploy.systems.node.runner.telemetry import fork_sampler

LOCK = "runner.lock"
_LONGEST_REQUEST = 1 << 24
_ANSWER_SECONDS = 2.0
_LINGER = 60.0
"""A runner whose jobs are all over ends when no request came for so long."""
_LONGEST_SLEEP = 30.0
_CREDENTIALS = struct.Struct("3i")


class RunnerServer:
    """The loop of a runner.

    Args:
        runner: the runner.
        linger: seconds.
    """

    def __init__(self, runner: Runner, linger: float = _LINGER) -> None:
        self.runner, self._linger = runner, linger
        self._selector = selectors.DefaultSelector()
        self._listener = _listen(runner.directory)
        self._selector.register(self._listener, selectors.EVENT_READ, ("connect", ""))
        self._watched: dict[str, int] = {}
        self._asked = time.monotonic()
        self._stopped = False

    def serve(self) -> None:
        """Run until it is told to stop, or all jobs are over and no request comes."""
        while not self._stopped:
            self.runner.advance()
            self._watch_jobs()
            if self.runner.is_idle and time.monotonic() - self._asked > self._linger:
                break
            sleep = min(self.runner.next_time(), _LONGEST_SLEEP)
            if self.runner.is_idle:
                sleep = min(sleep, self._linger)
            for key, _ in self._selector.select(sleep):
                what, number = key.data
                if what == "connect":
                    self._answer_one()
                elif number in self._watched:
                    self._selector.unregister(self._watched.pop(number))
                    self.runner.ended(number)
        self._listener.close()
        self._selector.close()
        self.runner.close()

    def _watch_jobs(self) -> None:
        for number, descriptor in self.runner.waits.items():
            if self._watched.get(number) != descriptor:
                self._selector.register(descriptor, selectors.EVENT_READ, ("ended", number))
                self._watched[number] = descriptor

    def _answer_one(self) -> None:
        with contextlib.suppress(OSError):
            channel, _ = self._listener.accept()
            with channel:
                credentials = channel.getsockopt(
                    socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
                )
                if _CREDENTIALS.unpack(credentials)[1] not in (os.getuid(), 0):
                    return
                self._asked = time.monotonic()
                channel.settimeout(_ANSWER_SECONDS)
                request = _read_line(channel)
                channel.sendall(json.dumps(self._answer(request)).encode() + b"\n")

    def _answer(self, request: bytes) -> dict[str, Any]:
        try:
            return self._do(json.loads(request))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return {"error": f"not a request: {type(error).__name__} {error}"}

    def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        runner, what = self.runner, request["call"]
        runner.advance()
        if what == "look":
            return {"time": time.time(), "jobs": runner.look(), "over": runner.is_over}
        if what == "do":
            outcomes = [runner.act(action) for action in request["actions"]]
            return {"outcomes": outcomes}
        if what == "beat":
            runner.beat(float(request["seconds"]))
            return {}
        if what == "leave":
            runner.controlled_until = None
            return {}
        if what == "lift":
            lifted, left = runner.lift()
            return {"lifted": lifted, "left": left}
        if what == "stop":
            self._stopped = True
            return {}
        if what == "close":
            self._stopped = runner.is_over
            return {}
        if what == "status":
            return {"pid": os.getpid(), "over": runner.is_over, "jobs": len(runner.jobs)}
        raise ValueError(what)


def _read_line(channel: socket.socket) -> bytes:
    request = bytearray()
    while not request.endswith(b"\n") and len(request) < _LONGEST_REQUEST:
        part = channel.recv(1 << 16)
        if not part:
            break
        request += part
    return bytes(request)


def _listen(directory: Path) -> socket.socket:
    path = directory / SOCKET
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{descriptor}/{SOCKET}")
    finally:
        os.close(descriptor)
    path.chmod(0o600)
    listener.listen(64)
    return listener


def main(directory: Path) -> int:
    """Start the runner of a directory, and return when it answers, or 1 if it does not start."""
    lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 0  # there is one
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        return 0 if os.read(reading, 1) else 1
    # From here on in a process that no process waits for, and that has no terminal.
    os.close(reading)
    os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    runner = Runner(directory)
    server = RunnerServer(runner, float(runner.settings.get("linger", _LINGER)))
    fork_sampler(runner.settings["telemetry"], directory)
    os.write(writing, b"1")
    os.close(writing)
    server.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
