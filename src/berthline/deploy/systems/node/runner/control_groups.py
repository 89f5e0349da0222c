"""Control groups: memory limits, freezing and killing of jobs, by version 2, version 1 or neither.

Both versions may be mounted at once, each with some of the controllers. Memory and freezing are
therefore looked for one by one, version 2 first. What is missing is a normal state with a weaker
replacement, and `words` says which: a limit of the address space, SIGSTOP, the process group.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

CHOICES = ("auto", "v2", "v1", "none")
_PATIENCE = 2.0


class ControlGroups(NamedTuple):
    """Where the groups of jobs are made.

    Attributes:
        memory: the directory for groups with a memory limit; None = there is none.
        memory_version: 1 or 2.
        freezer: the directory for groups that can be frozen; None = there is none.
        freezer_version: 1 or 2.
    """

    memory: str | None = None
    memory_version: int = 0
    freezer: str | None = None
    freezer_version: int = 0

    @property
    def words(self) -> str:
        """What there is, in a line."""
        limit = (
            f"memory limits by cgroup v{self.memory_version}"
            if self.memory
            else "memory limits by RLIMIT_AS (no cgroup for memory)"
        )
        freeze = (
            f"freezing by cgroup v{self.freezer_version}"
            if self.freezer
            else "freezing by SIGSTOP (no cgroup to freeze)"
        )
        return f"{limit}, {freeze}"

    def remove(self) -> None:
        """Remove the directories, if no job has a group in them any more."""
        for place in {self.memory, self.freezer} - {None}:
            with contextlib.suppress(OSError):
                Path(str(place)).rmdir()


def find_control_groups(name: str, choice: str = "auto") -> ControlGroups:
    """Return where groups can be made, after making and trying a directory there.

    Args:
        name: of the directory of all groups of this runner.
        choice: which version may be used: one of CHOICES.
    """
    found = ControlGroups()
    if choice == "none":
        return found
    mounts = _mounts()
    for version in (2, 1):
        if choice not in ("auto", f"v{version}"):
            continue
        if found.memory is None:
            file = "memory.max" if version == 2 else "memory.limit_in_bytes"
            if place := _usable(mounts, version, "memory", name, file):
                found = found._replace(memory=place, memory_version=version)
        if found.freezer is None:
            file = "cgroup.freeze" if version == 2 else "freezer.state"
            if place := _usable(mounts, version, "freezer", name, file):
                found = found._replace(freezer=place, freezer_version=version)
    return found


def _mounts() -> dict[str, tuple[str, str]]:
    """Return for each controller (version 2: an empty name) its mount and our group in it."""
    try:
        own = Path("/proc/self/cgroup").read_text("utf-8")
        mounted = Path("/proc/self/mounts").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    paths = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    found = {}
    for line in mounted.splitlines():
        _, place, kind, options, *_ = line.split(" ")
        if kind == "cgroup2" and "" in paths:
            found[""] = (place, paths[""])
        elif kind == "cgroup":
            for controller in options.split(","):
                if controller in paths and controller:
                    found[controller] = (place, paths[controller])
    return found


def _usable(
    mounts: dict[str, tuple[str, str]], version: int, controller: str, name: str, file: str
) -> str | None:
    mount, own = mounts.get("" if version == 2 else controller, ("", ""))
    if not mount:
        return None
    place = Path(mount + own.rstrip("/")) / name
    trial = place / "trial"
    try:
        place.mkdir(exist_ok=True)
        if version == 2 and controller == "memory":
            # A group gives its children a controller only if it has one itself and no process.
            (place / "cgroup.subtree_control").write_text("+memory")
        trial.mkdir(exist_ok=True)
        is_there = os.access(trial / file, os.W_OK)
        trial.rmdir()
    except OSError:
        is_there = False
    if not is_there:
        with contextlib.suppress(OSError):
            place.rmdir()
    return str(place) if is_there else None


class JobGroup:
    """The control groups of one run of a job.

    Args:
        groups: where groups are made.
        name: of the run.
    """

    def __init__(self, groups: ControlGroups, name: str) -> None:
        self.groups = groups
        self._memory = Path(groups.memory) / name if groups.memory else None
        self._freezer = Path(groups.freezer) / name if groups.freezer else None

    @property
    def directories(self) -> list[Path]:
        """The directories of the run, each once."""
        return list(dict.fromkeys(path for path in (self._memory, self._freezer) if path))

    def make(self, memory_mib: int) -> None:
        """Make the groups and set the limit; 0 = no limit.

        Raises:
            OSError: a group cannot be made.
        """
        for path in self.directories:
            path.mkdir(exist_ok=True)
        if self._memory and memory_mib:
            limit = str(memory_mib << 20)
            if self.groups.memory_version == 2:
                (self._memory / "memory.max").write_text(limit)
                with contextlib.suppress(OSError):
                    (self._memory / "memory.swap.max").write_text("0")
            else:
                (self._memory / "memory.limit_in_bytes").write_text(limit)

    def join(self) -> None:
        """Put this process into the groups."""
        for path in self.directories:
            (path / "cgroup.procs").write_text("0")

    def freeze(self, *, frozen: bool) -> bool:
        """Freeze or thaw all processes; False = there is no group that can be frozen."""
        if self._freezer is None:
            return False
        try:
            if self.groups.freezer_version == 2:
                (self._freezer / "cgroup.freeze").write_text("1" if frozen else "0")
            else:
                (self._freezer / "freezer.state").write_text("FROZEN" if frozen else "THAWED")
        except OSError:
            return False
        return True

    def out_of_memory(self) -> int:
        """Return how many of the processes the kernel killed because of the limit."""
        if self._memory is None:
            return 0
        name = "memory.events" if self.groups.memory_version == 2 else "memory.oom_control"
        with contextlib.suppress(OSError, ValueError):
            for line in (self._memory / name).read_text().splitlines():
                word, _, count = line.partition(" ")
                if word == "oom_kill":
                    return int(count)
        return 0

    def kill(self) -> None:
        """Kill every process in the groups."""
        self.freeze(frozen=False)
        for path in self.directories:
            if (path / "cgroup.kill").exists():
                with contextlib.suppress(OSError):
                    (path / "cgroup.kill").write_text("1")
            until = time.monotonic() + _PATIENCE
            while (left := _members(path)) and time.monotonic() < until:
                for pid in left:
                    _kill_member(path, pid)
                time.sleep(0.005)

    def remove(self) -> None:
        """Remove the groups; those with processes that cannot be killed are left."""
        until = time.monotonic() + _PATIENCE
        for path in self.directories:
            while True:
                try:
                    path.rmdir()
                except OSError as error:
                    if error.errno == errno.EBUSY and time.monotonic() < until:
                        time.sleep(0.005)
                        continue
                break


def _members(path: Path) -> list[int]:
    try:
        return [int(line) for line in (path / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _kill_member(path: Path, pid: int) -> None:
    """Kill a process if it is still in the group when it can no longer be mixed up."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if pid in _members(path):
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    finally:
        os.close(descriptor)
