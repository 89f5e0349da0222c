"""The generated tables about what is measured, with formulas as docstrings have them, and drawn."""

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
    from berthline.evaluate.metrics.measure import DEFINITIONS

    return table(
        ("key", "unit", "what it is", "formula, and how jobs count"),
        (
            (code(key), UNITS[key], what_it_is(function), formula_of(function))
            for key, function in DEFINITIONS.items()
        ),
    )


def statistics() -> str:
    """Return the functions that evaluate schedulers, with their formulas."""
    from berthline.evaluate.bounds import jct_lower_bound
    from berthline.evaluate.optimum import jct_optimum
    from berthline.evaluate.statistics.blocks import block_ratio
    from berthline.evaluate.statistics.improvement import probability_of_improvement
    from berthline.evaluate.statistics.interquartile_mean import interquartile_mean
    from berthline.evaluate.statistics.multiple_comparisons import holm
    from berthline.evaluate.statistics.paired import paired_ratio
    from berthline.evaluate.statistics.power import power
    from berthline.evaluate.statistics.profiles import performance_profile, ratios_to_best

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


def comparison() -> str:
    """Return the keys of a comparison, as the docstrings of its records have them."""
    from berthline.evaluate.bounds import Bound
    from berthline.evaluate.compare.comparison import Comparison, Judgement, SchedulerResult
    from berthline.evaluate.compare.oracle import Oracle
    from berthline.evaluate.statistics.paired import Ratio
    from berthline.evaluate.statistics.power import Power

    records = {
        "": (Comparison,),
        "schedulers[].": (SchedulerResult,),
        "schedulers[].against_baseline.METRIC.": (Ratio, Judgement),
        "schedulers[].power.METRIC.": (Power,),
        "bounds[].": (Bound,),
        "oracle.METRIC.": (Oracle,),
    }
    return keys_table(records)


def evaluation() -> str:
    """Return the keys of what `eval` found."""
    from berthline.evaluate.compare.protocol import Evaluation

    return keys_table({"": (Evaluation,)})


def keys_table(records: dict[str, tuple[type, ...]]) -> str:
    """Return a table of keys and meanings, each key after the prefix of its record."""
    return table(
        ("key", "meaning"),
        (
            (", ".join(code(prefix + name) for name in names.split(", ")), meaning)
            for prefix, kinds in records.items()
            for kind in kinds
            for names, meaning in attributes(kind).items()
        ),
    )


def attributes(of: type) -> dict[str, str]:
    """Return the attributes that a class's docstring describes, each on one line."""
    _, _, text = (inspect.getdoc(of) or "").partition("Attributes:\n")
    found = re.findall(r"^ {4}(\w[\w, ]*): (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    return {names: " ".join(meaning.split()).removesuffix(".") for names, meaning in found}


def figures() -> str:
    """Return the kinds of figures that a report can have."""
    from berthline.report.figures.figure_table import COMPARISON_FIGURES

    return table(
        ("name", "shows", "how to read it"),
        ((code(name), kind.title, kind.reading) for name, kind in COMPARISON_FIGURES.items()),
    )


def other_figures() -> str:
    """Return the figures of the reports on training, searches and whatif."""
    from berthline.report.figures.figure_table import (
        SEARCH_FIGURES,
        TRAINING_FIGURES,
        WHATIF_FIGURES,
    )

    kinds = {"train": TRAINING_FIGURES, "train es": SEARCH_FIGURES, "whatif": WHATIF_FIGURES}
    return table(
        ("run", "name", "shows", "how to read it"),
        (
            (code(verb), code(name), kind.title, kind.reading)
            for verb, figures_of in kinds.items()
            for name, kind in figures_of.items()
        ),
    )


PARTS = {
    "metrics": metrics,
    "statistics": statistics,
    "comparison": comparison,
    "evaluation": evaluation,
    "figures": figures,
    "other figures": other_figures,
}
