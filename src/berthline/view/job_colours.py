"""Colours of jobs: the same job has the same colour in the queue and on its GPUs, in every drawing.

Six colours are shared by all jobs in turn, so that neighbours in the queue differ. Colour is never
the only mark: jobs also show their ids.
"""

from __future__ import annotations

from berthline.palette import BLUE, GREEN, ORANGE, PURPLE, RED, SKY

JOB_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY)
_LIGHT = (ORANGE, PURPLE, SKY)


def job_colour(job: int) -> str:
    """Return the colour of a job."""
    return JOB_COLOURS[job % len(JOB_COLOURS)]


def is_light(colour: str) -> bool:
    """Whether dark text is easier to read on a colour of a job than white."""
    return colour in _LIGHT


def share_text(probability: float) -> str:
    """Return a probability as a whole percentage; what is not 0 is not written as 0.

    Example:
        >>> share_text(0.624), share_text(0.001), share_text(0.0)
        ('62 %', '<1 %', '0 %')
    """
    if 0 < probability < 0.005:
        return "<1 %"
    return f"{100 * probability:.0f} %"


def gpus_text(gpus: float) -> str:
    """Return a number of GPUs, parts included.

    Example:
        >>> gpus_text(8.0), gpus_text(0.25)
        ('8', '0.25')
    """
    return f"{gpus:g}"
