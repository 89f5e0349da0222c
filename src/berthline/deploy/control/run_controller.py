"""run_controller: a controller beside a system until it is stopped."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from berthline.deploy.control.controller import Controller
from berthline.deploy.control.decide_in_time import Decider
from berthline.deploy.control.deploy_settings import Settings, read_settings_file
from berthline.deploy.control.guard import HEARTBEAT, ORDERS, read_sign
from berthline.deploy.control.signs_of_life import SignsOfLife
from berthline.deploy.journal.journal_file import JournalWriter
from berthline.deploy.journal.journal_records import ACT, ADVISE, MODES, SHADOW
from berthline.deploy.monitoring.metrics_page import MetricsPage, MetricsServer
from berthline.errors import ConfigError, RefusedError, unknown_name
from berthline.policies.learned import policy_files
from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from berthline.deploy.journal.journal_records import CycleRecord
    from berthline.deploy.systems.contract import Abilities, Adapter
    from berthline.deploy.systems.deploy_options import DeployOptions

_STOP_SECONDS = 60.0


class Deployed(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller did until it ended.

    Attributes:
        journal: its directory.
        system: what it looked at.
        scheduler: who decided.
        mode: at the end.
        cycles: how many.
        faults: cycles in which nothing could be done, by what was wrong.
        fallbacks: decisions of the fallback, by reason.
        rules: how often each rule changed something.
        actions: actions by `kind status`.
        native_starts: jobs that the system started by itself.
        agreed_starts: how many of them we would have started by then too.
        left_held: jobs that are still held by us.
    """

    journal: str
    system: str
    scheduler: str
    mode: str
    cycles: int
    faults: dict[str, int]
    fallbacks: dict[str, int]
    rules: dict[str, int]
    actions: dict[str, int]
    native_starts: int
    agreed_starts: int
    left_held: int


def run_controller(
    adapter: Adapter,
    options: DeployOptions,
    *,
    may_act: Callable[[Scheduler, Path], None] | None = None,
    say: Callable[[str], None] | None = None,
    each: Callable[[Controller, CycleRecord], None] | None = None,
) -> Deployed:
    """Run a controller until it is stopped, or the system is over.

    Args:
        adapter: the system; it is closed at the end.
        options: of `berthline deploy`.
        may_act: raises RefusedError if there is no verdict that allows acting.
        say: called with lines for people.
        each: called after each cycle.

    Raises:
        ConfigError: an option is wrong, or the system cannot do what the scheduler needs.
        RefusedError: another controller writes the journal, or acting is not allowed.
    """
    settings = check_options(options)
    scheduler = Scheduler.parse(options.scheduler)
    try:
        check_abilities(scheduler, adapter.abilities, options.mode, adapter.name)
        directory = Path(options.journal)
        if options.mode == ACT and not options.override and may_act is not None:
            may_act(scheduler, directory)
        journal = JournalWriter(directory, adapter.name)
        try:
            controller = Controller(
                adapter,
                journal,
                Decider(
                    scheduler,
                    Scheduler.parse(settings.fallback),
                    knowledge=options.knowledge,
                    deadline=settings.rules.decision_deadline,
                ),
                settings,
                mode=options.mode,
                policy="" if scheduler.learned is None else scheduler.learned.sha256,
                say=say,
            )
            return _watched(adapter, controller, options, settings, each)
        finally:
            journal.close()
    finally:
        adapter.close()


def check_options(options: DeployOptions) -> Settings:
    """Return the settings of the rules.

    Raises:
        ConfigError: an option is wrong.
    """
    if options.mode not in MODES:
        what, expected, hint = unknown_name("mode", options.mode, MODES)
        raise ConfigError(what, expected=expected, hint=hint)
    if not options.every > 0:
        raise ConfigError(f"`every` is {options.every:g}", expected="more than 0 seconds")
    if options.cycles is not None and options.cycles < 1:
        raise ConfigError(f"`cycles` is {options.cycles}", expected="1 or more")
    if options.knowledge not in ("none", "estimate", "predicted"):
        raise ConfigError(
            f"`knowledge` is {options.knowledge!r}",
            expected="none, estimate or predicted: a live system knows no exact run times",
        )
    if options.override is not None and not options.override.strip():
        raise ConfigError("`override` is empty", expected="the reason, which is journaled")
    settings = read_settings_file(options.config)
    fallback = Scheduler.parse(settings.fallback)
    if fallback.learned is not None:
        raise ConfigError(
            f"fallback is {settings.fallback!r}",
            where=str(options.config),
            expected="a rule, such as fcfs+easy",
        )
    return settings


def check_abilities(scheduler: Scheduler, abilities: Abilities, mode: str, name: str) -> None:
    """Raise if a system cannot do what a scheduler needs in a mode.

    Raises:
        ConfigError: it cannot; the error says what it can.
    """
    needed: list[tuple[bool, str]] = []
    if mode == ADVISE:
        needed = [(abilities.ranks, "take hints about the order")]
    elif mode == ACT:
        needed = [
            (abilities.places, "start a job on named nodes"),
            (abilities.holds, "hold jobs back for us"),
        ]
        preempts = scheduler.preemption is not None or scheduler.discipline == "rounds"
        if preempts or (scheduler.learned is not None and scheduler.learned.seat == "preempt"):
            needed.append((abilities.preempts, "preempt jobs"))
    missing = [what for can, what in needed if not can]
    if missing:
        possible = [SHADOW]
        possible += [ADVISE] if abilities.ranks else []
        possible += [ACT] if abilities.places and abilities.holds else []
        raise ConfigError(
            f"{name} cannot {' or '.join(missing)}",
            where=f"`mode={mode}`, `scheduler={scheduler}`",
            expected=f"a mode that it can do: {', '.join(possible)}",
            hint="a scheduler without preemption" if "preempt jobs" in missing else "",
        )


