"""Reading a run directory: its kind, and its parts, each read when it is first used."""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from berthline.errors import ConfigError, TraceError
from berthline.runs.run_layout import (
    CHECKPOINT_FACTS,
    CHECKPOINTS,
    CLUSTER,
    CONFIG,
    CURVE,
    EVENTS,
    JOBS,
    META,
    METRICS,
    RUN_KINDS,
    SEED_PREFIX,
    START,
    SUMMARY,
    UNFINISHED,
    WORKLOAD,
    kind_of,
)
from berthline.text_or_path import text_of

if TYPE_CHECKING:
    import os

    import polars as pl

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.simulate import Result

AS_WRITTEN = "a run directory as it was written"


class Verdict(NamedTuple):
    """The verdict of a run on one scheduler against another, by mean JCT.

    Attributes:
        scheduler: the scheduler.
        against: what it is compared with.
        words: the verdict.
        cell: the index of the cell of a comparison; 0 if there is only one.
    """

    scheduler: str
    against: str
    words: str
    cell: int = 0


@dataclasses.dataclass(frozen=True)
class Run:
    """An open run directory. Parts are read when they are first used.

    A part that this kind of run does not have, or that is missing, raises a `ConfigError`.

    Attributes:
        path: the directory.
        kind: `sim`, `compare`, `demo`, `eval`, `whatif`, `train`, `search` or `bench`.
        meta: version, command, seed, time, machine, workload: meta.json.
        settings: every setting, resolved: config.toml.
    """

    path: Path
    kind: str
    meta: dict[str, Any]
    settings: dict[str, Any]

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, kind={self.kind!r})"

    @property
    def is_complete(self) -> bool:
        """Whether the run has finished: it has a summary."""
        return (self.path / SUMMARY).is_file()

    @cached_property
    def results(self) -> dict[str, Any]:
        """The results, as `--json` prints them: summary.json."""
        found = _read_json(self._file(SUMMARY, "results"))
        if not isinstance(found, dict):
            raise _unreadable(self.path / SUMMARY, "not a JSON object")
        return found

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl: one for each run, or for each iteration of training."""
        path = self._file(METRICS, "metrics")
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            return [json.loads(line) for line in lines]
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from None

    @cached_property
    def workload(self) -> Workload:
        """The jobs; for a comparison, those of the first window."""
        from berthline.traces.formats.parquet import read

        path = self._file(WORKLOAD, "workload")
        try:
            return read(path)
        except TraceError:
            # It says what else the file may be. The other formats take long to import.
            from berthline.traces.load import load_trace

            return load_trace(path)

    @cached_property
    def cluster(self) -> Cluster:
        """The nodes; for a comparison, those of the first cell."""
        from berthline.model.cluster import Cluster

        return Cluster.from_toml(self._file(CLUSTER, "cluster"))

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """What became of every job: one row for each run and job."""
        return _read_table(self._file(JOBS, "jobs"))

    @cached_property
    def logs(self) -> dict[str, Schedule]:
        """The schedule log of each scheduler; for a comparison, on its first window."""
        from berthline.model.schedule import Schedule
        from berthline.model.schedule_table import schedule_of

        path = self._file(EVENTS, "logs")
        frame = _read_table(path)
        try:
            if "scheduler" in frame.columns:
                parts = frame.partition_by("scheduler", as_dict=True, include_key=False)
                return {str(key[0]): Schedule.from_frame(part) for key, part in parts.items()}
            horizon = float(self.settings.get("horizon", math.inf))
            decisions = int(self.results["decisions"])
            log = schedule_of(frame, horizon=horizon, decisions=decisions)
            return {str(self.results["scheduler"]): log}
        except ConfigError as error:
            raise ConfigError(
                error.what, where=str(path), expected=error.expected, hint=error.hint
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise _unreadable(path, error) from None

    @property
    def log(self) -> Schedule:
        """The schedule log of a run with one scheduler."""
        logs = self.logs
        if len(logs) > 1:
            raise ConfigError(
                "the run has logs of several schedulers",
                where=str(self.path),
                expected="logs[NAME] with one of " + ", ".join(logs),
            )
        return next(iter(logs.values()))

    @cached_property
    def start(self) -> Snapshot | None:
        """The state in which the run began; None = with an empty cluster."""
        from berthline.runs.start_file import read_start

        path = self.path / START
        if self.kind != "sim":
            return None
        if not path.is_file():
            if self.settings.get("from_snapshot"):
                raise ConfigError(
                    f"there is no {START}, and the run began in the middle",
                    where=str(self.path),
                    expected=AS_WRITTEN,
                )
            return None
        return read_start(path, self.workload, self.cluster, self.log)

    @cached_property
    def result(self) -> Result:
        """The run of one scheduler, as `simulate` returned it."""
        from berthline.policies.scheduler import Scheduler

        text = self.settings.get("scheduler")
        if not text:
            raise ConfigError(
                "the snapshot names no scheduler",
                where=str(self.path),
                expected="a directory of berthline sim, or a scheduler beside it",
            )
        return self.result_under(Scheduler.parse(text))

    def result_under(self, scheduler: Scheduler) -> Result:
        """Return the run with the scheduler named, for a snapshot that names none."""
        from berthline.sim.simulate import Result

        log = self.log
        check_same_jobs(log, self)
        self._check_log(log)
        return Result(
            log=log,
            workload=self.workload,
            cluster=self.cluster,
            scheduler=scheduler,
            knowledge=str(self.settings.get("knowledge", "estimate")),
            seed=int(self.settings.get("seed", 0)),
            wall_seconds=0.0,
            start=self.start,
        )

    def _check_log(self, log: Schedule) -> None:
        """Raise if the log is damaged or of another run, or does not fit the cluster."""
        from berthline.model.snapshot import Snapshot
        from berthline.sim.snapshots.check import check_snapshot
        from berthline.sim.snapshots.take import take_jobs

        if log.sha256() != self.results.get("log_sha256"):
            raise ConfigError(
                f"{EVENTS} is of another run than {SUMMARY}",
                where=str(self.path),
                expected=AS_WRITTEN,
            )
        now = log.horizon if math.isfinite(log.horizon) else float(log.time.max(initial=0.0))
        known = np.arange(int(np.searchsorted(self.workload.submit, now, side="right")))
        jobs = take_jobs(self.workload, known)
        check_snapshot(
            Snapshot(workload=jobs, cluster=self.cluster, log=log, now=now, number=known)
        )

    def snapshot(self, at: float | None = None) -> Snapshot:
        """Return the state of the run at an instant.

        Args:
            at: seconds on the clock of the run; None = at its horizon.
        """
        horizon = self.log.horizon
        if at is None and math.isinf(horizon):
            raise ConfigError(
                "the run went to its end, so there is no state to continue from",
                where=str(self.path),
                expected="`at`: an instant of the run, in seconds",
            )
        at = horizon if at is None else at
        if self.start is not None and at == self.start.now:
            return self.start
        return self.result.snapshot(at)

    def arrivals(self, snapshot: Snapshot) -> Workload | None:
        """Return the jobs of the run that come after a snapshot of it; None = there are none."""
        from berthline.sim.snapshots.take import take_jobs

        start = self.start
        left_out = snapshot.memory.jobs - (0 if start is None else start.memory.jobs)
        known = left_out + snapshot.num_jobs
        if known == len(self.workload):
            return None
        return take_jobs(self.workload, np.arange(known, len(self.workload)))

    @cached_property
    def curve(self) -> pl.DataFrame:
        """The validations of training or of a search: a column `step`, then one per metric."""
        import polars as pl

        path = self._file(CURVE, "curve")
        try:
            return pl.read_csv(path, infer_schema_length=None)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise _unreadable(path, error) from None

    @property
    def checkpoints(self) -> dict[str, Path]:
        """The checkpoints of training by name, `best-STEP` and `last-STEP`; each is a policy."""
        path = self._file(CHECKPOINTS, "checkpoints")
        found = sorted(path.glob(f"*/{CHECKPOINT_FACTS}"))
        return {
            file.parent.name: file.parent for file in found if not file.parent.name.startswith(".")
        }

    @cached_property
    def parts(self) -> dict[str, Run]:
        """The runs inside this one: the seeds of training, the searches of `--search both`."""
        if self.kind == "train":
            found = sorted(self.path.glob(f"{SEED_PREFIX}*/{META}"), key=_number_of_seed)
            return {file.parent.name: open_run(file.parent) for file in found}
        if self.kind == "search" and self.settings.get("search") == "both":
            # They share the settings of the whole.
            paths = [self.path / name for name in ("cma", "random")]
            return {
                path.name: dataclasses.replace(
                    self, path=path, settings={**self.settings, "search": path.name}
                )
                for path in paths
                if path.is_dir()
            }
        return {}

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts of the run on each scheduler against another, by mean JCT."""
        results = self.results
        try:
            if self.kind in ("compare", "demo"):
                return _of_comparison(results)
            if self.kind == "eval":
                judged = results["against_rival"]["jct_mean"]["verdict"]
                return [Verdict(results["run"], results["rival"], judged, 1)]
            if self.kind == "whatif":
                return [
                    Verdict(one["scheduler"], results["today"], one["against_today"]["verdict"])
                    for one in results["outcomes"]
                    if one["against_today"] is not None
                ]
            if self.kind in ("train", "search") and "report" in results:
                return [
                    Verdict(
                        str(results.get("scheduler", results["algorithm"])),
                        str(other.get("scheduler", name)),
                        other["mean_jct"]["verdict"],
                    )
                    for name, other in results["report"]["against"].items()
                ]
        except (KeyError, TypeError, IndexError) as error:
            raise _unreadable(self.path / SUMMARY, error) from None
        if self.parts:
            raise self._in_parts("verdicts")
        raise self._never("verdicts", ["compare", "demo", "eval", "whatif", "train", "search"])

    def _file(self, name: str, part: str) -> Path:
        """Return the path of a file that must be there.

        Raises:
            ConfigError: it is not.
        """
        path = self.path / name
        if path.exists():
            return path
        kinds = [kind for kind, of in RUN_KINDS.items() if name in of.files]
        if self.kind not in kinds:
            raise self._never(part, kinds)
        if self.parts:
            raise self._in_parts(part)
        hint = "" if name != CURVE else "the run ended before its first validation"
        if not self.is_complete:
            hint = "the run has not finished: resume it with the command in meta.json"
        raise ConfigError(
            f"there is no {name}", where=str(self.path), expected=AS_WRITTEN, hint=hint
        )

    def _in_parts(self, part: str) -> ConfigError:
        first = next(iter(self.parts))
        return ConfigError(
            f"each part of the run has its own {part}",
            where=str(self.path),
            expected=f"one of its parts: {', '.join(self.parts)}",
            hint=f"run.parts[{first!r}].{part}",
        )

    def _never(self, part: str, kinds: list[str]) -> ConfigError:
        return ConfigError(
            f"a run of kind {self.kind} has no {part}",
            where=str(self.path),
            expected=f"a run of kind {', '.join(kinds)}",
        )


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open a run directory, which `berthline ... --out DIR` wrote.

    Args:
        path: the directory.

    Raises:
        ConfigError: there is none, it is not a run directory, or it cannot be read.
    """
    directory = Path(text_of("path", path))
    _check_directory(directory)
    meta = _read_json(directory / META)
    config = directory / CONFIG
    try:
        settings = tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(config, error) from None
    kind = None
    if isinstance(meta, dict):
        kind = kind_of(str(meta.get("verb", "")), str(settings.get("algorithm", "")))
    if kind is None:
        raise ConfigError(
            "meta.json names no kind of run",
            where=str(directory),
            expected="a run directory of " + _verbs(),
        )
    return Run(directory, kind, meta, settings)


def check_same_jobs(log: Schedule, run: Run) -> None:
    """Raise if a log does not belong to the jobs of a run, because a file is from another run.

    Raises:
        ConfigError: it is not.
    """
    from berthline.model.schedule import SUBMIT

    rows = log.kind == SUBMIT
    jobs, workload = log.job[rows], run.workload
    is_same = (jobs < len(workload)).all() and np.array_equal(log.time[rows], workload.submit[jobs])
    if not is_same:
        raise ConfigError(
            f"{EVENTS} is of other jobs than {WORKLOAD}", where=str(run.path), expected=AS_WRITTEN
        )


def _check_directory(path: Path) -> None:
    """Raise if a file is missing that every run has from its start."""
    try:
        is_directory = path.is_dir()
    except (OSError, ValueError):  # a formula may be too long for a file name
        is_directory = False
    if is_directory and (path / UNFINISHED).is_file() and not (path / META).is_file():
        raise ConfigError(
            "the run has not finished",
            where=str(path),
            expected=f"a complete run: there is only {UNFINISHED}",
            hint="resume it: the same call with `resume`",
        )
    for name in (META, CONFIG):
        if not is_directory or not (path / name).is_file():
            raise ConfigError(
                f"there is no {name}" if is_directory else "there is no such directory",
                where=str(path),
                expected="a run directory of " + _verbs(),
                hint="`out=DIR` writes one",
            )


def _verbs() -> str:
    verbs = list(dict.fromkeys(kind.verb for kind in RUN_KINDS.values()))
    return f"berthline {', '.join(verbs[:-1])} or {verbs[-1]}"


def _of_comparison(results: dict[str, Any]) -> list[Verdict]:
    return [
        Verdict(
            one["scheduler"],
            cell["baseline"],
            one["against_baseline"]["jct_mean"]["verdict"],
            number,
        )
        for number, cell in enumerate(results.get("cells", [results]))
        for one in cell["schedulers"]
        if one["scheduler"] != cell["baseline"]
    ]


def _number_of_seed(file: Path) -> tuple[int, str]:
    text = file.parent.name.removeprefix(SEED_PREFIX)
    return (int(text), "") if text.isdecimal() else (-1, text)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _read_table(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: object) -> ConfigError:
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    return ConfigError(
        f"{path.name} cannot be read: {reason}", where=str(path), expected=AS_WRITTEN
    )
