"""Public names for statistics of results: intervals over training seeds, profiles and power."""

from __future__ import annotations

from berthline.evaluate.statistics.improvement import probability_of_improvement
from berthline.evaluate.statistics.interquartile_mean import interquartile_mean_interval
from berthline.evaluate.statistics.power import power, power_in_words
from berthline.evaluate.statistics.profiles import performance_profile

__all__ = [
    "interquartile_mean_interval",
    "performance_profile",
    "power",
    "power_in_words",
    "probability_of_improvement",
]
