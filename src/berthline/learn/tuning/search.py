"""Search: tune the parameters of a scheduler on the simulator itself.

In each generation a strategy (strategies.py) asks for the losses of some candidates. All of them
run on the same TRAIN windows, so that the difficulty of a window cancels. The windows are exchanged
every few generations, so that candidates do not overfit to them. Also every few generations, the
most promising candidates run on VAL; the best on VAL is kept, and the start takes part. At the end
it is evaluated on REPORT, once, against rivals that were also chosen on VAL.

    state.json   all losses so far: telling them to a fresh strategy restores its state
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from berthline.errors import ConfigError, unknown_name
from berthline.learn.tuning.held_out_report import report_of
from berthline.learn.tuning.search_goal import FAILED, Goal, WindowOutcome
from berthline.learn.tuning.search_rivals import Rivals, choose_rivals
from berthline.learn.tuning.strategies import STRATEGIES
from berthline.runs.growing_files import GrowingFiles
from berthline.runs.run_layout import STATE, SUMMARY
from berthline.sealed_json import seal, unseal
from berthline.size_limits import check_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from berthline.learn.tuning.search_space import SearchSpace
    from berthline.learn.tuning.search_windows import Key, SearchWindows
    from berthline.learn.tuning.search_workers import SearchWorkers

_STATE_FORMAT = 2


class SearchConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search.

    Attributes:
        search: one of STRATEGIES.
        goal: the loss to minimise.
        seconds: time limit, summed over interrupted runs; None = no limit.
        evaluations: largest number of candidates; None = no limit.
        population: candidates per generation; 0 = max(8, 4 + 3 ln(parameters)).
        windows: TRAIN windows that each candidate runs on.
        exchange_every: generations after which those windows are exchanged.
        validate_every: generations between runs on VAL.
        seed: of all random draws.
    """

    search: str = "cma"
    goal: Goal = Goal()
    seconds: float | None = None
    evaluations: int | None = None
    population: int = 0
    windows: int = 4
    exchange_every: int = 5
    validate_every: int = 5
    seed: int = 0


class SearchProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a search.

    Attributes:
        generation: generations done.
        evaluations: candidates tried.
        seconds: since the search began.
        train_loss: lowest loss of the generation.
        val_loss: lowest loss on VAL.
        rival: the scheduler to beat.
        rival_loss: its loss on VAL.
        scheduler: the best scheduler on VAL.
    """

    generation: int
    evaluations: int
    seconds: float
    train_loss: float
    val_loss: float
    rival: str
    rival_loss: float
    scheduler: str


class Search:
    """A search in a directory, from its beginning or from where it was stopped.

    Args:
        config: what to do.
        space: where to search.
        windows: what candidates run on.
        workers: run the candidates.
        rivals: schedulers to choose the rival from.
        path: the run's directory, which exists; None = nothing is written.
        resume: resume from its state.

    Raises:
        BerthlineError: no such strategy; the start or a rival cannot be run; or the state cannot
            be read.
    """

    def __init__(
        self,
        config: SearchConfig,
        space: SearchSpace,
        windows: SearchWindows,
        workers: SearchWorkers,
        *,
        rivals: Sequence[str],
        path: Path | None = None,
        resume: bool = False,
    ) -> None:
        if config.search not in STRATEGIES:
            what, expected, hint = unknown_name("strategy", config.search, STRATEGIES)
            raise ConfigError(what, expected=expected, hint=hint)
        if config.seconds is None and config.evaluations is None:
            raise ConfigError("the search has no end", expected="seconds or evaluations")
        check_sizes(population=config.population or None)
        self.config, self.space, self.windows, self.path = config, space, windows, path
        self._workers, self._rival_names = workers, rivals
        self._made_before, self._began = workers.simulations, time.monotonic()
        size = config.population or max(8, 4 + int(3 * np.log(len(space.parameters))))
        self._strategy = STRATEGIES[config.search](space.start, population=size, seed=config.seed)
        self._losses: list[list[float]] = []
        self._recent: list[tuple[float, npt.NDArray[np.float64]]] = []
        self._on_val: dict[str, float] = {}
        self._best: npt.NDArray[np.float64] = space.start
        self._seconds = 0.0
        self._reference: dict[Key, WindowOutcome] = {}
        if resume:
            self._resume()
        self._files = (
            None if path is None else GrowingFiles(path, step=self.evaluations, tensorboard=False)
        )

    @property
    def evaluations(self) -> int:
        """Candidates tried so far."""
        return sum(map(len, self._losses))

    def run(
        self,
        report: Callable[[SearchProgress], None] = lambda _: None,
        must_stop: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any] | None:
        """Search, and return the summary; None = the search was stopped and can be resumed.

        Args:
            report: called after every generation.
            must_stop: called after every generation; without a directory, the search then ends.
        """
        began = time.monotonic() - self._seconds
        rivals = choose_rivals(
            self._rival_names, self.windows.keys("val"), self._workers, self.config.goal
        )
        self._validate([self.space.start], rivals)
        if self._on_val[self.space.scheduler(self.space.start)] == FAILED:
            raise self._why_start_failed()
        while not self._is_over(time.monotonic() - began):
            best_loss = self._generation(rivals)
            if len(self._losses) % self.config.validate_every == 0:
                self._validate(self._favourites(), rivals)
            self._seconds = time.monotonic() - began
            self._log(best_loss, rivals)
            self._save()
            report(self._progress(best_loss, rivals))
            if must_stop():
                if self._files is None:
                    break  # it cannot be resumed: the result so far is final
                self._files.close()
                return None
        self._validate(self._favourites(), rivals)
        self._seconds = time.monotonic() - began
        self._save()
        summary = self._summary(rivals)
        if self._files is not None:
            self._files.write_json(SUMMARY, summary)
            self._files.close()
        return summary

    def _is_over(self, seconds: float) -> bool:
        config = self.config
        return (config.seconds is not None and seconds >= config.seconds) or (
            config.evaluations is not None and self.evaluations >= config.evaluations
        )

    def _generation(self, rivals: Rivals) -> float:
        """Try a generation of candidates, and return the lowest loss."""
        keys = self._train_windows(len(self._losses))
        self._run_reference(rivals.reference, keys)
        points = self._strategy.ask()
        losses = self._losses_of([self.space.scheduler(p) for p in points], keys)
        self._learn(points, losses)
        return min(losses)

    def _learn(self, points: npt.NDArray[np.float64], losses: list[float]) -> None:
        self._strategy.tell(points, np.array(losses))
        self._losses.append(losses)
        self._recent += zip(losses, points, strict=True)

    def _train_windows(self, generation: int) -> list[Key]:
        """Return the windows that the candidates of a generation run on."""
        pool = self.windows.keys("train")
        count = min(self.config.windows, len(pool))
        epoch = generation // self.config.exchange_every
        random = np.random.Generator(np.random.Philox(key=[self.config.seed, 3 + epoch]))
        return [pool[i] for i in sorted(random.choice(len(pool), count, replace=False))]

    def _run_reference(self, reference: str, keys: list[Key]) -> None:
        missing = [key for key in keys if key not in self._reference]
        for key, found in zip(
            missing, self._workers.run([(key, reference) for key in missing]), strict=True
        ):
            if isinstance(found, Exception):
                raise found
            self._reference[key] = found

    def _losses_of(self, schedulers: list[str], keys: list[Key]) -> list[float]:
        runs = [(key, scheduler) for scheduler in schedulers for key in keys]
        found = self._workers.run(runs)
        reference = [self._reference[key] for key in keys]
        size = len(keys)
        return [
            self.config.goal.loss(found[i * size : (i + 1) * size], reference)
            for i in range(len(schedulers))
        ]

    def _favourites(self) -> list[npt.NDArray[np.float64]]:
        """Return two points to run on VAL: the best recent ones, and the strategy's centre."""
        tried = sorted(self._recent, key=lambda pair: pair[0])
        self._recent = []
        centre = self._strategy.centre()
        found = [point for _, point in tried[: 2 if centre is None else 1]]
        return found if centre is None else [*found, centre]

    def _validate(self, points: list[npt.NDArray[np.float64]], rivals: Rivals) -> None:
        """Run points on VAL, and keep the best of all points that ran on VAL."""
        keys = self.windows.keys("val")
        self._reference |= dict(zip(keys, rivals.outcomes[rivals.reference], strict=True))
        texts = [self.space.scheduler(point) for point in points]
        new = [text for text in dict.fromkeys(texts) if text not in self._on_val]
        self._on_val |= dict(zip(new, self._losses_of(new, keys), strict=True))
        for point, text in zip(points, texts, strict=True):
            if self._on_val[text] < self._on_val.get(self.space.scheduler(self._best), np.inf):
                self._best = point

    def _why_start_failed(self) -> Exception:
        text = self.space.scheduler(self.space.start)
        found = self._workers.run([(key, text) for key in self.windows.keys("val")])
        errors = [one for one in found if isinstance(one, Exception)]
        return (
            errors[0]
            if errors
            else ConfigError(
                "the scheduler at the start of the search has no loss",
                where=text,
                expected="mean JCT and slowdown above 0 on every window of VAL",
            )
        )

    def _progress(self, train_loss: float, rivals: Rivals) -> SearchProgress:
        best = self.space.scheduler(self._best)
        return SearchProgress(
            generation=len(self._losses),
            evaluations=self.evaluations,
            seconds=self._seconds,
            train_loss=train_loss,
            val_loss=self._on_val[best],
            rival=rivals.rival,
            rival_loss=rivals.losses[rivals.rival],
            scheduler=best,
        )

    def _log(self, train_loss: float, rivals: Rivals) -> None:
        if self._files is None:
            return
        best = self._on_val[self.space.scheduler(self._best)]
        values = {
            "train_loss": train_loss,
            "val_loss": best,
            "val_loss_against_rival": best - rivals.losses[rivals.rival],
        }
        made = self._workers.simulations - self._made_before
        per_second = made / max(time.monotonic() - self._began, 1e-9)
        step = self.evaluations
        self._files.log(
            step, {**values, "seconds": self._seconds, "simulations_per_second": per_second}
        )
        if len(self._losses) % self.config.validate_every == 0:
            self._files.add_to_curve(step, values)

    def _save(self) -> None:
        if self._files is None:
            return
        state = {
            "losses": self._losses,
            "seconds": self._seconds,
            "best": self._best.tolist(),
            "on_val": self._on_val,
        }
        self._files.write_json(STATE, seal({"format": _STATE_FORMAT, **state}))

    def _resume(self) -> None:
        """Restore the state of the strategy by telling it all losses again."""
        assert self.path is not None
        file = self.path / STATE
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            return  # stopped before its first generation: begin
        except OSError as error:
            raise ConfigError(f"cannot read the state: {error}", where=str(file)) from None
        # The first states had neither a format nor a seal.
        state = unseal(content, where=str(file), what="the state of the search", unsealed=(None,))
        for losses in state["losses"]:
            self._learn(self._strategy.ask(), losses)
            if len(self._losses) % self.config.validate_every == 0:
                self._favourites()
        self._best = np.array(state["best"])
        self._on_val = dict(state["on_val"])
        self._seconds = float(state["seconds"])

    def _summary(self, rivals: Rivals) -> dict[str, Any]:
        """Evaluate the best scheduler on REPORT, once."""
        config, best = self.config, self.space.scheduler(self._best)
        start = self.space.scheduler(self.space.start)
        return {
            "algorithm": "es",
            "search": config.search,
            "space": self.space.name,
            "goal": msgspec.to_builtins(config.goal),
            "seed": config.seed,
            "generations": len(self._losses),
            "evaluations": self.evaluations,
            "seconds": self._seconds,
            "scheduler": best,
            "parameters": self.space.values(self._best),
            "start": start,
            "reference": rivals.reference,
            "rival": rivals.rival,
            "lane": rivals.lane,
            "val": {
                "windows": self.windows.counts["val"],
                "loss": self._on_val[best],
                "start_loss": self._on_val[start],
                "rival_loss": rivals.losses[rivals.rival],
                "lane_loss": rivals.losses.get(rivals.lane) if rivals.lane else None,
            },
            "report": report_of(
                best, start, rivals, self.windows.keys("report"), self._workers, config.goal
            ),
        }
