"""Calls to the runner of a node, with the standard library alone.

The adapter and the guard of a controller use them. A runner that is not there is started: it goes
on where the last one ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SOCKET, ERRORS = "runner.socket", "runner-errors.txt"
_BEGIN_SECONDS = 60.0


def call(directory: str | Path, request: dict[str, Any], *, timeout: float = 30.0) -> Any:
    """Send a request to the runner in a directory and return its answer.

    Raises:
        OSError: there is no answer, or only a part of one.
    """
    with (
        _short_name(directory) as name,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel,
    ):
        channel.settimeout(timeout)
        channel.connect(name)
        channel.sendall(json.dumps(request).encode() + b"\n")
        answer = bytearray()
        while not answer.endswith(b"\n"):
            part = channel.recv(1 << 20)
            if not part:
                raise OSError("the answer is cut off")
            answer += part
    return json.loads(answer)


@contextlib.contextmanager
def _short_name(directory: str | Path) -> Any:
    """Yield a name of the socket that is short enough, however long that of the directory is."""
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)


def call_or_begin(directory: str | Path, request: dict[str, Any], *, timeout: float = 30.0) -> Any:
    """Send a request, after starting the runner if there is none.

    Raises:
        OSError: there is no answer.
    """
    try:
        return call(directory, request, timeout=timeout)
    except (FileNotFoundError, ConnectionError):
        pass
    begin(directory)
    return call(directory, request, timeout=timeout)


def begin(directory: str | Path) -> None:
    """Start the runner of a directory, unless there is one, and wait until it answers.

    Raises:
        OSError: it does not start.
    """
    module = "berthline.deploy.systems.node.runner.runner_server"
    path = Path(directory)
    with (path / ERRORS).open("ab") as errors:
        started = subprocess.run(
            [sys.executable, "-m", module, str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            check=False,
            timeout=_BEGIN_SECONDS,
            start_new_session=True,
        )
    if started.returncode:
        words = (path / ERRORS).read_text("utf-8", "replace").strip().splitlines()[-1:]
        raise OSError("the runner does not start" + "".join(f": {line}" for line in words))
    until = time.monotonic() + _BEGIN_SECONDS
    while True:
        # Another one may have been started an instant before, and not listen yet.
        try:
            call(path, {"call": "status"})
        except (FileNotFoundError, ConnectionError):
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return


def lift(arguments: dict[str, Any]) -> tuple[int, int]:
    """Lift every hold of ours; return how many were lifted and how many are left.

    Args:
        arguments: `directory`: where the runner is.
    """
    answer = call_or_begin(str(arguments["directory"]), {"call": "lift"})
    return int(answer["lifted"]), int(answer["left"])
