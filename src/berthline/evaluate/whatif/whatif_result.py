"""WhatIf: the answer of `berthline whatif`, as `--json` prints it. Times are seconds."""

from __future__ import annotations

import msgspec

from berthline.evaluate.metrics.distribution import Distribution
from berthline.evaluate.metrics.starvation import Starvation
from berthline.evaluate.statistics.paired import Ratio
from berthline.evaluate.whatif.fidelity import Fidelity
from berthline.evaluate.whatif.idle_waits import IdleWaits
from berthline.traces.inspect.infer_cluster import Conclusion


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster of the simulations, and the evidence for it; no findings = it was given.

    Attributes:
        name: its name.
        nodes: number of nodes.
        gpus: number of GPUs.
        available: the share of them that jobs could use, as far as waits show it.
        user_limits: the most GPUs that users could hold at once, as far as waits show it; users who
            could not reach a limit are not listed.
        pools: names of its pools.
        findings: what was concluded from the log.
    """

    name: str
    nodes: int
    gpus: int
    available: float
    user_limits: dict[str, float]
    pools: list[str]
    findings: list[Conclusion]


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of the replay.

    Attributes:
        jobs: submitted in the period; all metrics are over them.
        users: number of users who submitted them.
        lead_seconds: how long before the period the replay begins.
        running_at_begin: already running when the replay begins.
        queued_at_begin: already waiting then.
        running_at_period: running when the period begins, as recorded.
        queued_at_period: waiting then, as recorded.
        others: submitted before or after the period, as competitors.
        start_unknown: of the whole log, left out because no start is recorded.
        eligible_later: of the whole log, could start only some time after submission; their waits
            count from then on.
        too_large: of the period, left out because the cluster can never run them.
        still_running: of the whole log, still running when it was taken; they end there.
        never_started: rows of the log that had not started when it was taken, left out.
    """

    jobs: int
    users: int
    lead_seconds: float
    running_at_begin: int
    queued_at_begin: int
    running_at_period: int
    queued_at_period: int
    others: int
    start_unknown: int
    eligible_later: int
    too_large: int
    still_running: int
    never_started: int


class FidelitySplit(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs on which the model of today's scheduler was chosen, and tested."""

    how: str
    chosen_jobs: int
    judged_jobs: int


class ModelFit(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate for today's scheduler, on the jobs used for the choice.

    Attributes:
        scheduler: its text.
        meaning: what it stands for.
        pools: which cluster it ran on, where several are possible.
        available: the share of its GPUs that jobs could use.
        user_limit: the most GPUs that a user could hold at once, or the width of the user's widest
            job; None = no limit.
        fidelity: its waits against the recorded ones.
        size_error_factor: error factor of the mean waits of size classes.
        distance: geometric mean of both error factors and of that of the mean, by which models are
            ranked. By single waits alone, a model that starves the few large jobs could win.
    """

    scheduler: str
    meaning: str
    pools: str
    available: float
    user_limit: float | None
    fidelity: Fidelity
    size_error_factor: float
    distance: float


class GroupOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a user or of a size.

    Attributes:
        jobs: how many.
        wait_mean: their mean wait.
        wait_p95: the wait that 95 % of them do not exceed.
        jct_mean: their mean JCT.
        wait_change: wait_mean - wait_mean under today's scheduler.
        wait_error: error of the model in the mean wait of such jobs; None = not known.
    """

    jobs: int
    wait_mean: float
    wait_p95: float
    jct_mean: float
    wait_change: float
    wait_error: float | None = None


class AgainstToday(msgspec.Struct, frozen=True, kw_only=True):
    """A scheduler against the model of today's.

    Attributes:
        wait_change: change of the mean wait.
        could_explain: the model's error in the mean wait of a day, as a share of that change, at
            most 1; None = there is no change.
        jct: ratio of daily mean JCTs, with its interval over days.
        bounded_slowdown: the same for bounded slowdowns.
        verdict: what it says, in words.
        users_longer: users whose mean wait grows by more than a minute and 5 %.
        users_shorter: users whose mean wait shrinks by more than a minute and 5 %.
    """

    wait_change: float
    could_explain: float | None
    jct: Ratio
    bounded_slowdown: Ratio
    verdict: str
    users_longer: int
    users_shorter: int


class SchedulerOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a scheduler would have done to the jobs of the period.

    Attributes:
        scheduler: its text.
        wait: of the jobs.
        jct: of the jobs.
        bounded_slowdown: of the jobs.
        starvation: the longest wait and the starved jobs.
        makespan: from the begin of the period until the last of them has finished.
        utilization: share of the GPUs held by any job during the period.
        by_size: by size class.
        by_user: by user.
        against_today: None for the model of today's scheduler itself.
    """

    scheduler: str
    wait: Distribution
    jct: Distribution
    bounded_slowdown: Distribution
    starvation: Starvation
    makespan: float
    utilization: float
    by_size: dict[str, GroupOutcome]
    by_user: dict[str, GroupOutcome]
    against_today: AgainstToday | None


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What schedulers would have done to a period of a log.

    Attributes:
        log: its name.
        begin: start of the period on the log's clock, whose zero is the first submission.
        end: its end.
        knowledge: what all schedulers knew of run times.
        cluster: the cluster.
        replay: the jobs.
        split: what the model was chosen and tested on.
        models: the candidates for today's scheduler, the best first.
        today: the chosen candidate.
        today_given: whether it was given, not chosen.
        fidelity: its waits against the recorded ones, on the jobs it is tested on.
        fidelity_by_size: the same by size class.
        error_seconds: error of the mean wait of a day.
        user_error_seconds: error of the mean wait of a user with five jobs or more, the median over
            such users; None = there are none.
        idle_waits: the recorded waiting time during which as many GPUs as the job wanted were free:
            limits, reservations or packing, which no model here knows; None = no job waited.
        outcomes: today's scheduler as modelled, then the alternatives.
        left_out: schedulers that were not run, because they take long on a log of this size.
        seed: the seed.
    """

    log: str
    begin: float
    end: float
    knowledge: str
    cluster: ClusterFacts
    replay: Replayed
    split: FidelitySplit
    models: list[ModelFit]
    today: str
    today_given: bool
    fidelity: Fidelity
    fidelity_by_size: dict[str, Fidelity]
    error_seconds: float
    user_error_seconds: float | None
    idle_waits: IdleWaits | None
    outcomes: list[SchedulerOutcome]
    left_out: list[str]
    seed: int
