"""The order of waiting jobs while a log is replayed: positions, and the values behind them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from berthline.model.workload_rows import job_name
from berthline.policies.formula_text import text_of
from berthline.policies.formulas import Formula
from berthline.sim.reference_decide import gate_is_open
from berthline.sim.reference_place import closed_types
from berthline.sim.reference_words import WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berthline.policies.formulas import Node
    from berthline.sim.snapshots.replay import Replay


class Valued(msgspec.Struct, frozen=True, kw_only=True):
    """A job and what a formula gives for it.

    Attributes:
        job: its id.
        name: its name in the trace.
        value: the formula's value; the smallest is first.
        terms: the summands of the formula, by their text; a single one if it is not a sum.
        words: the value of each word.
    """

    job: int
    name: str
    value: float
    terms: dict[str, float]
    words: dict[str, float]


class WaitingOrder:
    """The order of the jobs of a replayed run."""

    def __init__(self, sim: Replay) -> None:
        self.sim = sim
        self.formula = sim.scheduler.order
        self._is_fixed = self.formula.changes == "never"
        # The key of a job that waits, and after how many restarts it was found.
        self._known: dict[int, tuple[int, tuple[float, int]]] = {}

    def key(self, job: int) -> tuple[float, int]:
        """Return the sort key of a job."""
        if not self._is_fixed or job in self.sim.running:
            return self._found(job)
        # Such a value changes only while the job runs.
        restarts = self.sim.restarts[job]
        known = self._known.get(job)
        if known is None or known[0] != restarts:
            known = self._known[job] = restarts, self._found(job)
        return known[1]

    def _found(self, job: int) -> tuple[float, int]:
        value = self.sim.value(self.formula, job)
        return math.inf if math.isnan(value) else value, job

    def of(self, jobs: Iterable[int]) -> list[int]:
        """Return some jobs in order."""
        return sorted(jobs, key=self.key)

    def waiting(self) -> list[int]:
        """Return the waiting jobs in order."""
        return self.of(self.sim.queue)

    def position(self, job: int) -> int:
        """Return the place of a job among the waiting jobs, from 1."""
        mine = self.key(job)
        return 1 + sum([self.key(other) < mine for other in self.sim.queue])

    def head(self) -> int | None:
        """Return the first job that may start; None = there is none."""
        first = min(self.sim.queue, key=self.key, default=None)
        if first is None or self._is_candidate(first):
            return first
        return next((job for job in self.waiting() if self._is_candidate(job)), None)

    def candidates(self, *, until: int) -> list[int]:
        """Return the jobs before `until` that may start, in order."""
        mine = self.key(until)
        before = self.of(job for job in self.sim.queue if self.key(job) < mine)
        return [job for job in before if self._is_candidate(job)]

    def _is_candidate(self, job: int) -> bool:
        sim = self.sim
        return gate_is_open(sim, job) and closed_types(sim, job, sim.quota_used) is not None

    def valued(self, job: int, formula: Formula | None = None) -> Valued:
        """Return the parts of a formula, by default the order's, for a job at this instant."""
        formula = formula or self.formula
        sim = self.sim

        def value_of(word: str) -> float:
            return float(WORDS[word](sim, job))

        parts: dict[str, float] = {}
        for text, node in terms(formula.root):
            value = Formula(text, node, formula.words).evaluate(value_of)
            parts[text] = parts.get(text, 0.0) + value
        return Valued(
            job=job,
            name=job_name(sim.inputs.workload, job),
            value=formula.evaluate(value_of),
            terms=parts,
            words={word: value_of(word) for word in sorted(formula.words)},
        )


def terms(root: Node) -> list[tuple[str, Node]]:
    """Return the summands of a formula with their signs, as text and tree.

    Example:
        >>> [text for text, _ in terms(Formula.parse("-(wait + 2 * gpus) - priority").root)]
        ['-wait', '-(2 * gpus)', '-priority']
    """
    return [(text_of(node), node) for node in _signed(root, is_negative=False)]


def _signed(node: Node, *, is_negative: bool) -> list[Node]:
    if node.op in ("add", "subtract"):
        left, right = node.args
        turned = is_negative != (node.op == "subtract")
        return [
            *_signed(left, is_negative=is_negative),
            *_signed(right, is_negative=turned),
        ]
    if node.op == "negate":
        return _signed(node.args[0], is_negative=not is_negative)
    return [type(node)("negate", (node,)) if is_negative else node]
