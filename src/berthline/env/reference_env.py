"""The reference environment: rewards and observations of an episode, computed in plain Python.

`ReferenceEpisode` plays one episode in the reference simulator. It is the definition of what the
native core writes into observations and rewards; tests step both side by side.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from berthline import _native
from berthline.env.columns import TABLES
from berthline.env.reference_credit import ReferenceCredit
from berthline.env.reference_rewards import ReferenceRewards
from berthline.model.schedule import FINISH, PREEMPT, RESUME, START, WHOLE_GPUS
from berthline.policies.formulas import Formula
from berthline.policies.vocabulary import VOCABULARY
from berthline.random_streams import stream_key, uniform_at
from berthline.sim.inputs import draw_numbers, prepare
from berthline.sim.reference_agent import AgentSimulation, Answer, Question, SeatRules
from berthline.sim.reference_speed import progress_now
from berthline.sim.reference_state import Free
from berthline.sim.reference_words import NODE_WORDS, WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from berthline.env.plan import Plan
    from berthline.env.sources.starts import Start
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload
    from berthline.sim.inputs import Inputs


def seat_rules(plan: Plan) -> SeatRules:
    """Return the rules of an environment's seat."""
    options = plan.options
    return SeatRules(
        seat=plan.seat,
        window=options.window,
        window_policy=options.window_policy,
        window_formulas=tuple(Formula.parse(text) for text in options.window_formulas),
        running_window=options.running_window,
        running_order=plan.running_order,
        semantics=options.semantics,
        reranks=plan.reranks,
        no_op=options.no_op,
        menu=plan.menu,
        every_events=options.every_events,
        every_seconds=options.every_seconds,
        protect_head=plan.protects_head,
        max_holds=options.max_holds,
        hold_seconds=options.hold_seconds,
        recheck=options.recheck,
        min_run=options.min_run,
        max_restarts=options.max_restarts,
        max_steps=options.max_steps,
    )


def episode_inputs(
    plan: Plan, workload: Workload, seed: int, start: Snapshot | None = None
) -> Inputs:
    """Return the inputs of an episode, including words that only columns use."""
    import dataclasses

    inputs = prepare(
        workload,
        plan.cluster,
        plan.scheduler,
        knowledge=plan.options.knowledge,
        seed=seed,
        horizon=plan.horizon(
            submit=workload.submit,
            run=workload.run,
            gpus=workload.gpus,
            gpu_milli=workload.gpu_milli,
        ),
        start=start,
    )
    draw = draw_numbers(workload, start)
    return dataclasses.replace(
        inputs, draw=draw, random=uniform_at(stream_key(seed, "order"), draw)
    )


def started_inputs(plan: Plan, workload: Workload, seed: int, start: Start) -> Inputs:
    """Return the inputs of an episode that begins in the middle."""
    import dataclasses

    inputs = episode_inputs(plan, workload, seed, start.snapshot)
    return dataclasses.replace(inputs, outages=start.failures)


