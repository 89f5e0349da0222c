"""Processes, identified by their id and their start time: Linux uses ids again, but not both."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import NamedTuple

_WHOLE_GROUP = 1 << 2
"""PIDFD_SIGNAL_PROCESS_GROUP of Linux 6.9 and later: no other group can get the signal."""


class ProcessKey(NamedTuple):
    """What identifies a process: on one boot, its id and when it started.

    Attributes:
        pid: its id.
        start: field 22 of `/proc/PID/stat`, in clock ticks since boot.
        boot: the id of the boot.
    """

    pid: int
    start: int
    boot: str


def boot_id() -> str:
    """Return the id of this boot; empty if the kernel does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def key_of(pid: int) -> ProcessKey | None:
    """Return what identifies a process that lives or has ended unseen; None = there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name of the program is in brackets, and may hold brackets and blanks itself.
    fields = text.rpartition(b")")[2].split()
    return ProcessKey(pid, int(fields[19]), boot_id())


def open_process(key: ProcessKey) -> int | None:
    """Return a pidfd of exactly this process; None = it is gone."""
    try:
        descriptor = os.pidfd_open(key.pid)
    except OSError:
        return None
    # Checked after opening: from now on the descriptor cannot come to mean another process.
    if key_of(key.pid) != key:
        os.close(descriptor)
        return None
    return descriptor


def open_living(key: ProcessKey) -> int | None:
    """Return a pidfd of exactly this process; None = it is gone, or has ended and is not reaped."""
    if (descriptor := open_process(key)) is None:
        return None
    try:
        state = Path(f"/proc/{key.pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        state = b"X"
    if state in (b"Z", b"X"):
        os.close(descriptor)
        return None
    return descriptor


def is_alive(key: ProcessKey) -> bool:
    """Whether exactly this process is there and has not ended."""
    if (descriptor := open_living(key)) is None:
        return False
    os.close(descriptor)
    return True


def signal_group(leader: ProcessKey, number: int) -> bool:
    """Send a signal to the process group that a process leads; return whether it was sent."""
    if (descriptor := open_process(leader)) is None:
        return False
    try:
        with contextlib.suppress(ProcessLookupError):
            try:
                signal.pidfd_send_signal(descriptor, number, None, _WHOLE_GROUP)
            except OSError as error:
                if isinstance(error, ProcessLookupError):
                    raise
                # An older kernel. The leader was there an instant ago, and until it is reaped its
                # id names no other group.
                os.killpg(leader.pid, number)
            return True
        return False
    finally:
        os.close(descriptor)
