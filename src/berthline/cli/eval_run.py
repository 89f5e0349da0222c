"""The RUN argument of `berthline eval`: a scheduler, or a run directory and what it stands for.

A run directory stands for a scheduler and for the settings it ran under. Which scheduler that is
depends on the verb that wrote it: here is the one place that knows (`_SCHEDULER_OF`). A
directory of a training run, or of a checkpoint, is a scheduler itself: the learned policy.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from berthline.errors import ConfigError


class JudgedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be judged.

    Attributes:
        scheduler: its text.
        settings: the options of the run that are wanted again; empty for a scheduler's text.
        directory: the run directory; None likewise.
        verb: what wrote it; empty likewise.
    """

    scheduler: str
    settings: dict[str, Any] = {}
    directory: Path | None = None
    verb: str = ""


def read_run(text: str) -> JudgedRun:
    """Return what a RUN argument means.

    Raises:
        ConfigError: it is a directory, but none of a run that has a scheduler.
        PolicyError: it is neither a directory nor a scheduler.
    """
    from berthline.policies.learned import Learned
    from berthline.policies.scheduler import Scheduler

    path = Path(text)
    learned = Learned.find(text)
    if learned is not None:
        from berthline.learn.policy import training_settings

        return JudgedRun(
            scheduler=learned.name,
            settings=training_settings(learned),
            directory=path if path.is_dir() else None,
            verb="train",
        )
    if not _is_directory(path):
        Scheduler.parse(text)
        return JudgedRun(scheduler=text)
    try:
        verb = json.loads((path / "meta.json").read_bytes())["verb"]
        config = tomllib.loads((path / "config.toml").read_text(encoding="utf-8"))
        summary = json.loads((path / "summary.json").read_bytes())
        scheduler = _SCHEDULER_OF[verb](summary)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ConfigError(
            f"RUN is no run that can be judged: {type(error).__name__}: {error}",
            where=text,
            expected="a scheduler, a learned policy, or a run directory of berthline "
            + ", ".join(_SCHEDULER_OF),
        ) from None
    Scheduler.parse(scheduler)
    return JudgedRun(
        scheduler=scheduler, settings=_settings(config, path), directory=path, verb=verb
    )


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a formula may be longer than any file's name
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
"""Verb to what finds the scheduler in the summary of its run."""


def _settings(config: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the settings of a run that decide what its scheduler was up against."""
    from berthline.traces.workload_argument import is_generator

    wanted = ("workload", "cluster", "knowledge", "load", "set", "format", "map")
    found = {name: config[name] for name in wanted if name in config}
    workload = found.get("workload")
    if isinstance(workload, list):
        # Of several, the first: the others are judged by naming them.
        found["workload"] = workload[0]
    jobs = config.get("window_jobs", config.get("jobs"))
    if jobs is not None and is_generator(found.get("workload", "")):
        found["window_jobs"] = jobs
    if (path / "cluster.toml").is_file():
        found["cluster"] = str(path / "cluster.toml")
    elif config.get("conditions"):
        found["conditions"] = config["conditions"]
    return found
