"""The generated parts of the page about metrics: formulas as docstrings have them."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from markdown_text import code, table

if TYPE_CHECKING:
    from collections.abc import Callable

UNITS = {
    "jobs": "jobs",
    "jct": "s",
    "wait": "s",
    "slowdown": "ratio",
    "bounded_slowdown": "ratio",
    "makespan": "s",
    "utilization.gpu": "share",
    "utilization.flops": "share",
    "utilization.available": "share",
    "energy_kwh": "kWh",
    "energy_per_job_kwh": "kWh",
    "fairness.jain": "1/n to 1",
    "fairness.rho": "ratio",
    "starvation": "s",
    "queue.mean": "jobs",
    "queue.max": "jobs",
    "preemptions": "events",
    "preemptions_by_reason": "events",
    "lost_gpu_hours": "GPU-hours",
    "refusals": "events",
    "outages": "events",
    "deadline_miss_rate": "share",
    "load_imbalance": "0 to 0.5",
    "fragmentation": "share",
    "by_priority": "",
}
"""Of every metric that has a function; a missing one is an error."""


def metrics() -> str:
    """Return every metric with its unit and formula."""
    from berthline.evaluate.metrics import DEFINITIONS

    return table(
        ("key", "unit", "what it is", "formula, and how jobs count"),
        (
            (code(key), UNITS[key], what_it_is(function), formula_of(function))
            for key, function in DEFINITIONS.items()
        ),
    )


def judging() -> str:
    """Return the functions that judge, with their formulas."""
    from berthline.evaluate.blocks import block_ratio
    from berthline.evaluate.bounds import jct_lower_bound
    from berthline.evaluate.improvement import probability_of_improvement
    from berthline.evaluate.interquartile_mean import interquartile_mean
    from berthline.evaluate.multiple_comparisons import holm
    from berthline.evaluate.optimum import jct_optimum
    from berthline.evaluate.power import power
    from berthline.evaluate.profiles import performance_profile, ratios_to_best
    from berthline.evaluate.statistics import paired_ratio

    functions: tuple[Callable[..., object], ...] = (
        *(paired_ratio, holm, power, block_ratio),
        *(interquartile_mean, probability_of_improvement, performance_profile, ratios_to_best),
        *(jct_lower_bound, jct_optimum),
    )
    return table(
        ("function of `berthline.evaluate`", "what it gives", "formula"),
        (
            (
                code(
                    f"{function.__module__.removeprefix('berthline.evaluate.')}.{function.__name__}"
                ),
                what_it_is(function),
                formula_of(function),
            )
            for function in functions
        ),
    )


def what_it_is(function: Callable[..., object]) -> str:
    """Return a function's first sentence without its `Return`."""
    sentence = (inspect.getdoc(function) or "").split("\n\n")[0]
    return " ".join(sentence.split()).removeprefix("Return ").removesuffix(".")


def formula_of(function: Callable[..., object]) -> str:
    """Return the paragraph of a function's docstring that begins with `Formula:`.

    Raises:
        SystemExit: there is none.
    """
    found = re.search(r"^Formula: (.*?)(?:\n\n|\Z)", inspect.getdoc(function) or "", re.S | re.M)
    if found is None:
        raise SystemExit(f"error: the docstring of {function.__qualname__} has no formula")
    return " ".join(found[1].split()).removesuffix(".")


PARTS = {"metrics": metrics, "judging": judging}
