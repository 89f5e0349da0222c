"""A simulated cluster as a process of its own, so that a controller can be killed beside it.

It answers one line of JSON with one line of JSON on a Unix socket. Its clock follows the machine's,
`speed` times as fast; with speed 0 it moves only when a client waits.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import socketserver
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.atomic_write import write_atomically
from berthline.deploy.systems.contract import Action
from berthline.deploy.systems.simulated.simulated_adapter import abilities_of
from berthline.errors import BerthlineError

if TYPE_CHECKING:
    from berthline.deploy.systems.simulated.simulated_cluster import SimulatedCluster

ADDRESS = "simulated.json"
"""In the directory of the journal: the socket and the process id of the cluster."""
IDLE_SECONDS = 120.0
"""A cluster that no client asks anything ends after this time."""


class ServerRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A line that a client sends."""

    call: str
    actions: list[Action] = []
    seconds: float = 0.0


class ClusterServer:
    """A cluster with a clock.

    Args:
        cluster: the cluster.
        speed: seconds of its clock in a second of the machine's; 0 = only when a client waits.
    """

    def __init__(self, cluster: SimulatedCluster, speed: float) -> None:
        self.cluster, self.speed = cluster, speed
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self.asked = time.monotonic()
        self.ends = threading.Event()

    def answer(self, line: bytes) -> bytes:
        """Answer one line."""
        self.asked = time.monotonic()
        try:
            request = msgspec.json.decode(line, type=ServerRequest)
        except msgspec.MsgspecError as error:
            return msgspec.json.encode({"error": str(error)})
        with self._lock:
            if self.speed:
                passed = (time.monotonic() - self._began) * self.speed
                self.cluster.advance(max(passed, self.cluster.now))
            return msgspec.json.encode(self._answer(request))

    def _answer(self, request: ServerRequest) -> Any:
        cluster = self.cluster
        if request.call == "look":
            return cluster.look()
        if request.call == "do":
            return cluster.do(request.actions)
        if request.call == "beat":
            cluster.holds_until = cluster.now + request.seconds * (self.speed or 1.0)
        elif request.call == "leave":
            cluster.holds_until = -math.inf
        elif request.call == "wait":
            cluster.advance(cluster.now + request.seconds)
        elif request.call == "lift":
            lifted, left = cluster.lift()
            return {"lifted": lifted, "left": left}
        elif request.call == "stop":
            self.ends.set()
        return {
            "now": cluster.now,
            "held": cluster.num_held,
            "over": cluster.is_over,
            "abilities": abilities_of(cluster),
            "name": cluster.cluster.name,
        }


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            for line in self.rfile:
                self.wfile.write(self.server.of.answer(line) + b"\n")


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    of: ClusterServer


def serve(cluster: SimulatedCluster, speed: float, journal: Path) -> None:
    """Serve a cluster until a client stops it, or no client asks for a while."""
    room = tempfile.mkdtemp(prefix="berthline-")  # paths of sockets must be short
    path = f"{room}/cluster"
    served = ClusterServer(cluster, speed)
    try:
        with _Server(path, _Handler) as server:
            server.of = served
            threading.Thread(target=server.serve_forever, daemon=True).start()
            facts = {"socket": path, "pid": os.getpid()}
            write_atomically(journal / ADDRESS, json.dumps(facts).encode())
            while not served.ends.wait(1.0):
                if time.monotonic() - served.asked > IDLE_SECONDS or not journal.exists():
                    break
            server.shutdown()
    finally:
        shutil.rmtree(room, ignore_errors=True)
        with contextlib.suppress(OSError):
            (journal / ADDRESS).unlink()


def main(argv: list[str]) -> int:
    """Serve the cluster that a file of options describes."""
    from berthline.deploy.systems.simulated.connect_simulated import (
        SimulatedOptions,
        cluster_of,
    )

    options = msgspec.json.decode(Path(argv[0]).read_bytes(), type=SimulatedOptions)
    try:
        serve(cluster_of(options), options.speed, Path(argv[0]).parent)
    except BerthlineError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