class ReferenceEpisode(AgentSimulation):
    """One episode of an environment.

    Args:
        plan: of the environment.
        workload: the jobs of the episode.
        seed: decides everything random.
        agent: called with every question.
        inputs: of the run; None = of an episode with these jobs, which begins with nothing.
    """

    def __init__(
        self,
        plan: Plan,
        workload: Workload,
        seed: int,
        agent: Callable[[Question], Answer],
        inputs: Inputs | None = None,
    ) -> None:
        inputs = episode_inputs(plan, workload, seed) if inputs is None else inputs
        super().__init__(inputs, seat_rules(plan), self._asked)
        self.plan = plan
        self._player, self._seed = agent, seed
        self._answers: list[Answer] = []
        self.rewards = ReferenceRewards(self, plan, seed)
        self.credit = None if plan.credit is None else ReferenceCredit(self)

    def fork(
        self, agent: Callable[[Question], Answer], plan: Plan | None = None
    ) -> ReferenceEpisode:
        """Return the episode at its last question, which `agent` answers, and all later ones.

        The answers so far are given again when it is played.

        Args:
            agent: answers questions.
            plan: another plan than that of the episode, with the same seat.
        """
        past = iter([*self._answers])
        return ReferenceEpisode(
            self.plan if plan is None else plan,
            self.inputs.workload,
            self._seed,
            lambda question: next(past, None) or agent(question),
            self.inputs,
        )

    @property
    def reward(self) -> float:
        """The reward of the last decision."""
        return self.rewards.total if self.credit is None else self.credit.reward

    def _asked(self, question: Question) -> Answer:
        if self.credit is not None:
            self.credit.look_ahead()
        answer = self._player(question)
        self._answers.append(answer)
        return answer

    # --- rewards ---------------------------------------------------------------------------------

    def answered(self, *, is_no_op: bool, can_start: tuple[int, ...], starts_before: int) -> None:
        """Reward a decision."""
        self.rewards.decide(
            is_no_op=is_no_op,
            has_started=len(self.allocated) > starts_before,
            can_start=can_start,
        )

    def time_passes(self, since: float) -> None:
        """Reward the time that has passed."""
        self.rewards.pass_time(since)

    def things_happened(self, since: int) -> None:
        """Reward jobs that have finished."""
        self.rewards.read_log(since)

    def over(self) -> None:
        """Reward the episode as a whole."""
        self.rewards.finish_episode()
        if self.credit is not None:
            self.credit.over()

    # --- observations ----------------------------------------------------------------------------

    def observe(self, question: Question) -> npt.NDArray[np.float32]:
        """Return the flat observation that goes with a question."""
        parts = [
            self._table("jobs", question.jobs, self.rules.window),
            self._nodes(question.job_at_hand),
            self._table("running", question.running, self.rules.running_window),
            [cut(self.value(formula, 0)) for formula in self.plan.formulas("globals")],
            self._look_ahead(),
        ]
        return np.array([value for part in parts for value in part], np.float32)

    def _table(self, table: str, jobs: list[int], rows: int) -> list[float]:
        formulas = self.plan.formulas(table)
        values = [cut(self.value(formula, job)) for job in jobs for formula in formulas]
        return values + [0.0] * ((rows - len(jobs)) * len(formulas))

    def _nodes(self, job: int | None) -> list[float]:
        """Return the columns of nodes; a node that is down has no free GPUs.

        Columns about the job at hand are 0 if there is none.
        """
        up = [gpus if up else 0 for gpus, up in zip(self.free.gpus, self.up, strict=True)]
        free = Free(up, self.free.shared, self.free.cpus, self.free.memory_mib)

        def value(formula: Formula, node: int) -> float:
            if job is None and any(VOCABULARY[word].scope == "job" for word in formula.words):
                return 0.0
            return formula.evaluate(
                lambda word: float(
                    NODE_WORDS[word](self, node, free)
                    if word in NODE_WORDS
                    else WORDS[word](self, job or 0)
                )
            )

        formulas = self.plan.formulas("nodes")
        return [cut(value(f, node)) for node in range(len(self.up)) for f in formulas]

    def _look_ahead(self) -> list[float]:
        """Return when GPUs should be free, as a fraction of `lookahead_seconds`, at most 1."""
        kind, size = self.plan.options.lookahead, self.plan.lookahead_size
        if kind in (None, "off"):
            return [0.0] * size
        if kind == "per_gpu":
            return self._per_gpu()
        total = 1000 * sum(self.total.gpus)
        down = sum(gpus for gpus, up in zip(self.total.gpus, self.up, strict=True) if not up)
        busy = sorted([(1.0, 1000 * down), *((self.left(j), self.milli(j)) for j in self.running)])
        free = total - sum(milli for _, milli in busy)
        if kind == "cdf":
            bounds = [(j + 1) / size for j in range(size)]
            return [(free + sum(m for left, m in busy if left <= b)) / total for b in bounds]
        # sorted: the value of the GPU in the middle of each of `size` equal parts.
        values = []
        for j in range(size):
            middle, before, value = (j + 0.5) * total / size, free, 0.0
            for left, milli in busy:
                if middle >= before:
                    value = left
                before += milli
            values.append(value)
        return values

    def left(self, job: int) -> float:
        """Return a running job's expected time left, as a fraction of `lookahead_seconds`."""
        running = self.running[job]
        begins = max(running.since - self.now, 0.0)
        rest = max(self.estimate[job] - progress_now(self, job), 0.0) / running.rate
        return min((begins + rest) / self.plan.options.lookahead_seconds, 1.0)

    def _per_gpu(self) -> list[float]:
        """Return a number for each GPU.

        GPUs of a node are numbered as they are taken: a job gets the lowest that are free. A shared
        GPU shows the job that ends last; GPUs of a node that is down show 1.
        """
        gpus: list[list[set[int]]] = [[set() for _ in range(count)] for count in self.total.gpus]
        slots: dict[tuple[int, int], set[int]] = {}  # (node, slot) -> a shared GPU
        first = self._recall_gpus(gpus, slots)
        for _, kind, job, detail in self.log[first:]:
            if kind in (FINISH, PREEMPT):
                for node in gpus:
                    for gpu in node:
                        gpu.discard(job)
                slots = {key: gpu for key, gpu in slots.items() if gpu}
            elif kind in (START, RESUME):
                wanted = self.gpus[job]
                while wanted > 0:
                    node_id, count, slot = self.allocated[detail]
                    shared = slots.get((node_id, slot), set()) if slot != WHOLE_GPUS else set()
                    free = [gpu for gpu in gpus[node_id] if not gpu]
                    for gpu in [shared] if shared else free[:count]:
                        gpu.add(job)
                        slots[node_id, slot] = gpu
                    wanted -= count
                    detail += 1
        return [
            max(map(self.left, gpu), default=0.0) if is_up else 1.0
            for is_up, node in zip(self.up, gpus, strict=True)
            for gpu in node
        ]

    def _recall_gpus(
        self, gpus: list[list[set[int]]], slots: dict[tuple[int, int], set[int]]
    ) -> int:
        """Set which jobs held GPUs where the run began; return the first row of the log after it.

        Jobs that are left out have held GPUs, so the rows do not tell which were free.
        """
        start = self.inputs.start
        if start is None or not len(start.memory.gpu_holders):
            return 0
        holders = iter(start.memory.gpu_holders.tolist())
        for node, of_node in enumerate(gpus):
            for gpu in of_node:
                holder = next(holders)
                if holder >= 0:
                    gpu.add(holder)
                elif holder < -1:
                    slots[node, -2 - holder] = gpu
        rows = [row for row in self.log if row[0] < start.now]
        held = {}
        for _, kind, job, detail in rows:
            if kind in (START, RESUME):
                held[job] = self.allocated[detail]
            else:
                held.pop(job, None)
        for job, (node, _, slot) in held.items():
            if slot != WHOLE_GPUS and self.gpus[job]:
                slots[node, slot].add(job)
        return len(rows)


def cut(value: float) -> float:
    """Return a value as in observations: clipped, and 0 for NaN."""
    limit = float(_native.observation_limit)
    return 0.0 if math.isnan(value) else min(max(value, -limit), limit)


__all__ = ["TABLES", "ReferenceEpisode", "episode_inputs", "seat_rules", "started_inputs"]
