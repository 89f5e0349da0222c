"""Plan: everything an environment needs to know, and the parts that the native core reads."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.env.columns import TABLES, Columns
from berthline.env.episodes_source import (
    EpisodeSource,
)
from berthline.env.job_kinds import JobKinds
from berthline.env.options import Options
from berthline.env.rewards import Reward
from berthline.env.sources.starts import Start, StartedEpisodes
from berthline.model.cluster import Cluster
from berthline.model.workload import WHOLE_GPU, FloatColumn, IntColumn
from berthline.policies.formulas import Formula
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import Inputs, max_preemptions
from berthline.sim.native import formula_pair, run_arguments, scheduler_parts

if TYPE_CHECKING:
    from berthline import _native


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """Everything an environment needs to know.

    Attributes:
        seat: which decisions the agent makes.
        options: as given.
        cluster: the nodes.
        source: where episodes come from.
        scheduler: decides whatever the agent does not.
        columns: of the observation.
        reward: its terms.
        menu: what the agent chooses from: schedulers in Meta, rules in Place.
        experts: schedulers that can be asked what they would do.
        credit: the expert that rewards are credited against, and its answer to every question
            where that is always the same; None = rewards are paid as they come.
        kinds: of jobs.
        inputs: of a run with one job of each kind.
        lookahead_size: numbers in the look-ahead; 0 = there is none.
    """

    seat: str
    options: Options
    cluster: Cluster
    source: EpisodeSource
    scheduler: Scheduler
    columns: Columns
    reward: Reward
    menu: tuple[Scheduler, ...]
    experts: tuple[Scheduler, ...]
    credit: tuple[Scheduler, int | None] | None
    kinds: JobKinds
    inputs: Inputs
    lookahead_size: int

    def with_own_source(self) -> Plan:
        """Return this plan with a source whose settings can change without those of this one."""
        plan = copy.copy(self)  # what has been computed stays known
        object.__setattr__(plan, "source", copy.copy(self.source))
        return plan

    @property
    def num_actions(self) -> int:
        """How many actions there are; for PickPlace, jobs and the no-op."""
        if self.seat in ("pick", "pickplace", "backfill"):
            return self.options.window + 1
        if self.seat == "preempt":
            return self.options.running_window + 1
        if self.seat == "gate":
            return 2
        return len(self.menu) if self.menu else self.cluster.num_nodes

    def table_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the parts of an observation and their shapes, in the order of the flat vector."""
        rows = {
            "jobs": self.options.window,
            "nodes": self.cluster.num_nodes,
            "running": self.options.running_window,
        }
        shapes: dict[str, tuple[int, ...]] = {}
        for table in TABLES:
            width = len(getattr(self.columns, table))
            if width:
                shapes[table] = (rows[table], width) if table in rows else (width,)
        if self.lookahead_size:
            shapes["lookahead"] = (self.lookahead_size,)
        return shapes

    @functools.cached_property
    def table_slices(self) -> dict[str, tuple[slice, tuple[int, ...]]]:
        """Where the parts of an observation are in the flat vector, and their shapes."""
        slices: dict[str, tuple[slice, tuple[int, ...]]] = {}
        begin = 0
        for name, shape in self.table_shapes().items():
            end = begin + math.prod(shape)
            slices[name] = (slice(begin, end), shape)
            begin = end
        return slices

    def native_arguments(self) -> dict[str, Any]:
        """Return the arguments of the native core's Batch."""
        inputs = run_arguments(self.inputs)
        inputs["max_preemptions"] = max_preemptions(self.source.jobs)
        inputs["may_fail"] = self.can_fail
        inputs["was_interrupted"] = self.was_interrupted
        options = self.options
        if self.seat == "preempt":
            inputs["scheduler"]["min_run"] = float(options.min_run)
            inputs["scheduler"]["max_restarts"] = float(options.max_restarts)
        return {
            "inputs": inputs,
            "seat": self._seat_arguments(),
            "observation": {
                **{
                    table: [formula_pair(formula) for formula in self.formulas(table)]
                    for table in TABLES
                },
                "look_ahead": options.lookahead or "none",
                "look_ahead_size": self.lookahead_size,
                "look_ahead_seconds": float(options.lookahead_seconds),
            },
            "rewards": self._reward_arguments(),
        }

    def native_start(self, start: Start) -> _native.Start:
        """Return a state in which episodes begin as the native core reads it: once for all."""
        if start not in self._native_starts:
            self._native_starts[start] = start.native(self)
        return self._native_starts[start]

    @functools.cached_property
    def _native_starts(self) -> dict[Start, _native.Start]:
        return {}

    @property
    def protects_head(self) -> bool:
        """Whether Backfill masks out jobs that would delay the head."""
        if self.options.protect_head is None:
            return self.options.knowledge != "none"
        return self.options.protect_head

    @property
    def reranks(self) -> bool:
        """Whether Pick with ranks asks for the whole order again after each start."""
        if self.options.rerank is not None:
            return self.options.rerank
        rules = (self.scheduler.order, self.scheduler.gate)
        return any(rule is not None and rule.changes == "state" for rule in rules)

    @functools.cached_property
    def draws_at_random(self) -> bool:
        """Whether placements or refusals are drawn."""
        rules = [self.scheduler, *self.menu, *self.baseline]
        return self.cluster.conditions.refusal_rate > 0 or any(
            rule.placement == "random" for rule in rules
        )

    @property
    def asked(self) -> list[Scheduler]:
        """The experts; last, the one that rewards are credited against, if any is."""
        return [*self.experts, *([] if self.credit is None else self.credit[:1])]

    @property
    def baseline(self) -> list[Scheduler]:
        """The scheduler that rewards compare with, if any does."""
        compares = self.reward.uses(_BASELINE_WORDS)
        return [Scheduler.parse(self.options.baseline)] if compares else []

    @functools.cached_property
    def words(self) -> frozenset[str]:
        """Every word that any formula uses."""
        rules = (self.inputs.scheduler, *self.menu, *self.asked, *self.baseline)
        formulas = [
            *(formula for table in TABLES for formula in self.formulas(table)),
            *(formula for rule in rules for formula in rule.formulas),
            *(Formula.parse(text) for text in self.options.window_formulas),
            *(term.parse() for term in self.reward.terms),
        ]
        if self.running_order is not None:
            formulas.append(self.running_order)
        return frozenset(word for formula in formulas for word in formula.words)

    @property
    def uses_random(self) -> bool:
        """Whether any formula uses the word `random`."""
        return "random" in self.words

    @property
    def unread(self) -> frozenset[str]:
        """Columns of jobs that do not affect any number of an environment."""
        unread = {column for column, words in _READ_BY.items() if not words & self.words}
        if self.options.knowledge != "estimate":
            unread.add("estimate")
        return frozenset(unread)

    @property
    def can_fail(self) -> bool:
        """Whether nodes may go down."""
        conditions = self.cluster.conditions
        return bool(
            self.cluster.outages
            or np.isfinite(conditions.mtbf)
            or np.isfinite(conditions.rack_mtbf)
            or (self.cluster.mtbf > 0).any()
        )

    def horizon(
        self, *, submit: FloatColumn, run: FloatColumn, gpus: IntColumn, gpu_milli: IntColumn
    ) -> float | None:
        """Return when an episode is truncated: last submission + factor x total work / GPUs.

        None = never, also if the formula gives 0: all jobs submitted at 0, without GPUs or with a
        factor of 0.
        """
        factor = self.options.horizon_factor
        if factor is None:
            return None
        # Added up one by one, as the native core does.
        work = float(np.cumsum(run * (gpus.astype(np.int64) * gpu_milli))[-1])
        return float(submit[-1]) + factor * work / WHOLE_GPU / self.cluster.total_gpus or None

    def formulas(self, table: str) -> list[Formula]:
        """Return the formulas of a table of the observation."""
        return self.columns.formulas(table, has_job_at_hand=self.seat == "place")

    @property
    def running_order(self) -> Formula | None:
        """The formula that chooses and sorts running jobs; None = none are shown."""
        shows_running = self.seat == "preempt" or bool(self.columns.running)
        return _running_order(self.seat, self.options) if shows_running else None

    def _seat_arguments(self) -> dict[str, Any]:
        options = self.options
        answer = None if self.credit is None else self.credit[1]
        return {
            "seat": self.seat,
            "window": options.window,
            "window_policy": options.window_policy,
            "tops": [formula_pair(Formula.parse(text)) for text in options.window_formulas]
            if options.window_policy == "top"
            else [],
            "running_window": options.running_window,
            **dict(
                zip(
                    ("running_order", "running_order_changes"),
                    formula_pair(self.running_order),
                    strict=True,
                )
            ),
            "semantics": options.semantics,
            "reranks": self.reranks,
            "no_op": options.no_op,
            "protects_head": self.protects_head,
            "menu": [scheduler_parts(scheduler) for scheduler in self.menu],
            "experts": [scheduler_parts(expert) for expert in self.asked],
            "has_credit": self.credit is not None,
            "credit_answer": -1 if answer is None else answer,
            "every_events": options.every_events,
            "every_seconds": float(options.every_seconds),
            "max_holds": options.max_holds,
            "hold_seconds": float(options.hold_seconds),
            "recheck": float(options.recheck),
            "horizon_factor": -1.0 if options.horizon_factor is None else options.horizon_factor,
            "max_steps": options.max_steps or 0,
        }

    @property
    def was_interrupted(self) -> bool:
        """Whether episodes begin with jobs that have stopped before, or may."""
        return isinstance(self.source, StartedEpisodes) and self.source.starts.is_interrupted

    def _reward_arguments(self) -> dict[str, Any]:
        baseline = None
        if self.baseline:
            [scheduler] = self.baseline
            baseline = run_arguments(self.kinds.inputs(scheduler, self.options.knowledge))
            baseline["may_fail"] = self.can_fail
            baseline["was_interrupted"] = self.was_interrupted
        types = self.cluster.types
        return {
            "terms": [(term.occasion, formula_pair(term.parse())) for term in self.reward.terms],
            "baseline": baseline,
            "sleep_w": float(self.cluster.conditions.sleep_w),
            "idle_w": np.array([kind.idle_w for kind in types])[self.cluster.gpu_type],
            "peak_w": np.array([kind.peak_w for kind in types])[self.cluster.gpu_type],
        }


_READ_BY = {
    "priority": frozenset({"priority", "max_priority"}),
    "deadline": frozenset({"deadline", "slack", "missed", "overdue_jobs"}),
}
"""Columns of jobs that only these words read."""

_BASELINE_WORDS = frozenset(
    f"baseline_{score}" for score in ("jct", "wait", "slowdown", "bounded_slowdown", "utilization")
)


def _running_order(seat: str, options: Options) -> Formula:
    """Return the formula that sorts running jobs: next to end, or to be preempted, first."""
    text = options.running_order
    if text is None:
        by = "-attained" if options.knowledge == "none" else "remaining"
        text = f"-{by}" if seat == "preempt" and by == "remaining" else by
    return Formula.parse(text)
