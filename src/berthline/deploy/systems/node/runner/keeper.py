"""The keeper: a small process beside each job, which starts it, waits for it, and writes its end.

It is forked by the runner, and outlives it: whatever happens to the runner and the controller, the
exit code is on disk. It starts nothing before it is told to go: the runner first writes down which
process the keeper is. If the runner dies in between, the keeper ends and the job has not begun.

Files of run K of a job, beside its output: `run-K.began.json` with the process of the job, and
`run-K.ended.json` with its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from berthline.deploy.systems.node.runner.control_groups import ControlGroups, JobGroup
from berthline.deploy.systems.node.runner.processes import ProcessKey, key_of

_LAST_DESCRIPTOR = 65536


class RunOrders(NamedTuple):
    """What a keeper has to start.

    Attributes:
        arguments: the program and its arguments.
        directory: of the job; its files are here.
        run: the number of the run, from 0.
        working_directory: where the program starts.
        environment: its whole environment.
        memory_mib: its memory limit; 0 = none.
        groups: where control groups are made.
        group: the name of its group.
    """

    arguments: list[str]
    directory: str
    run: int
    working_directory: str
    environment: dict[str, str]
    memory_mib: int
    groups: ControlGroups
    group: str

    def file(self, ending: str) -> Path:
        """Return a file of the run."""
        return file_of_run(self.directory, self.run, ending)


def file_of_run(directory: str | Path, run: int, ending: str) -> Path:
    """Return a file of a run of a job."""
    return Path(directory) / f"run-{run}.{ending}"


def write_whole(path: Path, facts: dict[str, Any]) -> None:
    """Write a JSON file that is there whole or not at all, also after a power failure."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with partial.open("w", encoding="utf-8") as file:
        json.dump(facts, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def fork_keeper(orders: RunOrders) -> tuple[int, int]:
    """Fork the keeper of a run.

    Returns:
        Its process id, and a descriptor: a byte written there lets it go, closing it ends it.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(reading)
        return pid, writing
    code = 1
    try:
        # Nothing of the runner stays open here: above all not its socket and its lock.
        os.dup2(reading, 3)
        os.closerange(4, _LAST_DESCRIPTOR)
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if os.read(3, 1):
            os.close(3)
            _keep(orders)
        code = 0
    finally:
        os._exit(code)


def _keep(orders: RunOrders) -> None:
    group = JobGroup(orders.groups, orders.group)
    ended: dict[str, Any] = {"code": None, "signal": None, "error": "", "out_of_memory": 0}
    try:
        group.make(orders.memory_mib)
        leader = _start(orders, group)
    except OSError as error:
        ended |= {"error": error.strerror or str(error), "time": time.time()}
        group.remove()
        write_whole(orders.file("ended.json"), ended)
        return
    key = key_of(leader) or ProcessKey(leader, 0, "")
    write_whole(orders.file("began.json"), {"process": key, "time": time.time()})
    os.waitid(os.P_PID, leader, os.WEXITED | os.WNOWAIT)
    ended["time"] = time.time()
    # The job is over when its first process is. That process is not reaped yet, so its id still
    # names its own group and no other.
    with contextlib.suppress(OSError):
        os.killpg(leader, signal.SIGKILL)
    ended["out_of_memory"] = group.out_of_memory()
    group.kill()
    _, status, usage = os.wait4(leader, 0)
    if os.WIFSIGNALED(status):
        ended["signal"] = os.WTERMSIG(status)
    else:
        ended["code"] = os.WEXITSTATUS(status)
    ended |= {"cpu_seconds": usage.ru_utime + usage.ru_stime, "max_rss_mib": usage.ru_maxrss >> 10}
    write_whole(orders.file("ended.json"), ended)
    group.remove()


def _start(orders: RunOrders, group: JobGroup) -> int:
    """Start the program and return its process id, once it really runs.

    Raises:
        OSError: it cannot be started.
    """
    reading, writing = os.pipe()  # closed by a successful exec
    pid = os.fork()
    if not pid:
        _become(orders, group, writing)
    os.close(writing)
    failure = b""
    while part := os.read(reading, 4096):
        failure += part
    os.close(reading)
    if failure:
        os.waitpid(pid, 0)
        raise OSError(0, failure.decode("utf-8", "replace"))
    return pid


def _become(orders: RunOrders, group: JobGroup, writing: int) -> NoReturn:
    program = orders.arguments[0]
    try:
        os.setsid()
        group.join()
        if orders.memory_mib and not orders.groups.memory:
            limit = orders.memory_mib << 20
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        _open_as(0, Path(os.devnull), os.O_RDONLY)
        for number, ending in ((1, "out"), (2, "err")):
            _open_as(number, orders.file(ending), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.chdir(orders.working_directory)
        for name in signal.Signals:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(name, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(program, orders.arguments, orders.environment)
    except BaseException as error:  # a process of its own must not go back into the runner
        words = getattr(error, "strerror", None) or str(error) or type(error).__name__
        os.write(writing, f"{program!r}: {words}".encode("utf-8", "replace")[:4000])
    os._exit(127)


def _open_as(number: int, path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    os.dup2(descriptor, number)
    if descriptor != number:
        os.close(descriptor)
