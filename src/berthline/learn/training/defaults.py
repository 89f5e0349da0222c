"""Settings and steps of algorithms that differ by seat, and what training makes of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.env.options import Options, resolve_options
from berthline.env.rewards import resolve_reward
from berthline.env.sources.make_source import trace_of
from berthline.errors import ConfigError
from berthline.learn.algorithms.algorithm_table import ALGORITHMS
from berthline.model.speeds import scaling_words
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.split import PARTS, SHORT_FRACTIONS, split_by_time, usual_gap
from berthline.traces.workload_argument import is_generator

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from berthline.model.workload import Workload

_STEPS = {("ppo", "gate"): 800_000}
"""Steps by algorithm and seat, where they differ from the algorithm's default."""

_SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    # The cost of idle GPUs shows late, so rewards are discounted slowly.
    ("ppo", "gate"): {
        "epochs": 4,
        "minibatches": 32,
        "learning_rate": 3e-3,
        # The benefit of holding is learned late; a decreasing rate would be too low by then.
        "learning_rate_schedule": "constant",
        "horizon": 43_200.0,
        "trace_horizon": 3_600.0,
        "no_op": -1.0,
        "entropy": 0.03,
        "entropy_schedule": "constant",
    }
}


CREDIT = "sjf"
"""The scheduler that rewards are credited against unless told otherwise; see the next function."""

_MOST_CREDITED_JOBS = 512
"""In longer episodes, playing them to the end after each decision takes too long."""


def is_usually_credited(algorithm: str, seat: str, options: Options) -> bool:
    """Whether `train` credits rewards unless told otherwise: where that was measured to help.

    That is Pick with ranks and rewards about JCT or waits; docs/results/learning-first-step.md.
    """
    jobs = options.episode_jobs
    return (
        algorithm in ("ppo", "d3qn", "sac")
        and (seat, options.semantics) == ("pick", "rank")
        and options.preset is None
        and options.knowledge != "none"
        and jobs is not None
        and jobs <= _MOST_CREDITED_JOBS
        and resolve_reward(options.reward, options.reward_weights).metric == "jct_mean"
    )


def on_training_part(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of environments, restricted to the training part of a trace.

    Raises:
        ConfigError: the options name another part, which VAL or REPORT is cut from.
    """
    workload = options.get("workload", Options.workload)
    if isinstance(workload, str) and is_generator(workload):
        return options
    if options.get("split", "train") != "train":
        raise ConfigError(
            f"training on split {options['split']!r} of a trace",
            expected="train: the other parts are for choosing and evaluating policies",
            hint="omit split",
        )
    return {**options, "split": "train"}


def fit_to_trace(
    seat: str, options: dict[str, Any], given: Container[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return options whose split and episodes suit the length of a trace, and what was changed.

    The parts of a short trace have a shorter gap between them, and more of its jobs are for
    validation; if a part still has fewer than two episodes, episodes are shorter.

    Args:
        seat: of the environments.
        options: of the environments.
        given: options that the user has set, which stay as they are.
    """
    workload = options.get("workload", Options.workload)
    if isinstance(workload, str) and is_generator(workload):
        return options, []
    resolved = resolve_options(seat, options)
    cluster = resolve_cluster(resolved.cluster)
    trace = trace_of(resolved, cluster)
    sentences = scaling_words(trace, cluster)
    found: dict[str, Any] = {}
    remarks = []
    wanted = resolved.episode_jobs
    fractions, gap = resolved.split_fractions, resolved.split_gap
    if "split_gap" not in given:
        gap = usual_gap(trace, fractions)
    if "split_fractions" not in given and wanted and _smallest(trace, fractions, gap) < 2 * wanted:
        fractions = SHORT_FRACTIONS
        gap = gap if "split_gap" in given else usual_gap(trace, fractions)
    if gap != resolved.split_gap:
        found["split_gap"] = gap
        remarks.append(f"split_gap={gap:,.0f} s instead of {resolved.split_gap:,.0f}")
    if fractions != resolved.split_fractions:
        found["split_fractions"] = fractions
        remarks.append(f"split_fractions={list(fractions)}")
    smallest = _smallest(trace, fractions, gap)
    if wanted and "episode_jobs" not in given and smallest < 2 * wanted:
        found["episode_jobs"] = max(smallest // 2, 1)
        remarks.append(f"episode_jobs={found['episode_jobs']:,} instead of {wanted:,}")
    if (
        resolved.knowledge == "estimate"
        and resolved.preset is None
        and "knowledge" not in given
        and not (trace.estimate > 0).any()
    ):
        found["knowledge"] = "predicted"
        remarks.append("knowledge=predicted, because no job has an estimate")
    if not found:
        return options, sentences
    text = f"defaults for {trace.name}, {len(trace):,} jobs: {', '.join(remarks)}"
    return {**options, **found}, [text, *sentences]


def _smallest(trace: Workload, fractions: Sequence[float], gap: float) -> int:
    """Return the number of jobs in the smallest part of a split.

    Raises:
        ConfigError: a part has no jobs.
    """
    counts = split_by_time(trace, fractions, gap_seconds=gap).counts()
    return min(counts[part] for part in PARTS)


def default_settings(algorithm: str, seat: str) -> dict[str, Any]:
    """Return the settings of an algorithm whose defaults differ for a seat."""
    return dict(_SETTINGS.get((algorithm, seat), {}))


def settings_by_seat(algorithm: str) -> dict[str, dict[str, Any]]:
    """Return the settings whose defaults differ for a seat, by seat."""
    return {seat: dict(found) for (name, seat), found in _SETTINGS.items() if name == algorithm}


def default_steps(algorithm: str, seat: str) -> int:
    """Return the default number of steps of an algorithm in a seat: some minutes on one core."""
    return _STEPS.get((algorithm, seat), ALGORITHMS[algorithm].steps)
