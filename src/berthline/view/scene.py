"""Scene: what a cluster and its queue look like at one instant, and what is asked then.

It is made from the schedule log (`playback.py`), and both drawers (`scene_text.py`,
`scene_picture.py`) are functions of it alone.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Choice:
    """One answer to a question.

    Attributes:
        is_allowed: whether the mask allows it.
        probability: with which the policy gives it; None = no policy was asked.
        text: what it means, if it is not a row of a table.
    """

    is_allowed: bool
    probability: float | None = None
    text: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class WaitingJob:
    """A job that has been submitted and has no GPUs.

    Attributes:
        job: its id.
        gpus: it asks for; 0.25 for a quarter of one.
        estimate: of its run time, in seconds; None = not known.
        waited: seconds since it was submitted.
        is_at_hand: the question is about this job.
        choice: the answer that is this row; None = no answer is.
    """

    job: int
    gpus: float
    estimate: float | None
    waited: float
    is_at_hand: bool = False
    choice: Choice | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobOnGpus:
    """A job that holds GPUs.

    Attributes:
        job: its id.
        gpus: it holds.
        ran: seconds since its last start.
        left: seconds that it will run on, by its estimate; None = not known.
        choice: the answer that is this row; None = no answer is.
    """

    job: int
    gpus: float
    ran: float
    left: float | None
    choice: Choice | None = None


@dataclasses.dataclass(frozen=True)
class ShownNode:
    """A node and what its GPUs do.

    Attributes:
        gpus: for each GPU, the jobs on it; several share it, none = it is idle.
        is_up: whether the node is up.
        choice: the answer that is this node; None = no answer is.
    """

    gpus: tuple[tuple[int, ...], ...]
    is_up: bool = True
    choice: Choice | None = None


@dataclasses.dataclass(frozen=True)
class Asked:
    """A question to the agent.

    Attributes:
        seat: of the agent.
        about: what is to be decided.
        choices: answers that are not rows of a table: no-op, hold and start, names of rules.
    """

    seat: str
    about: str
    choices: tuple[Choice, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class SoFar:
    """What has become of the jobs up to now.

    Attributes:
        jobs: of the run or episode, whether submitted or not.
        submitted: jobs submitted and not rejected.
        completed: jobs that have finished.
        rejected: jobs that can never run.
        mean_wait: of the submitted jobs, in seconds; a job that has not started counts with the
            time it has waited.
        busy_gpus: GPUs that are in use.
    """

    jobs: int
    submitted: int
    completed: int
    rejected: int
    mean_wait: float
    busy_gpus: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scene:
    """One instant.

    Attributes:
        title: whose run it is.
        now: the clock, in seconds.
        nodes: of the cluster, by id.
        waiting: the jobs that wait, in the order of the question, or of submission.
        num_waiting: how many wait; more than shown if a window limits them.
        running: the jobs that run, in the order of the question, or of their starts.
        num_running: how many run.
        so_far: what has become of the jobs.
        asked: the question; None = nothing is asked.
        last_choice: the last answer, in words.
    """

    title: str
    now: float
    nodes: tuple[ShownNode, ...]
    waiting: tuple[WaitingJob, ...]
    num_waiting: int
    running: tuple[JobOnGpus, ...]
    num_running: int
    so_far: SoFar
    asked: Asked | None = None
    last_choice: str = ""

    @property
    def total_gpus(self) -> int:
        """GPUs of the cluster."""
        return sum(len(node.gpus) for node in self.nodes)
