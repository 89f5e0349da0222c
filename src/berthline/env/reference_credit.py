"""Credit in the reference environment: rewards by what a decision changes.

At every question, and at the end, `expected` gets the return of the whole episode if the expert
answers from there on. The reward of a decision is the last of these numbers less the one before.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from berthline.sim.reference_agent import Answer, Question

if TYPE_CHECKING:
    from berthline.env.reference_env import ReferenceEpisode
    from berthline.policies.formulas import Formula


class ReferenceCredit:
    """The reward of the last decision of an episode, `reward`.

    Args:
        episode: the episode, whose plan has `credit`.
    """

    def __init__(self, episode: ReferenceEpisode) -> None:
        self.episode = episode
        self.expected: list[float] = []

    def look_ahead(self) -> None:
        """There is a question: play the rest of a copy of the episode with the expert's answers."""
        plan = dataclasses.replace(self.episode.plan, credit=None)
        copy = self.episode.fork(lambda question: self._answer(copy, question), plan)
        copy.play()
        self.expected.append(copy.rewards.sum)

    def over(self) -> None:
        """The episode is over."""
        self.expected.append(self.episode.rewards.sum)

    @property
    def reward(self) -> float:
        """What the last decision has changed."""
        if len(self.expected) < 2:
            return 0.0
        change = self.expected[-1] - self.expected[-2]
        return 0.0 if math.isnan(change) else change  # both may be infinite

    def _answer(self, copy: ReferenceEpisode, question: Question) -> Answer:
        assert self.episode.plan.credit is not None
        expert, always = self.episode.plan.credit
        if always is not None:
            return Answer(always)
        if self.episode.plan.seat == "gate":
            assert question.job_at_hand is not None
            gate = expert.gate
            return Answer(int(gate is None or copy.value(gate, question.job_at_hand) >= 0))
        return Answer(_first_allowed(copy, question, expert.order))


def _first_allowed(copy: ReferenceEpisode, question: Question, order: Formula) -> int:
    """Return the row of the first allowed job in an order, or the no-op."""
    values = {
        row: copy.value(order, job) for row, job in enumerate(question.jobs) if question.mask[row]
    }
    if not values:
        assert copy.no_op is not None
        return copy.no_op

    def place(row: int) -> tuple[float, int]:
        value = values[row]
        return math.inf if math.isnan(value) else value, question.jobs[row]

    return min(values, key=place)
