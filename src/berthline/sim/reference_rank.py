"""The seat Pick with `semantics="rank"` in the reference simulator: the agent is the order.

The discipline of the base scheduler works with the order that the agent gives, as with the order of
a rule. An agent that always names the job that comes first by some order therefore schedules as
that order does.
"""

from __future__ import annotations

from berthline.sim.reference_backfilling import may_pass, reserve
from berthline.sim.reference_decide import candidates, choose_in_state
from berthline.sim.reference_place import place
from berthline.sim.reference_seats import Seat
from berthline.sim.reference_tiers import PLACEMENTS_IN_TIERS


class Rank(Seat):
    """Which job comes next in order: asked as far as the discipline needs to know.

    A chosen job starts, if it can. If not, it keeps its place: it is the head under `strict` and
    `easy`, and under `conservative` each such job has a reservation. Behind the head, `easy` only
    asks about jobs that may pass it; `skip` only asks about jobs that can start. Jobs outside the
    window come after all that are shown, in the base order.

    There is no question where only one job can be chosen, which is then taken, and none where
    nothing can start, whatever is chosen. After a start, jobs that could not start keep their
    places, unless `reranks`: then the order is asked for again from its first job.
    """

    def decide(self) -> None:
        """Ask for the order until nothing more can start."""
        sim = self.sim
        while True:
            jobs = candidates(sim)
            sim.ranked = [job for job in sim.ranked if job in jobs]
            if sim.ranked and self.start_ranked():
                continue
            if sim.ranked and sim.scheduler.discipline == "strict":
                break
            next_ones = self.may_be_next([job for job in jobs if job not in sim.ranked])
            if not next_ones:
                break
            rows = sim.waiting_shown(None)
            shown = [job for job in rows if job in next_ones]
            if len(shown) > 1:
                padding = [False] * (sim.rules.window + 1 - len(rows))
                mask = [*(job in shown for job in rows), *padding]
                can_start = tuple(job for job in shown if place(sim, job, sim.free))
                answer = sim.ask(mask, can_start=can_start)
                with self.carried_out(answer, can_start):
                    self.rank(rows[answer.action])
            else:
                self.rank((shown or next_ones)[0])
        sim.ranked = []

    def rank(self, job: int) -> None:
        """Put a job behind those ranked so far, and start what the discipline then starts."""
        self.sim.ranked.append(job)
        self.start_ranked()

    def start_ranked(self) -> bool:
        """Start what the discipline starts if only the ranked jobs wait, if anything."""
        sim = self.sim
        found = choose_in_state(sim, sim.ranked)
        if found is None:
            return False
        job, allocation, _ = found
        sim.go(job, allocation)
        if sim.rules.reranks:
            sim.ranked = []
        else:
            sim.ranked.remove(job)
        return True

    def may_be_next(self, jobs: list[int]) -> list[int]:
        """Return the jobs that may come next; none, if then nothing could start."""
        sim = self.sim
        fitting = [job for job in jobs if place(sim, job, sim.free) is not None]
        discipline = sim.scheduler.discipline
        if discipline == "skip":
            return fitting
        if discipline == "easy" and sim.ranked:
            reservation = reserve(sim, sim.ranked[0])
            return [job for job in fitting if may_pass(sim, job, reservation) is not None]
        if discipline == "conservative" and sim.scheduler.placement in PLACEMENTS_IN_TIERS:
            return jobs  # they may find a place with less free than there is
        return jobs if fitting else []
