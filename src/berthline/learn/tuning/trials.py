"""sweep: train many times with other settings, drawn by Optuna, and say what mattered.

The state of a sweep is the list of its trials. Each is a run directory of its own. Optuna draws the
values of trial k from the trials before it, with a seed that follows from k; so a sweep that was
killed makes the same trials as one that was not.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.atomic_write import write_atomically
from berthline.env.options import resolve_options
from berthline.errors import ConfigError, MissingExtraError
from berthline.evaluate.metrics.compared_metrics import METRICS as COMPARED
from berthline.learn.training.train import Watch, train, train_config
from berthline.learn.tuning.swept_values import Swept, arguments, read_swept
from berthline.runs.growing_files import write_json
from berthline.runs.run_layout import CONFIG, CURVE, METRICS, SUMMARY, TRIAL_PREFIX
from berthline.runs.run_output import RunOutput
from berthline.runs.training_directory import open_training, undone_if_refused
from berthline.size_limits import check_sizes
from berthline.text_or_path import text_of

if TYPE_CHECKING:
    from berthline.learn.training.events import Callback
    from berthline.text_or_path import TextOrPath

_FEW = 10
"""With fewer trials, nothing is said about what mattered."""
_SEED_STEP = 1_000_003


class SweepTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One trial of a sweep.

    Attributes:
        trial: its number.
        params: what was varied, with its values.
        value: the metric relative to the best heuristic, on VAL; None = it does not exist.
        directory: its run directory, which is a scheduler.
    """

    trial: int
    params: dict[str, Any]
    value: float | None
    directory: str


@dataclasses.dataclass(frozen=True)
class SweepResult:
    """The result of `sweep`.

    Attributes:
        directory: the run directory, with one of each trial inside.
        summary: the contents of summary.json; None = it was stopped and can be resumed.
    """

    directory: Path
    summary: dict[str, Any] | None


def sweep(
    algorithm: str,
    vary: Mapping[str, Any],
    *,
    trials: int,
    out: TextOrPath | RunOutput,
    seed: int = 0,
    resume: bool = False,
    device: str = "cpu",
    must_stop: Callable[[], bool] | None = None,
    watch: Watch | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    remark: Callable[[str], None] | None = None,
    **training: Any,
) -> SweepResult:
    """Train many times with other settings, and report which did best on VAL and what mattered.

    The same as `berthline train ALGORITHM --sweep`. Trials are compared by the metric relative to
    the best heuristic on the VAL episodes, so the load may be varied too. The first trial has the
    defaults, where they are among the values. Needs the extra `sweep`.

    Args:
        algorithm: the algorithm: `ppo`, ...
        vary: by name, the values: `config.NAME` is a setting of the algorithm, `set.NAME` an option
            of the environment; also `network`, `hidden`, `envs`. A range is (low, high) or (low,
            high, "log"), choices are a list; or a text as on the command line.
        trials: number of trials, those of an interrupted sweep included.
        out: the run directory; `trial-K` inside is the run of a trial.
        seed: of the draws, and of every training.
        resume: continue an interrupted sweep in `out`, or one with fewer trials.
        device: as in `train`.
        must_stop: called repeatedly; once it returns true, the trial is saved and the sweep stops.
        watch: shows the progress of each trial.
        callbacks: get the events of all trials.
        remark: called with a sentence before each trial.
        training: the other parameters of `train`, the same in all trials.

    Raises:
        BerthlineError: an unknown name, a wrong value, or a directory that must not be replaced.
        MissingExtraError: optuna is not installed.
    """
    check_sizes(optional=False, trials=trials)
    swept = read_swept(vary)
    output = RunOutput.of(out, "berthline.sweep(...)")
    if output is None:
        raise ConfigError("`out` is missing", expected="the directory of the sweep")
    for name in ("seeds", "init_from"):
        if training.pop(name, None) not in (None, 1):
            raise ConfigError(f"`{name}` with a sweep", expected="one seed, from the beginning")
    training = {**training, "seed": seed}
    usual = _checked(algorithm, swept, training)
    _import_optuna()
    path = Path(text_of("out", output.path))
    run = _Sweep(algorithm, swept, training, path, usual)
    kept: dict[str, Any] = {
        "algorithm": algorithm,
        "seed": seed,
        "steps_of_trial": usual.steps,
        "vary": {one.name: one.text for one in swept},
        "training": json.loads(json.dumps(_plain(training), default=str)),
    }
    with undone_if_refused(path, begins=not resume):
        if resume and (path / CONFIG).is_file() and len(run.rows()) < trials:
            (path / SUMMARY).unlink(missing_ok=True)
        open_training(path, kept, command=output.command, seed=seed, resume=resume)
        options = {
            "device": device,
            "must_stop": must_stop,
            "watch": watch,
            "callbacks": callbacks,
        }
        while len(rows := run.rows()) < trials:
            if must_stop is not None and must_stop():
                return SweepResult(path, None)
            if not run.make(rows, trials, output.command, options, remark):
                return SweepResult(path, None)
    summary = run.summary(rows)
    write_json(path / SUMMARY, summary)
    return SweepResult(path, summary)


