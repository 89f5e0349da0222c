"""Playback: a schedule log as a sequence of scenes, at any time or after any of its rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.evaluate.metrics.gpu_numbers import gpu_numbers
from berthline.model.schedule import (
    FINISH,
    NODE_DOWN,
    NODE_UP,
    PREEMPT,
    REJECT,
    START,
    SUBMIT,
)
from berthline.view.scene import Asked, Choice, JobOnGpus, Scene, ShownNode, SoFar, WaitingJob

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload

_Rows = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class ShownQuestion:
    """What a question adds to a scene.

    Attributes:
        asked: the question.
        jobs: ids of the waiting jobs shown, by row.
        running: ids of the running jobs shown, by row; empty = none are shown.
        job_at_hand: the job that the question is about; None = no single one.
        of_jobs: answers that are rows of `jobs`, by row.
        of_running: answers that are rows of `running`, by row.
        of_nodes: answers that are nodes, by id.
    """

    asked: Asked
    jobs: Sequence[int]
    running: Sequence[int] = ()
    job_at_hand: int | None = None
    of_jobs: Sequence[Choice] = ()
    of_running: Sequence[Choice] = ()
    of_nodes: Sequence[Choice] = ()


class Playback:
    """A log, ready to be looked at.

    Args:
        workload: the jobs of the run.
        cluster: its nodes.
        log: of the run, or of its first part.
        knowledge: what the scheduler knew about run times; decides which estimates are shown.
        title: whose run it is.
    """

    def __init__(
        self,
        workload: Workload,
        cluster: Cluster,
        log: Schedule,
        *,
        knowledge: str = "estimate",
        title: str = "",
    ) -> None:
        self.workload, self.cluster, self.log, self.title = workload, cluster, log, title
        known = {"estimate": workload.estimate, "exact": workload.run}
        self._estimate = known.get(knowledge, np.full(len(workload), np.nan))
        self._gpus = workload.gpu_amount
        never = len(log)
        self._submitted, self._started, self._finished, self._rejected = (
            self._first_rows(kind, never) for kind in (SUBMIT, START, FINISH, REJECT)
        )
        # The stretches in which jobs ran: the rows of their starts and of what ended them.
        self._begins = np.flatnonzero(log.is_start)
        self._ends = self._rows_of_ends(never)
        self._held = gpu_numbers(log, cluster)
        self._first_held = np.searchsorted(self._held.stretch, np.arange(len(self._begins) + 1))
        self._start_time = np.full(len(workload), np.inf)
        begun = self._started < never
        self._start_time[begun] = log.time[self._started[begun]]

    def rows_until(self, now: float) -> int:
        """Return how many rows of the log have happened at a time, that instant included."""
        return int(np.searchsorted(self.log.time, now, side="right"))

    def scene(
        self,
        now: float,
        *,
        rows: int | None = None,
        question: ShownQuestion | None = None,
        last_choice: str = "",
    ) -> Scene:
        """Return what an instant looks like.

        Args:
            now: the time.
            rows: rows of the log that have happened; None = all of that instant too.
            question: what is asked.
            last_choice: the last answer, in words.
        """
        rows = self.rows_until(now) if rows is None else rows
        live = np.flatnonzero((self._begins < rows) & (self._ends >= rows))
        jobs_of_live = self.log.job[self._begins[live]]
        is_in = (self._submitted < rows) & (self._rejected >= rows)
        waits = is_in & (self._finished >= rows)
        waits[jobs_of_live] = False
        stretch_of = dict(zip(jobs_of_live.tolist(), live.tolist(), strict=True))
        waiting = np.flatnonzero(waits).tolist() if question is None else list(question.jobs)
        running = question.running if question is not None and question.running else stretch_of
        return Scene(
            title=self.title,
            now=now,
            nodes=self._nodes(live, rows, () if question is None else question.of_nodes),
            waiting=tuple(self._waiting(waiting, now, question)),
            num_waiting=int(waits.sum()),
            running=tuple(self._running(list(running), stretch_of, now, question)),
            num_running=len(live),
            so_far=SoFar(
                jobs=len(self.workload),
                submitted=int(is_in.sum()),
                completed=int((self._finished < rows).sum()),
                rejected=int((self._rejected < rows).sum()),
                mean_wait=self._mean_wait(is_in, now),
                busy_gpus=float(self._gpus[jobs_of_live].sum()),
            ),
            asked=None if question is None else question.asked,
            last_choice=last_choice,
        )

    def _mean_wait(self, is_in: npt.NDArray[np.bool_], now: float) -> float:
        if not is_in.any():
            return 0.0
        until = np.minimum(self._start_time[is_in], now)
        return float((until - self.workload.submit[is_in]).mean())

    def _waiting(
        self, jobs: Sequence[int], now: float, question: ShownQuestion | None
    ) -> list[WaitingJob]:
        choices = () if question is None else question.of_jobs
        at_hand = None if question is None else question.job_at_hand
        return [
            WaitingJob(
                job=job,
                gpus=float(self._gpus[job]),
                estimate=_known(float(self._estimate[job])),
                waited=now - float(self.workload.submit[job]),
                is_at_hand=job == at_hand,
                choice=choices[row] if row < len(choices) else None,
            )
            for row, job in enumerate(jobs)
        ]

    def _running(
        self,
        jobs: Sequence[int],
        stretch_of: Mapping[int, int],
        now: float,
        question: ShownQuestion | None,
    ) -> list[JobOnGpus]:
        choices = () if question is None else question.of_running
        found = []
        for row, job in enumerate(jobs):
            ran = now - float(self.log.time[self._begins[stretch_of[job]]])
            estimate = _known(float(self._estimate[job]))
            found.append(
                JobOnGpus(
                    job=job,
                    gpus=float(self._gpus[job]),
                    ran=ran,
                    left=None if estimate is None else max(estimate - ran, 0.0),
                    choice=choices[row] if row < len(choices) else None,
                )
            )
        return found

    def _nodes(self, live: _Rows, rows: int, choices: Sequence[Choice]) -> tuple[ShownNode, ...]:
        gpus: list[list[list[int]]] = [[[] for _ in range(size)] for size in self.cluster.gpus]
        held = self._held
        for stretch in live.tolist():
            job = int(self.log.job[self._begins[stretch]])
            for row in range(self._first_held[stretch], self._first_held[stretch + 1]):
                if held.gpu[row] >= 0:
                    gpus[held.node[row]][held.gpu[row]].append(job)
        down = self._nodes_down(rows)
        return tuple(
            ShownNode(
                tuple(map(tuple, node)), number not in down, choices[number] if choices else None
            )
            for number, node in enumerate(gpus)
        )

    def _nodes_down(self, rows: int) -> set[int]:
        kinds = self.log.kind[:rows]
        down: set[int] = set()
        for row in np.flatnonzero((kinds == NODE_DOWN) | (kinds == NODE_UP)).tolist():
            if kinds[row] == NODE_DOWN:
                down.add(int(self.log.detail[row]))
            else:
                down.discard(int(self.log.detail[row]))
        return down

    def _first_rows(self, kind: int, never: int) -> _Rows:
        """Return the row in which each job first had an event of a kind."""
        first = np.full(len(self.workload), never)
        rows = np.flatnonzero(self.log.kind == kind)[::-1]
        first[self.log.job[rows]] = rows  # the last assignment is that of the first row
        return first

    def _rows_of_ends(self, never: int) -> _Rows:
        """Return the row that ended each stretch: the next finish or preemption of its job."""
        log = self.log
        is_end = (log.kind == FINISH) | (log.kind == PREEMPT)
        rows = np.flatnonzero(log.is_start | is_end)
        rows = rows[np.argsort(log.job[rows], kind="stable")]
        after = np.append(rows[1:], never)
        same = np.append(log.job[rows[1:]] == log.job[rows[:-1]], False)
        ends = np.full(len(log), never)
        ends[rows] = np.where(same, after, never)
        return ends[self._begins]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
