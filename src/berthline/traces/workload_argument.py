"""WORKLOAD arguments: how the library, environments and the command line name a workload."""

from __future__ import annotations

import difflib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from berthline.errors import ConfigError
from berthline.model.workload import Workload
from berthline.text_or_path import text_of
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.generators.dials import JOBS, LOAD, SEED
from berthline.traces.generators.fitted.fitted_generator import SUFFIX as FITTED_SUFFIX
from berthline.traces.generators.fitted.fitted_generator import FittedGenerator
from berthline.traces.generators.synthetic import GENERATORS
from berthline.traces.load import load_first_jobs, load_trace
from berthline.traces.offered_load import scale_to_load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.model.cluster import Cluster
    from berthline.text_or_path import TextOrPath
    from berthline.traces.generators.generator import Generator

_NEAR_ENOUGH = 0.5  # difflib's ratio, as for other unknown names
_MOST_NEIGHBOURS = 1000


def resolve_workload(
    given: Workload | TextOrPath,
    *,
    cluster: Cluster | TextOrPath,
    jobs: int | None = None,
    load: float | None = None,
    seed: int = 0,
    format: str | None = None,  # noqa: A002 - the name that load_trace has for it
    settings: Mapping[str, object] | None = None,
) -> Workload:
    """Return the workload that a WORKLOAD argument names.

    A text or path is one of these:

    - a trace file, or the directory of a trace that comes in parts;
    - a fitted generator: a file whose name ends with `.fit.json`. By default it draws as many jobs
      as its trace has, at the same rate;
    - the name of a generator. A file of the same name takes precedence.

    For a trace, `jobs` takes the first jobs by submission. Then `load` scales the submission times
    until work / (GPUs * time from first to last submission) is that load (see `scale_to_load`).
    None leaves the trace unchanged. For a generator, None means its default.

    Args:
        given: the text or path; a Workload is treated as the jobs of a trace.
        cluster: a Cluster or a CLUSTER argument, to which `load` refers.
        jobs: number of jobs.
        load: offered load on the cluster.
        seed: of a generator; a trace ignores it.
        format: of a trace file; None = recognise it.
        settings: dials of a generator, or options of a trace format.

    Raises:
        ConfigError: neither a file nor a generator, or an option that does not apply.
        TraceError: the file cannot be used.

    Example:
        >>> len(resolve_workload("synthetic", cluster="uniform:8x8:V100", jobs=50, load=0.8))
        50
    """
    settings = settings or {}
    cluster = resolve_cluster(cluster)
    if isinstance(given, Workload):
        if format is not None or settings:
            raise ConfigError(
                "a format or settings given for jobs that are already loaded",
                where=given.name,
                expected="`format` and `settings` only with a file or a generator",
            )
        return _cut(given, cluster, jobs, load, where=given.name)
    text = text_of("workload", given)
    path = Path(text)
    kind = _kind(path)
    if text in GENERATORS and kind != "file":
        if format is not None:
            raise ConfigError(
                f"`format={format}` given for a generator",
                where=text,
                expected="`format` only with a trace file",
                hint=f"there is no file named {text!r}; omit `format` to generate",
            )
        if "mapping" in settings:
            raise ConfigError(
                "a column mapping given for a generator",
                where=text,
                expected="`mapping` only with a trace file",
            )
        return _generated(text, cluster, jobs, load, seed, settings)
    if kind == "missing":
        raise _neither(text, path)
    if text.endswith(FITTED_SUFFIX):
        if settings:
            raise ConfigError(
                f"`settings` has {next(iter(settings))}, given for a fitted generator",
                where=text,
                expected="`jobs`, `load` and `seed`; the rest was fitted",
            )
        if format is not None:
            raise ConfigError(
                f"`format={format}` given for a fitted generator",
                where=text,
                expected="`format` only with a trace file",
            )
        return FittedGenerator.load(path).generate(jobs, seed, cluster=cluster, load=load)
    if jobs is None:
        trace = load_trace(path, format, **settings)
    else:
        trace = load_first_jobs(path, int(JOBS.convert(jobs, where=text)), format, **settings)
    return _cut(trace, cluster, jobs, load, where=text)


def is_generator(given: Workload | TextOrPath) -> bool:
    """Return whether a WORKLOAD argument names a generator, not the jobs of a trace."""
    if isinstance(given, Workload):
        return False
    text = text_of("workload", given)
    is_named = text in GENERATORS and _kind(Path(text)) != "file"
    return is_named or text.endswith(FITTED_SUFFIX)


def resolve_generator(text: str) -> Generator | FittedGenerator:
    """Return the generator that a WORKLOAD argument names.

    Raises:
        ConfigError: neither a generator nor a file, or a file that is not a fitted generator.
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
            "this is a trace file, but jobs must be generated here",
            where=text,
            expected=f"a generator: {', '.join(GENERATORS)}; or a fitted one, {FITTED_SUFFIX}",
            hint=f"berthline traces fit {text}",
        )
    return FittedGenerator.load(path)


def _cut(
    trace: Workload, cluster: Cluster, jobs: int | None, load: float | None, *, where: str
) -> Workload:
    """Return the first jobs of a trace, at a load."""
    if jobs is not None:
        jobs = int(JOBS.convert(jobs, where=where))
        if jobs > len(trace):
            raise ConfigError(
                f"`jobs={jobs:,}` is more than the trace has",
                where=where,
                expected=f"up to {len(trace):,}, the usable jobs of the trace",
            )
        trace = trace if jobs == len(trace) else trace.window(0, jobs)
    return trace if load is None else scale_to_load(trace, cluster, load)


def _kind(path: Path) -> Literal["file", "other", "missing"]:
    """Return what is at a path; a path that cannot be accessed counts as missing."""
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
    settings: Mapping[str, object],
) -> Workload:
    for dial in (JOBS, LOAD, SEED):
        if dial.name in settings:
            raise ConfigError(
                f"{dial.name} cannot be set in `settings`",
                where=f"generator {name!r}",
                expected=f"`{dial.name}={settings[dial.name]}`",
            )
    return GENERATORS[name].make(cluster, jobs=jobs, load=load, seed=seed, dials=settings)


def _neither(text: str, path: Path) -> ConfigError:
    """Return the error for an argument that is neither a file nor a generator."""
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
