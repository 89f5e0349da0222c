"""SignsOfLife: the controller's heartbeat, and its watch over the guard."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from berthline.atomic_write import write_atomically
from berthline.deploy.control.guard import (
    ENDED,
    GUARD_HEARTBEAT,
    HEARTBEAT,
    LIMIT,
    ORDERS,
    SIGNS,
    read_sign,
    write_sign,
)
from berthline.errors import BerthlineError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from berthline.deploy.control.deploy_settings import GuardSettings
    from berthline.deploy.systems.contract import GuardOrders

_GRACE = 20.0
"""Seconds that a new guard may take to start."""


class SignsOfLife:
    """A thread that gives signs of life, and keeps a guard alive.

    Args:
        directory: of the journal.
        settings: of the guard.
        orders: how a guard lifts our holds; None = there is nothing to guard.
        beat: tells the system itself; None = there is no need.
    """

    def __init__(
        self,
        directory: Path,
        settings: GuardSettings,
        orders: GuardOrders | None,
        beat: Callable[[], None] | None,
    ) -> None:
        self._directory, self._settings = directory, settings
        self._orders, self._beat = orders, beat
        self._ends = threading.Event()
        self._progress = time.monotonic()
        self._guard: subprocess.Popen[bytes] | None = None
        self._guard_began = 0.0
        self.guards_started = 0
        self._thread = threading.Thread(target=self._run, name="signs of life", daemon=True)

    def begin(self) -> None:
        """Give the first sign, start the guard, and continue both."""
        write_sign(self._directory / HEARTBEAT)
        self._keep_guard()
        self._thread.start()

    def progress(self) -> None:
        """The controller has made a step; without any, the signs end."""
        self._progress = time.monotonic()

    @property
    def age(self) -> float:
        """Seconds since the last sign."""
        return read_sign(self._directory / HEARTBEAT)[0]

    def end(self) -> None:
        """Say that everything was given back; the guard ends."""
        self._ends.set()
        self._thread.join(10.0)
        write_sign(self._directory / HEARTBEAT, ENDED)
        if self._guard is not None:
            try:
                self._guard.wait(LIMIT * self._settings.heartbeat + 5.0)
            except subprocess.TimeoutExpired:
                self._guard.kill()
                self._guard.wait()

    def _run(self) -> None:
        while not self._ends.wait(SIGNS * self._settings.heartbeat):
            if time.monotonic() - self._progress > self._settings.stall:
                continue  # the cycle hangs: the guard shall lift our holds
            try:
                write_sign(self._directory / HEARTBEAT)
                self._keep_guard()
                if self._beat is not None:
                    self._beat()
            except (OSError, BerthlineError):
                continue  # the next sign is soon

    def _keep_guard(self) -> None:
        """Start a guard if there is none, or if it gives no signs of life."""
        if self._orders is None:
            return
        now = time.monotonic()
        if self._guard is not None and self._guard.poll() is None:
            age = read_sign(self._directory / GUARD_HEARTBEAT)[0]
            grace = _GRACE if age > now - self._guard_began else LIMIT * self._settings.heartbeat
            if age <= grace or now - self._guard_began <= grace:
                return
        token = secrets.token_hex(8)
        facts = {
            "token": token,
            "module": self._orders.module,
            "arguments": dict(self._orders.arguments),
            "heartbeat": self._settings.heartbeat,
        }
        write_atomically(self._directory / ORDERS, json.dumps(facts).encode())
        self._guard = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "berthline.deploy.control.guard",
                str(self._directory.resolve()),
                token,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._guard_began = now
        self.guards_started += 1