def _plain(training: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in training.items() if value is not None}


def _checked(algorithm: str, swept: list[Swept], training: Mapping[str, Any]) -> Any:
    """Return the configuration without a sweep, after a check of the ends of every range."""
    for one in swept:
        for end in one.ends:
            found = train_config(algorithm, **arguments({one.name: end}, training))
            resolve_options(found.seat, found.options)
    return train_config(algorithm, **training)


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", "sweep", "a sweep") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


@dataclasses.dataclass(frozen=True)
class _Sweep:
    """A sweep in a directory."""

    algorithm: str
    swept: list[Swept]
    training: Mapping[str, Any]
    path: Path
    usual: Any  # a TrainConfig; its module imports torch

    def rows(self) -> list[SweepTrial]:
        """Return the trials that are complete; a line that a crash cut off is not one."""
        file = self.path / METRICS
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.is_file() else []
        return [msgspec.json.decode(line, type=SweepTrial) for line in lines if line.endswith("\n")]

    def make(
        self,
        rows: list[SweepTrial],
        trials: int,
        command: str,
        options: Mapping[str, Any],
        remark: Callable[[str], None] | None,
    ) -> bool:
        """Make the next trial; False = it was stopped."""
        number = len(rows)
        values = self._values(rows)
        own = self.path / f"{TRIAL_PREFIX}{number:03}"
        if remark is not None:
            shown = ", ".join(f"{name}={_short(value)}" for name, value in values.items())
            remark(f"trial {number + 1} of {trials}: {shown}")
        if (own / SUMMARY).is_file():
            summary = json.loads((own / SUMMARY).read_bytes())
        else:
            summary = train(
                self.algorithm,
                out=RunOutput(own, command),
                resume=(own / CONFIG).is_file(),
                **options,
                **arguments(values, self.training),
            ).summary
        if summary is None:
            return False
        row = SweepTrial(
            trial=number, params=values, value=_value_on_val(own, summary), directory=own.name
        )
        text = "".join(msgspec.json.encode(one).decode() + "\n" for one in [*rows, row])
        write_atomically(self.path / METRICS, text.encode())
        return True

    def _values(self, rows: list[SweepTrial]) -> dict[str, Any]:
        """Return the values of the next trial: the defaults, then what Optuna draws."""
        usual = self._usual_values()
        if not rows and usual is not None:
            return usual
        study = self._study(rows)
        drawn = study.ask(self._distributions()).params
        return {one.name: self._of_draw(one, drawn[one.name]) for one in self.swept}

    def _study(self, rows: list[SweepTrial]) -> Any:
        optuna = _import_optuna()
        seed = (self.usual.seed * _SEED_STEP + len(rows)) % 2**32
        higher = COMPARED[self.usual.metric].higher_is_better
        study = optuna.create_study(
            direction="maximize" if higher else "minimize",
            sampler=optuna.samplers.TPESampler(seed=seed),
        )
        distributions = self._distributions()
        for row in rows:
            state = optuna.trial.TrialState
            params = {one.name: self._to_draw(one, row.params[one.name]) for one in self.swept}
            study.add_trial(
                optuna.trial.create_trial(
                    state=state.FAIL if row.value is None else state.COMPLETE,
                    params=params,
                    distributions=distributions,
                    value=row.value,
                )
            )
        return study

    def _distributions(self) -> dict[str, Any]:
        kinds = _import_optuna().distributions
        found: dict[str, Any] = {}
        for one in self.swept:
            if one.choices:
                # By their number: Optuna takes no lists as choices.
                found[one.name] = kinds.CategoricalDistribution(range(len(one.choices)))
            elif one.is_whole:
                found[one.name] = kinds.IntDistribution(int(one.low), int(one.high), log=one.is_log)
            else:
                found[one.name] = kinds.FloatDistribution(one.low, one.high, log=one.is_log)
        return found

    @staticmethod
    def _of_draw(one: Swept, drawn: Any) -> Any:
        if one.choices:
            return one.choices[drawn]
        return drawn if one.is_whole else float(f"{drawn:.4g}")

    @staticmethod
    def _to_draw(one: Swept, value: Any) -> Any:
        if one.choices:
            return [_listed(choice) for choice in one.choices].index(_listed(value))
        return min(max(value, one.low), one.high)  # four digits may lie outside by a hair

    def _usual_values(self) -> dict[str, Any] | None:
        """Return the values that training has without a sweep; None = some are not tried."""
        options = vars(resolve_options(self.usual.seat, self.usual.options))
        found: dict[str, Any] = {}
        for one in self.swept:
            table, _, field = one.name.rpartition(".")
            if table == "config":
                value = self.usual.settings[field]
            elif table == "set":
                value = options[field]
            else:
                network = self.usual.network
                value = {
                    "network": network.kind,
                    "hidden": network.hidden,
                    "envs": self.usual.num_envs,
                }[one.name]
                if one.name == "hidden" and not one.takes(value):
                    value = "-".join(map(str, network.hidden))
            if not one.takes(value):
                return None
            found[one.name] = value
        return found

    def summary(self, rows: list[SweepTrial]) -> dict[str, Any]:
        """Return the trials, the best of them, and what mattered."""
        higher = COMPARED[self.usual.metric].higher_is_better
        done = [row for row in rows if row.value is not None]
        if not done:
            raise ConfigError(
                "no trial has a value: no job waits under any rival, or nothing can be compared",
                where=str(self.path),
                hint="raise the load",
            )
        best = min(done, key=lambda row: -_number(row) if higher else _number(row))
        found = json.loads((self.path / best.directory / SUMMARY).read_bytes())
        return {
            "algorithm": self.algorithm,
            "seat": self.usual.seat,
            "seed": self.usual.seed,
            "metric": self.usual.metric,
            "steps": self.usual.steps,
            "vary": {one.name: one.text for one in self.swept},
            "log": [one.name for one in self.swept if one.is_log],
            "trials": [msgspec.to_builtins(row) for row in rows],
            "best": msgspec.to_builtins(best),
            "importance": self._importance(done),
            "report": found["report"],
            "best_heuristic": found["best_heuristic"],
        }

    def _importance(self, done: list[SweepTrial]) -> dict[str, float]:
        """Return the share of the scatter of values that each parameter explains; empty = few."""
        if len(done) < _FEW or len({row.value for row in done}) < 2:
            return {}
        optuna = _import_optuna()
        try:
            found = optuna.importance.get_param_importances(
                self._study(done),
                evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
            )
        except (RuntimeError, ValueError):  # all of the best trials are alike
            return {}
        return {name: float(share) for name, share in found.items()}


def _number(row: SweepTrial) -> float:
    assert row.value is not None
    return row.value


def _listed(value: Any) -> Any:
    """Return a value as JSON reads it: a tuple is a list."""
    return list(value) if isinstance(value, tuple) else value


def _value_on_val(path: Path, summary: Mapping[str, Any]) -> float | None:
    """Return the metric relative to the best heuristic, of the best checkpoint on VAL."""
    best = int(summary["best_checkpoint"].partition("-")[2])
    head, *rows = (path / CURVE).read_text(encoding="utf-8").splitlines()
    names = head.split(",")
    for row in rows:
        cells = dict(zip(names, row.split(","), strict=True))
        if int(cells["step"]) == best and cells["against_best_heuristic"]:
            value = float(cells["against_best_heuristic"])
            return value if math.isfinite(value) else None
    return None


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
