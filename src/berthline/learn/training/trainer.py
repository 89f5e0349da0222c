"""Trainer: the loop around an algorithm, with validation, checkpoints and an end.

The result is the policy with the highest mean return on VAL. A run with a warm start keeps the
initial policy until another beats it on VAL, so the result is never worse than it on VAL.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import torch

from berthline.env.observation_layout import ObservationLayout
from berthline.env.option_types import number, whole
from berthline.env.options import resolve_options
from berthline.env.options_of_decisions import options_of_decisions
from berthline.env.seat_defaults import with_defaults
from berthline.env.vector import THREADS
from berthline.errors import ConfigError
from berthline.evaluate.metrics.compared_metrics import METRICS, check_metric
from berthline.evaluate.statistics.paired import paired_ratio, verdict
from berthline.learn.algorithms.algorithm_table import config_of, make_algorithm, options_for
from berthline.learn.algorithms.settings import check_minibatches
from berthline.learn.networks.device import CPU, check_device, networks_on
from berthline.learn.networks.networks import Network, NetworkConfig, check_hidden
from berthline.learn.training import checkpoint
from berthline.learn.training.environments import Environments
from berthline.learn.training.episode_metrics import EPISODE_METRICS, NAME_IN_EPISODES
from berthline.learn.training.episode_seeds import MOST_SEED, training_seed
from berthline.learn.training.events import TrainingEvent
from berthline.learn.training.recipes import pays_at_the_end
from berthline.learn.training.validation import EpisodeSet, Scores, StopRequestedError
from berthline.learn.training.validation_size import FIRST_EPISODES, episodes_needed
from berthline.policies.learned import checkpoint_of
from berthline.runs.growing_files import GrowingFiles
from berthline.runs.run_layout import CHECKPOINTS, SUMMARY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from berthline.learn.algorithms.algorithm import Algorithm
    from berthline.learn.training.events import Callback


_SHORT = 50
"""A horizon of an episode / this is much shorter than the episode."""
_LEAST_GAIN = number(0, 1)
_SEED = whole(0, MOST_SEED)


class TrainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A training run.

    Attributes:
        algorithm: its name.
        seat: of the environments.
        options: of the environments.
        settings: of the algorithm; those not given have their defaults.
        network: shape of the networks.
        num_envs: environments that step together.
        steps: environment steps in all.
        seed: of the run: weights, draws and episodes.
        validate_every: steps between validations.
        val_episodes: episodes of VAL; None = as many as `validation_size.py` finds necessary.
        report_episodes: episodes of REPORT; None = twice as many.
        patience: validations without improvement after which the run ends; 0 = never.
        least_gain: smallest improvement that counts, as a share of |best return|.
        threads: of torch and of the environments.
        metric: the rival is chosen and verdicts are stated by it; one of METRICS.
        save_every: steps between checkpoints that are kept; 0 = none.
        keep: how many of them are kept, the newest; 0 = all.
        test_seeds: the episodes of REPORT; empty = the first `report_episodes`.
        against: schedulers to compare with; empty = those of the preset, or of the seat.
    """

    algorithm: str
    seat: str
    options: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    network: NetworkConfig = NetworkConfig()
    num_envs: int = 256
    steps: int = 1_000_000
    seed: int = 0
    validate_every: int = 100_000
    val_episodes: int | None = None
    report_episodes: int | None = None
    patience: int = 0
    least_gain: float = 0.0
    threads: int = 1
    metric: str = "jct_mean"
    save_every: int = 0
    keep: int = 0
    test_seeds: tuple[int, ...] = ()
    against: tuple[str, ...] = ()


