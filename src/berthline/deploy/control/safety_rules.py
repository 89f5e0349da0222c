"""The rules: what no scheduler may do, whatever it decides.

Each works on proposed actions and a look that was taken for this purpose just before, and drops
what it does not allow. A dropped action is decided again in the next cycle.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, NamedTuple

from berthline.deploy.journal.journal_records import Numbered, RuleHit
from berthline.deploy.systems.contract import (
    BY_US,
    HELD,
    RUNNING,
    UP,
    WAITING,
    ActionKind,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from berthline.deploy.control.deploy_settings import RuleSettings
    from berthline.deploy.looks.seen import AskedStart, LiveJob
    from berthline.deploy.systems.contract import Action, JobRecord, Look, NodeRecord, QuotaRecord


class Rule(NamedTuple):
    """A rule.

    Attributes:
        setting: the settings it reads; empty = none, it always holds.
        meaning: what it does.
    """

    setting: str
    meaning: str


RULES: dict[str, Rule] = {
    "remit": Rule("", "only jobs that the system says are ours are touched"),
    "holds": Rule("", "only holds that carry our mark are lifted, also by a start"),
    "gone": Rule("", "nothing is done to a job that has changed since the decision"),
    "gang": Rule("", "a job starts with all its GPUs or not at all"),
    "node": Rule("", "nothing starts on a node that is not up"),
    "capacity": Rule("reserved_gpus", "no more than the GPUs that are free right now"),
    "quota": Rule("max_gpus", "no more than the system's quotas and ours allow"),
    "max_wait": Rule("max_wait", "while a job waits too long, the oldest goes first"),
    "rate": Rule("actions_per_minute", "not too many actions in a minute"),
    "job-rate": Rule("actions_per_job_minute", "not too many actions on one job in a minute"),
    "preemptions": Rule("preemptions_per_job_hour", "not too many preemptions of one job"),
    "deadline": Rule("decision_deadline", "a late decision is replaced by the fallback's"),
    "detector": Rule("", "a state outside the policy's training is left to the fallback"),
    "stale": Rule("max_look_age", "nothing is done on an old look, or on one that is torn"),
    "repeats": Rule("max_repeats", "a start that does not happen is taken back"),
    "faults": Rule("faults_to_shadow", "after several faults in a row, acting ends by itself"),
}
"""Every rule by its name in the journal, in metrics and in the reference."""

_MINUTE, _HOUR = 60.0, 3600.0


class RuleBook:
    """The rules with what they remember: how often was acted.

    Args:
        settings: of the rules.
    """

    def __init__(self, settings: RuleSettings) -> None:
        self.settings = settings
        self.count: Counter[str] = Counter()
        self._acted: deque[float] = deque()
        self._acted_on: dict[int, deque[float]] = defaultdict(deque)
        self._preempted: dict[int, deque[float]] = defaultdict(deque)

    def hit(self, rule: str, job: int, words: str) -> RuleHit:
        """Count a rule that changed something, and return the row for the journal."""
        assert rule in RULES, rule
        self.count[rule] += 1
        return RuleHit(rule, job, words)

    def allowed(
        self,
        proposed: Iterable[Numbered],
        look: Look,
        jobs: Mapping[int, LiveJob],
        asked: Mapping[int, AskedStart],
    ) -> tuple[list[Numbered], list[RuleHit]]:
        """Return which actions are allowed, in order, and what the rules found.

        Args:
            proposed: the actions.
            look: a look that was taken for this, after the decision.
            jobs: its jobs.
            asked: starts that were asked for and not seen yet; they hold their GPUs.
        """
        room = _Room(look, jobs, asked, self.settings)
        kept: list[Numbered] = []
        hits: list[RuleHit] = []
        for one in proposed:
            job = jobs.get(one.job)
            rule, words = self._broken(one, job, room, look.time)
            if rule:
                hits.append(self.hit(rule, one.job, words))
                continue
            kept.append(one)
            self._remember(one, look.time)
            if one.action.kind == ActionKind.START and job is not None:
                room.take(job.record, one.action.nodes)
        return kept, hits

    def _broken(
        self, one: Numbered, job: LiveJob | None, room: _Room, now: float
    ) -> tuple[str, str]:
        """Return the rule that an action breaks, and how; empty = none."""
        if job is None:
            return "gone", "the system no longer shows the job"
        action = one.action
        rule, words = _not_ours(job.record, action)
        if not rule and action.kind == ActionKind.START:
            rule, words = room.forbids(job, action)
        return (rule, words) if rule else self._too_often(one, now)

    def _too_often(self, one: Numbered, now: float) -> tuple[str, str]:
        if one.action.kind == ActionKind.RELEASE:
            return "", ""  # giving a job back is never too much
        limits = self.settings
        if _number_since(self._acted, now - _MINUTE) >= limits.actions_per_minute:
            return "rate", f"{limits.actions_per_minute} actions in the last minute"
        of_job = self._acted_on[one.job]
        if _number_since(of_job, now - _MINUTE) >= limits.actions_per_job_minute:
            return "job-rate", f"{limits.actions_per_job_minute} on it in the last minute"
        if one.action.kind == ActionKind.PREEMPT:
            times = self._preempted[one.job]
            if _number_since(times, now - _HOUR) >= limits.preemptions_per_job_hour:
                return "preemptions", f"{limits.preemptions_per_job_hour} in the last hour"
        return "", ""

    def _remember(self, one: Numbered, now: float) -> None:
        self._acted.append(now)
        self._acted_on[one.job].append(now)
        if one.action.kind == ActionKind.PREEMPT:
            self._preempted[one.job].append(now)

    def forget(self, jobs: Iterable[int]) -> None:
        """Forget what is remembered of jobs that are over."""
        for job in jobs:
            self._acted_on.pop(job, None)
            self._preempted.pop(job, None)


def _number_since(times: deque[float], since: float) -> int:
    """Return how many times are later; earlier ones are removed."""
    while times and times[0] <= since:
        times.popleft()
    return len(times)


def _not_ours(job: JobRecord, action: Action) -> tuple[str, str]:
    """Return the rule by which a job must not be touched in this way; empty = none."""
    kind = action.kind
    if not job.ours:
        return "remit", "the job is not ours"
    if (job.id, job.submitted) != (action.job, action.submitted):
        return "gone", "another job has its id now"
    if job.state == HELD and job.held_by != BY_US:
        return "holds", "others hold it"
    if kind == ActionKind.PREEMPT:
        return ("", "") if job.state == RUNNING else ("gone", "it does not run")
    if kind == ActionKind.RELEASE:
        return "", ""
    if job.state not in (WAITING, HELD):
        return "gone", f"it is {job.state}"
    if kind == ActionKind.START and not job.is_eligible:
        return "remit", "something else keeps it from starting"
    return "", ""


class _Room:
    """What is free, by the look that was taken just before acting."""

    def __init__(
        self,
        look: Look,
        jobs: Mapping[int, LiveJob],
        asked: Mapping[int, AskedStart],
        settings: RuleSettings,
    ) -> None:
        self._nodes: dict[str, NodeRecord] = {node.name: node for node in look.nodes}
        self._quotas = look.quotas
        self._max_gpus = settings.max_gpus
        held = dict.fromkeys(self._nodes, 0)
        self._used: Counter[tuple[int, str]] = Counter()
        self._ours = 0
        for number, job in jobs.items():
            nodes: Mapping[str, int] = {}
            if job.record.state == RUNNING:
                nodes = job.record.nodes
            elif number in asked:
                nodes = asked[number].nodes
            for name, gpus in nodes.items():
                if name in held:
                    held[name] += gpus
            self._count(job.record, nodes)
        promised = dict.fromkeys(self._nodes, 0)
        for number, one in asked.items():
            is_running = number in jobs and jobs[number].record.state == RUNNING
            for name, gpus in one.nodes.items():
                if name not in promised or is_running:
                    continue
                promised[name] += gpus
                if number not in jobs:  # it vanished from the look, and may come back
                    held[name] += gpus
        self.free: dict[str, int] = {}
        for name, node in self._nodes.items():
            # What is in use may or may not include what was promised: the worse is assumed.
            in_use = (node.gpus_in_use or 0) + promised[name]
            self.free[name] = node.gpus - max(in_use, held[name]) - settings.reserved_gpus

    def _count(self, job: JobRecord, nodes: Mapping[str, int]) -> None:
        self._ours += sum(nodes.values()) if job.ours else 0
        for name, gpus in nodes.items():
            kind = self._nodes[name].gpu_type if name in self._nodes else ""
            for key in _keys(self._quotas, job, kind) if gpus else ():
                self._used[key] += gpus

    def forbids(self, job: LiveJob, action: Action) -> tuple[str, str]:
        """Return the rule that a start breaks, and how; empty = none."""
        record = job.record
        wanted = sum(action.nodes.values())
        if record.gpus is None or wanted != record.gpus or min(action.nodes.values()) < 1:
            return "gang", f"{wanted} of the {record.gpus} GPUs that it asks for"
        for name, gpus in action.nodes.items():
            node = self._nodes.get(name)
            if node is None or node.state != UP:
                return "node", f"{name} is {'not there' if node is None else node.state}"
            if gpus > self.free[name]:
                return "capacity", f"{gpus} GPUs on {name}, {max(self.free[name], 0)} are free"
        if job.record.ours and self._ours + wanted > self._max_gpus:
            return "quota", f"max_gpus is {self._max_gpus:g}"
        more: Counter[tuple[int, str]] = Counter()
        for name, gpus in action.nodes.items():
            for key in _keys(self._quotas, record, self._nodes[name].gpu_type):
                more[key] += gpus
        for key, gpus in more.items():
            limit = self._quotas[key[0]].gpus
            if self._used[key] + gpus > limit:
                return "quota", f"{self._used[key]} of {limit} are in use"
        return "", ""

    def take(self, job: JobRecord, nodes: Mapping[str, int]) -> None:
        """Count an allowed start as in use."""
        for name, gpus in nodes.items():
            self.free[name] -= gpus
        self._count(job, nodes)


def _keys(quotas: tuple[QuotaRecord, ...], job: JobRecord, gpu_type: str) -> list[tuple[int, str]]:
    """Return the quotas that concern a job, by place, each with the user it counts for."""
    return [
        (at, job.user if quota.user == "*" else "")
        for at, quota in enumerate(quotas)
        if quota.pool in ("", job.pool)
        and quota.user in ("", "*", job.user)
        and quota.gpu_type in ("", gpu_type)
    ]