class _StopSignal(BaseException):
    """SIGTERM or SIGINT while the controller waits."""


def _watched(
    adapter: Adapter,
    controller: Controller,
    options: DeployOptions,
    settings: Settings,
    each: Callable[[Controller, CycleRecord], None] | None,
) -> Deployed:
    acts = options.mode == ACT
    # Taken at the beginning: the mode may change.
    orders = adapter.guard() if acts else None
    directory = controller.journal.directory
    signs = SignsOfLife(directory, settings.guard, orders, controller.beat)
    page = MetricsPage(lambda: signs.age, lambda: signs.guards_started)
    server = None if options.metrics_port is None else MetricsServer(page, options.metrics_port)

    def after(controller: Controller, cycle: CycleRecord) -> None:
        page.update(controller)
        if each is not None:
            each(controller, cycle)

    with _stoppable() as stop:
        signs.begin()
        left = 0
        try:
            _loop(controller, adapter, options, signs, stop, after)
        finally:
            if controller.mode != SHADOW:
                left = controller.let_go("stop", "the controller ends")
            elif controller.journal.begin is not None:
                controller.journal.remark("stop", "the controller ends")
            signs.end()
            if server is not None:
                server.close()
    totals = controller.totals
    return Deployed(
        journal=str(directory),
        system=controller.name,
        scheduler=str(controller.decider.scheduler),
        mode=controller.mode,
        cycles=totals.cycles,
        faults=dict(totals.faults),
        fallbacks=dict(totals.fallbacks),
        rules=dict(controller.rules.count),
        actions={" ".join(key): number for key, number in totals.actions.items()},
        native_starts=totals.native_starts,
        agreed_starts=totals.agreed_starts,
        left_held=left,
    )


def _loop(
    controller: Controller,
    adapter: Adapter,
    options: DeployOptions,
    signs: SignsOfLife,
    stop: _Stop,
    each: Callable[[Controller, CycleRecord], None],
) -> None:
    made, has_begun = 0, False
    while not stop.is_set:
        began = adapter.clock()
        cycle = controller.cycle()
        signs.progress()
        made += 1
        if not has_begun and controller.journal.begin is not None:
            has_begun = True
            _remark_start(controller, options)
        each(controller, cycle)
        if options.once or made == options.cycles or adapter.is_over:
            return
        stop.wait(adapter.wait, max(options.every - (adapter.clock() - began), 0.01))


def _remark_start(controller: Controller, options: DeployOptions) -> None:
    scheduler = controller.decider.scheduler
    if scheduler.learned is not None and scheduler.learned.given is None:
        files = {file.name: file.read_bytes() for file in policy_files(scheduler.learned.path)}
        controller.journal.write_policy(scheduler.learned.sha256, files)
    controller.journal.remark(
        "start",
        f"{controller.mode} with {scheduler}",
        options=msgspec.to_builtins(options),
        settings=msgspec.to_builtins(controller.settings),
        pid=os.getpid(),
    )
    if options.override and options.mode == ACT:
        controller.journal.remark("override", options.override)


class _Stop:
    """A request to end, which interrupts waiting and nothing else."""

    def __init__(self) -> None:
        self.is_set = False
        self._waits = False

    def request(self, _: int, __: FrameType | None) -> None:
        self.is_set = True
        if self._waits:
            self._waits = False
            raise _StopSignal

    def wait(self, wait: Callable[[float], None], seconds: float) -> None:
        """Wait, unless the end is requested."""
        try:
            self._waits = True
            if not self.is_set:
                wait(seconds)
        except _StopSignal:
            pass
        finally:
            self._waits = False


@contextlib.contextmanager
def _stoppable() -> Iterator[_Stop]:
    """Let SIGTERM and SIGINT end the loop; in another thread than the main one, nothing does."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, stop.request)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """What `berthline deploy stop` did.

    Attributes:
        journal: its directory.
        was_running: a controller ran.
        lifted: holds that were lifted without it.
        left_held: jobs that are still held by us.
    """

    journal: str
    was_running: bool
    lifted: int = 0
    left_held: int = 0


def stop_controller(directory: str | Path, *, timeout: float = _STOP_SECONDS) -> Stopped:
    """End the controller of a journal, which gives everything back; without one, lift its holds.

    Raises:
        ConfigError: there is no journal.
        RefusedError: the controller does not end.
    """
    path = Path(directory)
    pid = running_controller(path)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + timeout
        while running_controller(path) is not None:
            if time.monotonic() > until:
                raise RefusedError(
                    f"the controller (process {pid}) does not end",
                    where=str(path),
                    hint=f"kill -9 {pid}: its guard then lifts our holds",
                )
            time.sleep(0.05)
        return Stopped(journal=str(path), was_running=True)
    return lift_left_over(path)


def lift_left_over(path: Path) -> Stopped:
    """Lift what a controller that was killed has left held."""
    try:
        orders = json.loads((path / ORDERS).read_bytes())
        module = importlib.import_module(str(orders["module"]))
        lifted, left = module.lift(orders["arguments"])
    except (OSError, ValueError, KeyError):
        return Stopped(journal=str(path), was_running=False)
    return Stopped(journal=str(path), was_running=False, lifted=lifted, left_held=left)


def running_controller(path: Path) -> int | None:
    """Return the process that writes a journal; None = none does.

    Raises:
        ConfigError: there is no journal.
    """
    try:
        with (path / "lock").open("r+b") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return read_sign(path / HEARTBEAT)[1] or None
    except OSError:
        raise ConfigError(
            "there is no journal",
            where=str(path),
            expected="a directory that berthline deploy --journal wrote",
        ) from None
    return None