def check_config(config: TrainConfig, *, seeds: int = 1) -> None:
    """Check the configuration of a run before anything is made.

    Args:
        config: of the first run.
        seeds: number of runs, each with the next seed.

    Raises:
        ConfigError: it is not valid.
    """
    last = config.seed + seeds - 1
    if config.seed < 0 or last > MOST_SEED:
        found = f"seed is {last}" if seeds == 1 else f"seeds are {config.seed} to {last}"
        raise ConfigError(f"the {found}", expected=f"0 to {MOST_SEED:,}")
    # Torch accepts any number of threads, then crashes.
    THREADS.take("threads", config.threads)
    _LEAST_GAIN.take("least_gain", config.least_gain)
    check_hidden(config.network.hidden)
    check_metric(config.metric)
    for seed in config.test_seeds:
        _SEED.take("test seed", seed)
    settings = config_of(config.algorithm, config.settings)
    check_minibatches(config.algorithm, settings, config.num_envs)


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a run.

    Attributes:
        step: environment steps done.
        steps: total, including the whole last iteration.
        seconds: since this process began to train.
        steps_per_second: since this process began to train.
        log: values of the last iteration.
        val: mean return of the last validation; None = there was none yet.
        best: mean return of the best validation.
        against: verdict on the metric against the best heuristic on VAL.
    """

    step: int
    steps: int
    seconds: float
    steps_per_second: float
    log: dict[str, float]
    val: float | None
    best: float | None
    against: str


class Trainer:
    """A run in a directory, from its beginning or from its last checkpoint.

    Args:
        config: what to do.
        path: the run's directory, which exists.
        resume: resume from its last checkpoint.
        init_from: run directory or checkpoint with the initial policy.
        device: where the networks encode observations.

    Raises:
        ConfigError: a wrong value; there is no checkpoint to resume from, or it is for other
            observations.
    """

    def __init__(
        self,
        config: TrainConfig,
        path: Path,
        *,
        resume: bool = False,
        init_from: Path | None = None,
        device: str = CPU,
    ) -> None:
        check_config(config)
        check_device(device)
        self._must_stop: Callable[[], bool] = lambda: False
        self._callbacks: Sequence[Callback] = ()
        self._was_refused = False
        self._remark: Callable[[str], None] = lambda _: None
        torch.set_num_threads(config.threads)
        settings = config_of(config.algorithm, config.settings)
        # All of them: a policy goes on as it is when a later version has other defaults.
        options = with_defaults(config.seat, config.options)
        options = options_for(config.algorithm, config.seat, options, settings)
        config = msgspec.structs.replace(config, options=options)
        self.config, self.path = config, path
        envs = Environments(
            config.seat,
            num=config.num_envs,
            seed=training_seed(config.seed),
            options=config.options,
            num_threads=config.threads,
        )
        self.layout = envs.layout
        iteration = settings.rollout * config.num_envs
        self._all_steps = -(-config.steps // iteration) * iteration
        with networks_on(device):
            self.algorithm: Algorithm = make_algorithm(
                config.algorithm, envs, config.network, settings, seed=config.seed
            )
        self._val = self._val_of(config.val_episodes or FIRST_EPISODES)
        self._metric = NAME_IN_EPISODES[config.metric]
        self._best: float | None = None
        self._last_val: float | None = None
        self._without_gain = 0
        self._next_validation = 0
        self._next_save = config.save_every
        self._against = ""
        if resume:
            self._resume(path / CHECKPOINTS)
        elif init_from is not None:
            self.algorithm.policy.load_state_dict(_policy_tensors(init_from, self.layout))
        self.files = GrowingFiles(path, step=self.algorithm.steps)
        self._heuristics: list[Scores] = []

    def run(
        self,
        report: Callable[[Progress], None] = lambda _: None,
        must_stop: Callable[[], bool] = lambda: False,
        callbacks: Sequence[Callback] = (),
        remark: Callable[[str], None] = lambda _: None,
    ) -> dict[str, Any] | None:
        """Train, and return the summary; None = the run was stopped and can be resumed.

        Args:
            report: called after every iteration.
            must_stop: called after every iteration, and between the steps of an evaluation.
            callbacks: called with every event; one that returns False stops the run.
            remark: called with warnings about settings that do not fit the episodes.
        """
        self._must_stop = lambda: self._was_refused or must_stop()
        self._callbacks, self._was_refused, self._remark = callbacks, False, remark
        try:
            self._tell("begin", msgspec.to_builtins(self.config))
            summary = self._train(report)
        except StopRequestedError:
            # An evaluation was stopped: it changes nothing, and a resumed run makes it again.
            if self._best is not None:
                self._save("last")
            self.files.close()
            self._tell("end", {})
            return None
        self._tell("end", summary)
        return summary

    def _tell(self, kind: Any, values: dict[str, Any], path: Path | None = None) -> None:
        for callback in self._callbacks:
            event = TrainingEvent(
                kind=kind, step=self.algorithm.steps, values=values, path=path or self.path
            )
            self._was_refused |= callback(event) is False

    def _train(self, report: Callable[[Progress], None]) -> dict[str, Any]:
        config, algorithm = self.config, self.algorithm
        began, first = time.monotonic(), algorithm.steps
        self._heuristics = self._rivals_on_val()
        for sentence in self._warnings():
            self._remark(sentence)
        # A run may have been stopped in a validation that was due.
        if self._best is None or self._is_due():
            self._validate()
        while algorithm.steps < config.steps and not self._has_ended():
            log = algorithm.iterate(algorithm.steps / config.steps)
            seconds = time.monotonic() - began
            speed = (algorithm.steps - first) / seconds
            self.files.log(algorithm.steps, {**log, "charts/SPS": speed})
            self._tell("progress", {**log, "charts/SPS": speed})
            if self._is_due():
                self._validate()
            if config.save_every and algorithm.steps >= self._next_save:
                self._next_save = algorithm.steps + config.save_every
                self._save("step")
                self._save("last")
            report(
                Progress(
                    step=algorithm.steps,
                    steps=self._all_steps,
                    seconds=seconds,
                    steps_per_second=speed,
                    log=log,
                    val=self._last_val,
                    best=self._best,
                    against=self._against,
                )
            )
            if self._must_stop():
                raise StopRequestedError
        self._save("last")
        summary = self._summary()
        self.files.write_json(SUMMARY, summary)
        self.files.close()
        return summary

    def _val_of(self, episodes: int) -> EpisodeSet:
        return EpisodeSet(
            self.config.seat,
            self.config.options,
            part="val",
            episodes=episodes,
            must_stop=lambda: self._must_stop(),
        )

    def _rivals_on_val(self) -> list[Scores]:
        """Return the rivals' scores on VAL, whose size follows from them unless it was given.

        Raises:
            ConfigError: all are equal, so that VAL cannot tell one policy from another.
        """
        config = self.config
        found = self._val.heuristics(config.against)
        if len(found) > 1 and all_equal(found, self._metric):
            waits = any(one.mean("mean_wait") > 0 for one in found)
            raise ConfigError(
                f"all {len(found)} rivals have the same {METRICS[config.metric].label} in all "
                f"{self._val.episodes} VAL episodes",
                where=f"environment {config.seat!r}",
                expected="episodes in which it matters what is chosen",
                hint="name rivals that differ, with `against`"
                if waits
                else "no job waits: raise the load, use a smaller cluster or longer episodes, or "
                "begin in a busy cluster, with start=warm",
            )
        if config.val_episodes is None:
            needed = episodes_needed(found, self._metric)
            if needed > self._val.episodes:
                self._val = self._val_of(needed)
                found = self._val.heuristics(config.against)
        return found

    def _warnings(self) -> list[str]:
        """Return what in the settings does not fit the episodes; needs the heuristics."""
        config = self.config
        settings = config_of(config.algorithm, config.settings)
        resolved = resolve_options(config.seat, config.options)
        found = horizon_warnings(
            getattr(settings, "horizon", None),
            seconds=float(np.median(self._heuristics[0].metrics["makespan"])),
            at_the_end=pays_at_the_end(resolved.reward, resolved.reward_weights),
        )
        capacity, jobs = getattr(settings, "capacity", None), resolved.episode_jobs
        if capacity and jobs and capacity // config.num_envs < jobs:
            found.append(
                f"the replay holds {capacity // config.num_envs:,} steps of each environment, and "
                f"an episode has {jobs:,} jobs: use fewer environments or a larger capacity"
            )
        return found

    def _is_due(self) -> bool:
        """Whether a validation is due at this step."""
        step, config = self.algorithm.steps, self.config
        was_made = self._next_validation == step + config.validate_every
        return not was_made and (step >= self._next_validation or step >= config.steps)

    def _has_ended(self) -> bool:
        return 0 < self.config.patience <= self._without_gain

    def _validate(self) -> None:
        step = self.algorithm.steps
        scores = self._val.policy(self.config.algorithm, self.algorithm.policy)
        value = sum(scores.episode_return) / len(scores.episode_return)
        self._last_val = value
        rival = best_of(self._heuristics, self._metric)
        ratio = paired_ratio(scores.metrics[self._metric], rival.metrics[self._metric])
        about = METRICS[self.config.metric]
        words = verdict(ratio, higher_is_better=about.higher_is_better)
        self._against = f"{about.label} {words} against {rival.name}"
        values = {
            "val/return": value,
            **{f"val/{metric}": scores.mean(metric) for metric in scores.metrics},
            # A ratio that does not exist is no number; 0 would look like a success.
            "val/against_best_heuristic": math.nan if ratio.ratio is None else ratio.ratio,
        }
        self.files.log(step, values)
        self.files.add_to_curve(step, {k.removeprefix("val/"): v for k, v in values.items()})
        self._tell("validation", values)
        self._next_validation = step + self.config.validate_every
        needed = (
            None if self._best is None else self._best + self.config.least_gain * abs(self._best)
        )
        if needed is None or value > needed:
            self._best, self._without_gain = value, 0
            self._save("best")
        else:
            self._without_gain += 1
        self._save("last")

    def _save(self, kind: str) -> None:
        facts = {
            "algorithm": self.config.algorithm,
            "config": msgspec.to_builtins(self.config),
            "environment": options_of_decisions(self.config.seat, self.config.options),
            "layout": msgspec.to_builtins(self.layout),
            "layout_sha256": self.layout.sha256,
            "state": self.algorithm.state(),
            "trainer": {
                "best": self._best,
                "last_val": self._last_val,
                "without_gain": self._without_gain,
                "next_validation": self._next_validation,
                "next_save": self._next_save,
                "against": self._against,
            },
        }
        tensors = self.algorithm.tensors()
        if kind != "last":
            # It is not for resuming, and a replay is a hundred times as large as a policy.
            tensors = {name: t for name, t in tensors.items() if name.startswith("policy.")}
        written = checkpoint.save(
            self.path / CHECKPOINTS,
            kind,
            self.algorithm.steps,
            tensors,
            facts,
            keep=self.config.keep if kind == "step" else 1,
        )
        self._tell("checkpoint", {"kind": kind}, written)

    def _resume(self, directory: Path) -> None:
        found = checkpoint.find(directory, "last")
        if found is None:
            raise ConfigError(
                "there is no checkpoint to resume from",
                where=str(directory),
                hint="omit `resume` to begin a new run",
            )
        loaded = checkpoint.load(found)
        msgspec.convert(loaded.facts["layout"], ObservationLayout).check_same(
            self.layout, where=str(found)
        )
        self.algorithm.restore(loaded)
        trainer = loaded.facts["trainer"]
        self._best, self._last_val = trainer["best"], trainer["last_val"]
        self._without_gain = trainer["without_gain"]
        self._next_validation = trainer["next_validation"]
        self._next_save = trainer.get("next_save", self._next_save)
        self._against = trainer["against"]

    def _summary(self) -> dict[str, Any]:
        """Evaluate the best policy on REPORT, once."""
        config = self.config
        path = checkpoint.find(self.path / CHECKPOINTS, "best")
        if path is None:
            raise ConfigError("the best checkpoint is missing", where=str(self.path))
        best = Network.load(self.layout, config.network, checkpoint.load(path).part("policy"))
        report = EpisodeSet(
            config.seat,
            config.options,
            part="report",
            episodes=config.report_episodes or 2 * self._val.episodes,
            must_stop=self._must_stop,
            test_seeds=config.test_seeds,
        )
        ours = report.policy(config.algorithm, best)
        # The rival was chosen on VAL, like the policy; both are evaluated on REPORT.
        chosen = best_of(self._heuristics, self._metric).name
        random = report.random()
        rivals = report.heuristics([h.name for h in self._heuristics])
        others = [random, *(report.with_return(rival) for rival in rivals)]
        best_step = int(path.name.partition("-")[2])
        return {
            "algorithm": config.algorithm,
            "seat": config.seat,
            "seed": config.seed,
            "steps": self.algorithm.steps,
            "updates": self.algorithm.updates,
            "metric": config.metric,
            "remarks": remarks_of(
                others, self._metric, updates=self.algorithm.updates, best_step=best_step
            ),
            "has_verdict": self.algorithm.updates > 0
            and not all_equal([ours, *others[1:]], self._metric),
            "best_checkpoint": path.name,
            # A name that nothing learned may not have.
            "policy": config.algorithm + ("" if best_step else " before the first step"),
            "val_episodes": self._val.episodes,
            "val_return": self._best,
            "layout_sha256": self.layout.sha256,
            "best_heuristic": chosen,
            "report": {
                "episodes": report.episodes,
                "return": {
                    "policy": ours.mean_return,
                    **{other.name: other.mean_return for other in others},
                },
                "policy": {metric: ours.mean(metric) for metric in ours.metrics},
                "against": {other.name: against(ours, other) for other in others},
                **{
                    f"{key}_of_episodes": {
                        "policy": ours.metrics[name],
                        **{other.name: other.metrics[name] for other in others},
                    }
                    for key, name in (("metric", self._metric), ("mean_jct", "mean_jct"))
                },
                "return_of_episodes": {
                    "policy": ours.episode_return,
                    **{one.name: one.episode_return for one in others if one.episode_return},
                },
            },
        }


def remarks_of(others: list[Scores], metric: str, *, updates: int, best_step: int) -> list[str]:
    """Return what a reader must know before the verdicts; empty = nothing.

    Args:
        others: random actions and the rivals on REPORT.
        metric: that verdicts are about, by its name in episodes.
        updates: of the network, in the whole run.
        best_step: step of the checkpoint that is evaluated.
    """
    found = []
    if updates == 0:
        found.append(
            "no update was made, so nothing was learned: the steps ended before learning begins"
        )
    elif best_step == 0:
        found.append(
            "no policy was better on VAL than the one before the first step, which is evaluated"
        )
    rivals = others[1:]
    if all(rival.mean("mean_wait") == 0 for rival in rivals):
        found.append(
            "no job waited under any rival, so there is nothing to gain: raise the load, or use a "
            "smaller cluster"
        )
    elif all_equal(rivals, metric):
        found.append("all rivals are equal: the choice that they differ in has no effect here")
    return found


def horizon_warnings(horizon: float | None, *, seconds: float, at_the_end: bool) -> list[str]:
    """Return a warning if rewards fade long before their decisions could learn from them.

    Args:
        horizon: seconds after which rewards count 1 / e; None = they do not fade.
        seconds: that an episode takes.
        at_the_end: whether there are rewards at the end of an episode.
    """
    least = seconds / (2 if at_the_end else _SHORT)
    if horizon is None or horizon >= least:
        return []
    when = "with rewards at its end, that is too short" if at_the_end else "that may be too short"
    return [
        f"rewards fade within {horizon:,.0f} s (horizon), and an episode lasts {seconds:,.0f} s: "
        f"{when}; without a horizon rewards do not fade"
    ]


def all_equal(scores: list[Scores], metric: str) -> bool:
    """Whether all have the same value of a metric in every episode."""
    return all(one.metrics[metric] == scores[0].metrics[metric] for one in scores)


def best_of(scores: list[Scores], metric: str) -> Scores:
    """Return the scores with the best mean of a metric; in a tie, the first."""
    sign = -1 if METRICS[EPISODE_METRICS[metric]].higher_is_better else 1
    return min(scores, key=lambda one: sign * one.mean(metric))


def against(ours: Scores, theirs: Scores) -> dict[str, Any]:
    """Return paired ratios on the same episodes, and their verdicts."""
    found: dict[str, Any] = {}
    for metric, values in ours.metrics.items():
        ratio = paired_ratio(values, theirs.metrics[metric])
        found[metric] = {
            "mean": theirs.mean(metric),
            **msgspec.to_builtins(ratio),
            "verdict": verdict(ratio, higher_is_better=metric == "utilization"),
        }
    return found


def _policy_tensors(path: Path, layout: ObservationLayout) -> dict[str, Any]:
    """Return the policy of a checkpoint, or of the best checkpoint of a run.

    Raises:
        ConfigError: there is none, or it was trained on other observations.
    """
    found = checkpoint_of(path)
    if found is None:
        raise ConfigError("no checkpoint to begin from", where=str(path))
    loaded = checkpoint.load(found)
    msgspec.convert(loaded.facts["layout"], ObservationLayout).check_same(layout, where=str(found))
    return loaded.part("policy")
