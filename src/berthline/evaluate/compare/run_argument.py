"""The RUN argument of `berthline eval`: a scheduler, or a run directory and what it stands for.

A run directory stands for a scheduler and for the settings it ran under. Which scheduler that is
depends on the verb that wrote the directory; only this module knows (`_SCHEDULER_OF`). A directory
of a training run, or of a checkpoint, is itself a scheduler: the learned policy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.errors import ConfigError
from berthline.runs.open_run import open_run
from berthline.runs.run_layout import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.policies.learned import Learned


class JudgedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler to evaluate.

    Attributes:
        scheduler: its text.
        settings: the options of the run to use again; empty for a scheduler's text.
        directory: the run directory; None for a scheduler's text.
        verb: the verb that wrote it; empty for a scheduler's text.
        metric: what it is compared by: that of its training, if it was trained.
    """

    scheduler: str
    settings: dict[str, Any] = {}
    directory: Path | None = None
    verb: str = ""
    metric: str = "jct_mean"


def read_run_argument(text: str) -> JudgedRun:
    """Return what a RUN argument means.

    Raises:
        ConfigError: it is a directory, but not that of a run with a scheduler.
        PolicyError: it is neither a directory nor a scheduler.
    """
    from berthline.policies.learned import Learned
    from berthline.policies.scheduler import Scheduler

    path = Path(text)
    learned = Learned.find(text)
    if learned is not None and learned.bandit is None:
        return JudgedRun(
            scheduler=learned.name,
            settings=_settings_of_training(learned),
            directory=path if path.is_dir() else None,
            verb="train",
            metric=_metric_of_training(learned),
        )
    if not _is_directory(path):
        Scheduler.parse(text)
        return JudgedRun(scheduler=text)
    try:
        run = open_run(path)
        verb = str(run.meta["verb"])
        scheduler = _SCHEDULER_OF[verb](run.results)
    except (ConfigError, KeyError, TypeError, IndexError) as error:
        reason = error.what if isinstance(error, ConfigError) else f"no {error} in it"
        raise ConfigError(
            f"`run` cannot be evaluated: {reason}",
            where=text,
            expected="a scheduler, a learned policy, or a run directory of berthline "
            + ", ".join(_SCHEDULER_OF),
        ) from None
    Scheduler.parse(scheduler)
    return JudgedRun(
        scheduler=scheduler, settings=_settings(run.settings, path), directory=path, verb=verb
    )


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a formula may be too long for a file name
        return False


def _of_comparison(summary: dict[str, Any]) -> str:
    """Return the scheduler with the lowest mean JCT, over all cells where there are several."""
    best: str = summary.get("overall", summary)["best"]["jct_mean"]
    return best


_SCHEDULER_OF: dict[str, Callable[[dict[str, Any]], str]] = {
    "sim": lambda summary: str(summary["scheduler"]),
    "compare": _of_comparison,
    "demo": _of_comparison,
    "eval": lambda summary: str(summary["run"]),
    "train": lambda summary: str(summary["scheduler"]),
}
"""Maps a verb to the function that finds the scheduler in a run's summary."""


def _settings_of_training(learned: Learned) -> dict[str, Any]:
    """Return the settings that a policy was trained with."""
    from berthline.env.options import resolve_options

    stored = learned.facts["config"]["options"]
    options = resolve_options(learned.seat, stored, are_complete=True)
    found = {
        "workload": options.workload,
        "cluster": options.cluster,
        "knowledge": learned.knowledge,
        "window_jobs": options.episode_jobs,
        "set": {name: str(value) for name, value in options.dials.items()},
        # For a range, its middle, which is the average over episodes.
        "load": sum(options.load) / 2 if isinstance(options.load, tuple | list) else options.load,
        "conditions": dict(options.conditions or {}),
    }
    return {name: value for name, value in found.items() if value not in (None, {})}


def _metric_of_training(learned: Learned) -> str:
    """Return the metric that a policy was compared by; policies of 0.1 had mean JCT."""
    return str(learned.facts["config"].get("metric", "jct_mean"))


def _settings(config: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the settings of a run that define the conditions its scheduler ran under."""
    from berthline.traces.workload_argument import is_generator

    wanted = ("workload", "cluster", "knowledge", "load", "set", "format", "map")
    found = {name: config[name] for name in wanted if name in config}
    workload = found.get("workload")
    if isinstance(workload, list):
        # If there are several, the first: name the others to evaluate them.
        found["workload"] = workload[0]
    jobs = config.get("window_jobs", config.get("jobs"))
    if jobs is not None and is_generator(found.get("workload", "")):
        found["window_jobs"] = jobs
    if (path / CLUSTER).is_file():
        found["cluster"] = str(path / CLUSTER)
    elif config.get("conditions"):
        found["conditions"] = config["conditions"]
    return found
