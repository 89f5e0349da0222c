"""Controller: look, decide, check by rules, act, observe; and write it all down first.

It compares what should be with what is and repeats what is missing. In `shadow` it is not given the
adapter's `do` at all.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from berthline.deploy.control.decide_in_time import LATE, STRANGE, WAITED, Made
from berthline.deploy.control.guard import LIMIT
from berthline.deploy.control.intents import Intents
from berthline.deploy.control.observe import Observer
from berthline.deploy.control.safety_rules import RuleBook
from berthline.deploy.journal.journal_file import PART_SECONDS, SCHEMA, PartStart
from berthline.deploy.journal.journal_records import (
    ACT,
    ADVISE,
    SHADOW,
    CycleRecord,
    DecidedRow,
    Numbered,
    Outcomes,
    RuleHit,
)
from berthline.deploy.looks.check_look import LookError, check_look, in_order
from berthline.deploy.looks.known_jobs import KnownJobs
from berthline.deploy.looks.live_cluster import LiveCluster
from berthline.deploy.looks.seen import jobs_of, known_jobs_of, see, snapshot_hash
from berthline.deploy.systems.contract import (
    BY_US,
    DONE,
    FINISHED,
    HELD,
    REFUSED,
    RUNNING,
    WAITING,
    Action,
    ActionKind,
    AdapterError,
    Outcome,
)
from berthline.errors import BerthlineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from berthline.deploy.control.decide_in_time import Decider
    from berthline.deploy.control.deploy_settings import Settings
    from berthline.deploy.journal.journal_file import JournalWriter
    from berthline.deploy.journal.journal_records import SeenStart
    from berthline.deploy.looks.seen import LiveJob, Seen
    from berthline.deploy.systems.contract import Adapter, JobRecord, Look

_RULE_OF_FALLBACK = {LATE: "deadline", STRANGE: "detector", WAITED: "max_wait"}
_RELEASES = 20
"""How often a stop looks for holds of ours."""


@dataclasses.dataclass
class Totals:
    """Counts since the controller began, for metrics and the last line."""

    cycles: int = 0
    faults: Counter[str] = dataclasses.field(default_factory=Counter)
    fallbacks: Counter[str] = dataclasses.field(default_factory=Counter)
    actions: Counter[tuple[str, str]] = dataclasses.field(default_factory=Counter)
    native_starts: int = 0
    agreed_starts: int = 0


class Controller:
    """One controller of one system.

    Args:
        adapter: the system.
        journal: where everything is written first.
        decider: who decides.
        settings: of the rules.
        mode: one of MODES.
        policy: the hash of the policy that decides; empty = a rule.
        say: called with a line when the mode changes or something goes wrong.
    """

    def __init__(
        self,
        adapter: Adapter,
        journal: JournalWriter,
        decider: Decider,
        settings: Settings,
        *,
        mode: str = SHADOW,
        policy: str = "",
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.journal, self.decider, self.settings = journal, decider, settings
        self.mode, self.policy = mode, policy
        self._say = say or (lambda _: None)
        self.name, self.abilities = adapter.name, adapter.abilities
        self._look, self.clock, self.wait = adapter.look, adapter.clock, adapter.wait
        # In shadow nothing here can reach the system but its eyes.
        self._do: Callable[[Sequence[Action]], list[Outcome]] | None = None
        self._leave: Callable[[], None] | None = None
        self.beat: Callable[[], None] | None = None
        if mode != SHADOW:
            self._do = adapter.do
        if mode == ACT:
            self._leave, self.beat = adapter.leave, adapter.beat
        self.rules = RuleBook(settings.rules)
        self.intents = Intents(settings.rules, self.abilities.tick)
        self.observer = Observer()
        begin = journal.begin
        self.origin = begin.origin if begin else 0.0
        self.known = KnownJobs(journal.known, begin.next_number if begin else 0)
        self.nodes = LiveCluster(adapter.name, journal.nodes)
        self.totals = Totals()
        self.last_cycle: CycleRecord | None = None
        self.last_seen: Seen | None = None
        self.last_jobs: Mapping[int, LiveJob] = {}
        self._faults_in_a_row = 0
        self._last_time = -float("inf")
        self._checked_at = 0.0
        self._wanted: set[int] = set()
        self._ranks: dict[int, int] = {}
        if journal.last_look is not None:
            self._last_time = journal.last_look.time
            jobs = jobs_of(journal.last_look, self.known)
            self.observer.follow(journal.last_look.time, jobs)

    # One cycle.

    def cycle(self) -> CycleRecord:
        """Make one cycle and return what was written."""
        began = time.perf_counter()
        seconds: dict[str, float] = {}
        if self.beat is not None:
            self.beat()
        look, fault = self._looked()
        seconds["look"] = time.perf_counter() - began
        if look is not None and self._must_begin_part(look):
            self._begin_part(look)
        facts: dict[str, Any] = {
            "number": self.journal.last_cycle + 1,
            "time": self.clock() if look is None else look.time,
            "wall": time.time(),
            "mode": self.mode,
            "scheduler": str(self.decider.scheduler),
            "policy": self.policy,
            "knowledge": self.decider.knowledge,
        }
        if look is None or fault:
            return self._end_with_fault(facts, look, fault, seconds)
        try:
            return self._decide_and_act(look, facts, seconds)
        except BerthlineError as error:
            fault = f"cannot decide: {error.what} ({error.where})"
        except Exception as error:
            fault = f"internal: {type(error).__name__}: {error}"
        return self._end_with_fault(facts, look, fault, seconds)

    def _looked(self) -> tuple[Look | None, str]:
        """Return a look, and why nothing can be done with it."""
        try:
            look = in_order(self._look())
        except AdapterError as error:
            return None, f"no look: {error.what}"
        try:
            check_look(look, last_time=self._last_time, clock=self.clock())
        except LookError as error:
            return None, f"torn look: {error.what}"
        self._last_time = max(self._last_time, look.time)
        age = self.clock() - look.time
        if age > self.settings.rules.max_look_age:
            return look, f"old look: {age:.0f} s"
        return look, ""

    def _must_begin_part(self, look: Look) -> bool:
        begin = self.journal.begin
        return begin is None or look.time >= begin.began + PART_SECONDS

    def _begin_part(self, look: Look) -> None:
        if self.journal.is_new:
            submissions = [job.submitted for job in look.jobs]
            self.origin = float(int(min([look.time, *submissions])))
        self.known.forget(look.time)
        self.journal.begin_part(
            PartStart(
                schema=SCHEMA,
                system=self.name,
                origin=self.origin,
                nodes=self.nodes.nodes,
                jobs=self.known.all(),
                next_number=self.known.next_number,
                began=look.time,
                seed=self.settings.seed,
            )
        )

    def _decide_and_act(
        self, look: Look, facts: dict[str, Any], seconds: dict[str, float]
    ) -> CycleRecord:
        """Make a cycle with a look that is sound."""
        began = time.perf_counter()
        jobs = self.last_jobs = jobs_of(look, self.known)
        asked = set(self.intents.of)
        again = self.intents.follow(look, jobs)
        seen_now = self.observer.follow(look.time, jobs)
        held = self.intents.held()
        seen = self.last_seen = see(
            look,
            jobs,
            self.nodes,
            origin=self.origin,
            asked=self.intents.asked(),
            scheduler=str(self.decider.scheduler),
            knowledge=self.decider.knowledge,
            seed=self.settings.seed,
        )
        overdue = self._overdue(look, jobs)
        at = seconds["see"] = time.perf_counter() - began
        made = self.decider.decide(seen.snapshot, oldest_first=bool(overdue))
        seconds["decide"] = time.perf_counter() - began - at
        decision = decided_rows(made, seen)
        hits = self._hits_of(made, overdue)
        self._count_agreement(seen_now, decision, asked)
        at = time.perf_counter()
        actions: list[Numbered] = []
        fault = ""
        if self.mode != SHADOW:
            proposed = self._proposals(decision, jobs, again)
            actions, more, fault = self._checked(proposed)
            hits += more
        seconds["rules"] = time.perf_counter() - at
        at = time.perf_counter()
        cycle = CycleRecord(
            **facts,
            fault=fault,
            held=held,
            snapshot=snapshot_hash(seen.snapshot),
            decided_by=made.by,
            fallback=made.fallback and f"{made.fallback}: {made.words}".removesuffix(": "),
            decision=decision,
            rules=tuple(hits),
            actions=tuple(actions),
            seen=seen_now,
            seconds=seconds,
        )
        self._write(cycle, look)
        seconds["journal"] = time.perf_counter() - at
        if actions:
            self._act(cycle, look.time)
        self._end(cycle, fault)
        return cycle

    def _overdue(self, look: Look, jobs: Mapping[int, LiveJob]) -> list[int]:
        """Return the jobs that have waited too long and can run here at all."""
        since = look.time - self.settings.rules.max_wait
        largest = sum(node.gpus for node in look.nodes)
        return [
            number
            for number, job in jobs.items()
            if job.may_start
            and job.known.submitted < since
            and number not in self.intents.of
            and (job.record.gpus or 0) <= largest
        ]

    def _hits_of(self, made: Made, overdue: list[int]) -> list[RuleHit]:
        if not made.fallback:
            return []
        self.totals.fallbacks[made.fallback] += 1
        rule = _RULE_OF_FALLBACK.get(made.fallback, "")
        job = min(overdue) if overdue else -1
        return [self.rules.hit(rule, job, made.words)] if rule else []

    def _count_agreement(
        self, seen_now: Sequence[SeenStart], decision: Sequence[DecidedRow], asked: set[int]
    ) -> None:
        """Count native starts, and those that we would have made by now as well.

        Args:
            seen_now: what the look shows.
            decision: of this cycle.
            asked: jobs whose starts we asked for.
        """
        for one in seen_now:
            if one.kind == "start" and one.job not in asked:
                self.totals.native_starts += 1
                self.totals.agreed_starts += one.job in self._wanted
            self._wanted.discard(one.job)
        self._wanted |= {row.job for row in decision if row.kind in ("start", "resume")}

    # What is to be done.

    def _proposals(
        self, decision: Sequence[DecidedRow], jobs: Mapping[int, LiveJob], again: list[Numbered]
    ) -> list[Numbered]:
        if self.mode == ADVISE:
            return self._ranked(decision, jobs)
        proposed = list(again)
        touched = {one.job for one in again} | self.intents.of.keys()
        for row in decision:
            job = jobs.get(row.job)
            if job is None or row.job in touched or row.kind not in ("start", "resume", "preempt"):
                continue
            touched.add(row.job)
            kind = ActionKind.PREEMPT if row.kind == "preempt" else ActionKind.START
            proposed.append(Numbered(row.job, _action(kind, job, nodes=row.nodes), "decided"))
        # A system that does not let a job wait for us would start it by itself.
        if self.abilities.holds:
            proposed += [
                Numbered(number, _action(ActionKind.HOLD, job), "hold")
                for number, job in jobs.items()
                if job.record.ours
                and job.record.state == WAITING
                and number not in touched
                and job.record.gpu_milli == 1000
                and (job.record.gpus or 0) > 0
            ]
        return proposed

    def _ranked(
        self, decision: Sequence[DecidedRow], jobs: Mapping[int, LiveJob]
    ) -> list[Numbered]:
        """Return hints: what would start now goes first; others have no rank."""
        wanted = [row.job for row in decision if row.kind in ("start", "resume")]
        ranks = {number: rank for rank, number in enumerate(wanted) if number in jobs}
        found = []
        for number, rank in ranks.items():
            if jobs[number].record.state == WAITING and self._ranks.get(number) != rank:
                action = _action(ActionKind.RANK, jobs[number], rank=rank, of=len(wanted))
                found.append(Numbered(number, action, "decided"))
        found += [
            Numbered(number, _action(ActionKind.RELEASE, jobs[number]), "withdraw")
            for number in self._ranks
            if number not in ranks and number in jobs and jobs[number].record.state == WAITING
        ]
        self._ranks = ranks
        return found

    def _checked(self, proposed: list[Numbered]) -> tuple[list[Numbered], list[RuleHit], str]:
        """Return which actions the rules allow, by a look that is taken now."""
        if not proposed:
            return [], [], ""
        look, fault = self._looked()
        self._checked_at = time.monotonic()
        if look is None or fault:
            hit = self.rules.hit("stale", -1, fault)
            return [], [hit], fault
        jobs = known_jobs_of(look, self.known)
        repeated = {one.job for one in proposed}
        asked = {n: one for n, one in self.intents.asked().items() if n not in repeated}
        kept, hits = self.rules.allowed(proposed, look, jobs, asked)
        hits += [
            self.rules.hit("repeats", one.job, "its start did not happen")
            for one in kept
            if one.why == "withdraw" and one.action.kind == ActionKind.HOLD
        ]
        return kept, hits, ""

    def _act(self, cycle: CycleRecord, now: float) -> None:
        assert self._do is not None, "shadow has no actions"
        began = time.perf_counter()
        age = time.monotonic() - self._checked_at
        if age > LIMIT * self.settings.guard.heartbeat:
            # The process was stopped in between, and the guard may have lifted our holds.
            words = f"{age:.0f} s passed between the check and the action"
            outcomes = [Outcome(REFUSED, words)] * len(cycle.actions)
        else:
            outcomes = self._do([one.action for one in cycle.actions])
        self.intents.ask(cycle.actions, outcomes, now)
        for one, outcome in zip(cycle.actions, outcomes, strict=True):
            self.totals.actions[one.action.kind.value, outcome.status] += 1
        self.journal.write_outcomes(
            Outcomes(
                cycle=cycle.number,
                outcomes=tuple(outcomes),
                seconds=time.perf_counter() - began,
            )
        )

    # Faults, and the end.

    def _end_with_fault(
        self, facts: dict[str, Any], look: Look | None, fault: str, seconds: dict[str, float]
    ) -> CycleRecord:
        cycle = CycleRecord(**facts, fault=fault, held=self.intents.held(), seconds=seconds)
        if self.journal.begin is not None:
            self._write(cycle, look)
        self._end(cycle, fault)
        return cycle

    def _write(self, cycle: CycleRecord, look: Look | None) -> None:
        jobs, nodes = list(self.known.changed.values()), list(self.nodes.changed.values())
        self.journal.write_cycle(cycle, look, jobs, nodes)
        self.known.changed.clear()
        self.nodes.changed.clear()

    def _end(self, cycle: CycleRecord, fault: str) -> None:
        self.last_cycle = cycle
        self.totals.cycles += 1
        if not fault:
            self._faults_in_a_row = 0
            return
        self.totals.faults[fault.partition(":")[0]] += 1
        self._faults_in_a_row += 1
        limit = self.settings.rules.faults_to_shadow
        if self.mode != SHADOW and self._faults_in_a_row >= limit:
            self.rules.hit("faults", -1, fault)
            self._say(f"{limit} faults in a row, the last: {fault}; going on in shadow")
            self.let_go("faults", fault)

    def let_go(self, kind: str, words: str) -> int:
        """Give everything back to the system and go on in shadow; return how many holds are left.

        Args:
            kind: of the remark in the journal.
            words: why.
        """
        left = self._release_all()
        self.mode = SHADOW
        self._do = self._leave = self.beat = None
        self.intents.forget_all()
        if self.journal.begin is not None:
            self.journal.remark(kind, words, held=left)
        return left

    def _release_all(self) -> int:
        """Lift our holds until a look shows none; return how many are left."""
        if self._do is None:
            return 0
        left = 0
        for attempt in range(_RELEASES):
            if self._leave is not None:
                try:
                    self._leave()
                except AdapterError:
                    continue
            look, _ = self._looked()
            if look is None:
                self.wait(1.0)
                continue
            ours = [job for job in look.jobs if self._is_held(job)]
            left = sum(job.state == HELD for job in ours)
            if not ours or (attempt and not left):
                return left
            outcomes = self._do(
                [
                    Action(kind=ActionKind.RELEASE, job=job.id, submitted=job.submitted)
                    for job in ours
                ]
            )
            for outcome in outcomes:
                self.totals.actions[ActionKind.RELEASE.value, outcome.status] += 1
            if any(outcome.status != DONE for outcome in outcomes):
                self.wait(1.0)
        return left

    def _is_held(self, job: JobRecord) -> bool:
        """Whether a job has to be given back: it is held by us, or was asked to start."""
        if not job.ours or job.state in (RUNNING, FINISHED):
            return False
        if job.state == HELD:
            return job.held_by == BY_US
        known = self.known.peek(job)
        return known is not None and (
            known.number in self.intents.of or known.number in self._ranks
        )


def _action(kind: ActionKind, job: LiveJob, **more: Any) -> Action:
    return Action(kind=kind, job=job.record.id, submitted=job.record.submitted, **more)


def decided_rows(made: Made, seen: Seen) -> tuple[DecidedRow, ...]:
    """Return the rows of a decision with numbers of jobs and names of nodes."""
    return tuple(
        DecidedRow(
            row.kind,
            seen.rows[row.job],
            {seen.node_names[node]: gpus for node, gpus in row.gpus.items()},
            row.reason,
        )
        for row in made.actions
    )
