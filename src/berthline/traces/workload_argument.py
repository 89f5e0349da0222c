"""The command line's WORKLOAD argument: a trace file, a fitted generator, or a generator's name."""

from __future__ import annotations

import difflib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from berthline.errors import ConfigError
from berthline.text_or_path import text_of
from berthline.traces.dials import JOBS, LOAD, SEED
from berthline.traces.fitted import SUFFIX as FITTED_SUFFIX
from berthline.traces.fitted import FittedGenerator
from berthline.traces.load import load_trace
from berthline.traces.offered_load import scale_to_load
from berthline.traces.synthetic import GENERATORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.text_or_path import TextOrPath
    from berthline.traces.generator import Generator

_NEAR_ENOUGH = 0.5  # of difflib's ratio, as for every other unknown name
_MOST_NEIGHBOURS = 1000


def resolve_workload(
    text: TextOrPath,
    *,
    cluster: Cluster,
    jobs: int | None = None,
    load: float | None = None,
    seed: int = 0,
    format: str | None = None,  # noqa: A002 - the same name as the --format option
    settings: Mapping[str, str] | None = None,
) -> Workload:
    """Return the workload that a WORKLOAD argument means.

    A file wins over a generator of the same name. For a file, `jobs` takes the first jobs by
    submission, and then `load` stretches or squeezes the submission times until work /
    (GPUs * time from first to last submission) is that load (see `scale_to_load`); None leaves the
    trace as it is. For a generator, None means its default. A file whose name ends with `.fit.json`
    is a fitted generator: it is drawn from with the seed, by default as many jobs, at the same
    rate, as its trace has.

    Args:
        text: a path or the name of a generator.
        cluster: the cluster that `load` refers to.
        jobs: how many jobs.
        load: offered load on the cluster.
        seed: of a generator; a file ignores it.
        format: of a file; None = recognise it.
        settings: dials of a generator, or options of a trace format, as text, from `--set`.

    Raises:
        ConfigError: neither a file nor a generator, or an option that does not fit.
        TraceError: the file cannot be used.
    """
    settings = settings or {}
    text = text_of("workload", text)
    path = Path(text)
    kind = _kind(path)
    if text in GENERATORS and kind != "file":
        if format is not None:
            raise ConfigError(
                f"--format {format} given for a generator",
                where=text,
                expected="--format only with a trace file",
                hint=f"there is no file named {text!r}; leave --format out to generate",
            )
        if "mapping" in settings:
            raise ConfigError(
                "a column mapping given for a generator",
                where=text,
                expected="--map only with a trace file",
            )
        return _generated(text, cluster, jobs, load, seed, settings)
    if kind == "missing":
        raise _neither(text, path)
    if text.endswith(FITTED_SUFFIX):
        if settings:
            raise ConfigError(
                f"--set {next(iter(settings))} given for a fitted generator",
                where=text,
                expected="--jobs, --load and --seed; the rest was fitted",
            )
        if format is not None:
            raise ConfigError(
                f"--format {format} given for a fitted generator",
                where=text,
                expected="--format only with a trace file",
            )
        return FittedGenerator.load(path).generate(jobs, seed, cluster=cluster, load=load)
    if jobs is not None:
        jobs = int(JOBS.convert(jobs, where=text))
    workload = load_trace(path, format, **settings)
    if jobs is not None:
        if jobs > len(workload):
            raise ConfigError(
                f"--jobs {jobs:,} is more than there are",
                where=text,
                expected=f"up to {len(workload):,}, the usable jobs of the trace",
            )
        workload = _first_jobs(workload, jobs)
    return workload if load is None else scale_to_load(workload, cluster, load)


def is_generator(text: str) -> bool:
    """Whether a WORKLOAD argument means a generator, not a trace file."""
    is_named = text in GENERATORS and _kind(Path(text)) != "file"
    return is_named or text.endswith(FITTED_SUFFIX)


def resolve_generator(text: str) -> Generator | FittedGenerator:
    """Return the generator that a WORKLOAD argument means.

    Raises:
        ConfigError: neither a generator nor a file, or a file that is no fitted generator.
        TraceError: the file of a fitted generator cannot be used.
    """
    path = Path(text)
    kind = _kind(path)
    if text in GENERATORS and kind != "file":
        return GENERATORS[text]
    if kind == "missing":
        raise _neither(text, path)
    if not text.endswith(FITTED_SUFFIX):
        raise ConfigError(
            "a trace file, where jobs are to be generated",
            where=text,
            expected=f"a generator: {', '.join(GENERATORS)}; or a fitted one, {FITTED_SUFFIX}",
            hint=f"berthline traces fit {text}",
        )
    return FittedGenerator.load(path)


def _first_jobs(workload: Workload, jobs: int) -> Workload:
    if jobs == len(workload):
        return workload
    return workload.window(0, jobs)


def _kind(path: Path) -> Literal["file", "other", "missing"]:
    """Return what stands at a path; one the system refuses to look at counts as missing."""
    try:
        return "file" if path.is_file() else "other" if path.exists() else "missing"
    except OSError:
        return "missing"


def _generated(
    name: str,
    cluster: Cluster,
    jobs: int | None,
    load: float | None,
    seed: int,
    settings: Mapping[str, str],
) -> Workload:
    for dial in (JOBS, LOAD, SEED):
        if dial.name in settings:
            raise ConfigError(
                f"--set {dial.name} is not how to set it",
                where=f"generator {name!r}",
                expected=f"--{dial.name} {settings[dial.name]}",
            )
    return GENERATORS[name].make(cluster, jobs=jobs, load=load, seed=seed, dials=settings)


def _neither(text: str, path: Path) -> ConfigError:
    """Return the error for an argument that is no file and no generator."""
    candidates = {name: name for name in GENERATORS}
    try:
        neighbours = list(itertools.islice(path.parent.iterdir(), _MOST_NEIGHBOURS))
    except (OSError, ValueError):
        neighbours = []  # the directory does not exist or may not be listed
    candidates |= {entry.name: str(entry) for entry in neighbours if _kind(entry) == "file"}
    near = difflib.get_close_matches(path.name, candidates, n=1, cutoff=_NEAR_ENOUGH)
    return ConfigError(
        f"unknown workload {text!r}: no such file, and no generator of that name",
        expected="a trace file, or a generator: " + ", ".join(GENERATORS),
        hint=f"did you mean {candidates[near[0]]!r}?" if near else "",
    )
