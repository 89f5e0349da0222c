"""The guard and the controller as real processes, killed and stopped in every order.

Nothing here fails because the machine is busy: each wait ends when the state is reached, and the
limit is far away.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from berthline.deploy.control.guard import (
    ENDED,
    GUARD_HEARTBEAT,
    HEARTBEAT,
    read_sign,
    write_sign,
)
from berthline.deploy.control.run_controller import lift_left_over, stop_controller
from berthline.deploy.journal.journal_file import JournalReader
from berthline.deploy.systems.simulated.lift_simulated import call
from berthline.deploy.systems.simulated.simulated_server import ADDRESS

FAR = 120.0
CONFIG = "schema = 1\n[guard]\nheartbeat = 0.5\n"
COMMAND = [
    *(sys.executable, "-m", "berthline", "deploy", "simulated", "synthetic"),
    *("--jobs", "400", "--load", "3", "--speed", "60", "--every", "15"),
    *("--mode", "act", "--override", "a test", "--json"),
]


def until(good, what):
    """Wait until something is so."""
    ends = time.monotonic() + FAR
    while time.monotonic() < ends:
        if found := good():
            return found
        time.sleep(0.05)
    pytest.fail(f"never: {what}")


class Process:
    """A controller beside a simulated cluster, with its guard."""

    def __init__(self, room):
        self.journal = room / "journal"
        (room / "deploy.toml").write_text(CONFIG)
        self.log = (room / "log").open("wb")
        self.stopped = []
        self.controller = subprocess.Popen(
            [*COMMAND, "--journal", str(self.journal), "--config", str(room / "deploy.toml")],
            stdout=self.log,
            stderr=self.log,
        )
        until(lambda: (self.journal / ADDRESS).exists(), "the cluster is there")
        facts = json.loads((self.journal / ADDRESS).read_text())
        self.socket, self.cluster = facts["socket"], facts["pid"]

    def held(self):
        return json.loads(call(self.socket, b'{"call": "status"}'))["held"]

    def guard(self):
        return read_sign(self.journal / GUARD_HEARTBEAT)[1]

    def new_guard(self, old):
        return until(lambda: self.guard() not in (0, old) and self.guard(), "another guard")

    def end(self):
        for pid in (self.controller.pid, self.guard(), self.cluster, *self.stopped):
            for number in (signal.SIGCONT, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        self.controller.wait()
        self.log.close()


@pytest.fixture
def process(tmp_path):
    found = Process(tmp_path)
    try:
        until(lambda: found.guard() and found.held(), "jobs are held")
        yield found
    finally:
        found.end()


def flows_natively(process):
    """Whether nothing is held, also while new jobs arrive."""
    before = json.loads(call(process.socket, b'{"call": "status"}'))["now"]
    until(lambda: process.held() == 0, "nothing is held")
    # An hour of the cluster, in which jobs arrive: none is held.
    call(process.socket, b'{"call": "wait", "seconds": 3600}')
    status = json.loads(call(process.socket, b'{"call": "status"}'))
    assert status["now"] > before
    return status["held"] == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_controller_that_dies_or_stands_still__loses_its_holds(process, number):
    os.kill(process.controller.pid, number)
    assert flows_natively(process)
    log = until(lambda: (process.journal / "guard.log").exists(), "the guard says so")
    assert log
    assert "holds lifted, 0 left" in (process.journal / "guard.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_guard_that_dies_or_stands_still__is_replaced(process, number):
    old = process.guard()
    os.kill(old, number)
    process.stopped.append(old)
    process.new_guard(old)
    os.kill(process.controller.pid, signal.SIGKILL)
    assert flows_natively(process)


def test_both_die__the_next_one_that_lives_lifts_the_holds(process):
    for pid in (process.guard(), process.controller.pid):
        os.kill(pid, signal.SIGKILL)
    process.controller.wait()
    assert lift_left_over(process.journal).left_held == 0
    assert flows_natively(process)


def test_stop__gives_everything_back(process):
    found = stop_controller(process.journal)
    assert found.was_running
    assert process.controller.wait() == 0
    remarks = [(remark.kind, remark.facts) for remark in JournalReader(process.journal).remarks()]
    assert remarks[-1] == ("stop", {"held": 0})
    assert "override" in [kind for kind, _ in remarks]
    until(lambda: not (process.journal / ADDRESS).exists(), "its cluster ends with it")


def test_guard__needs_the_standard_library_alone():
    lift = "berthline.deploy.systems.simulated.lift_simulated"
    code = f"import sys, berthline.deploy.control.guard, {lift}\n"
    code += "print([name for name in ('numpy', 'msgspec', 'polars') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_signs(tmp_path):
    file = tmp_path / HEARTBEAT
    assert read_sign(file) == (float("inf"), 0, False)
    write_sign(file)
    age, pid, ended = read_sign(file)
    assert 0 <= age < FAR
    assert (pid, ended) == (os.getpid(), False)
    write_sign(file, ENDED)
    assert read_sign(file)[2]
    file.write_text(f"{time.monotonic() + 9e6} 12\n")  # before the machine was started again
    assert read_sign(file)[0] == float("inf")
    file.write_text("12")
    assert read_sign(file)[0] == float("inf")
