"""The cells of a suite: every combination of the lists in a table, and the jobs of each."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berthline.env.meta_regimes import meta_regimes
from berthline.errors import ConfigError, unknown_name
from berthline.evaluate.compare.protocol import spread_windows
from berthline.evaluate.compare.regimes import PRESET
from berthline.experiments.suites.suite_plan import CLEAN, CellTable
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.workload_argument import is_generator, resolve_workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from berthline.experiments.suites.suite_plan import SuitePlan
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

USUAL_JOBS = 1000
PERTURBED = "~"
"""Stands between the name of a clean cell and its perturbation."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SuiteCell:
    """One kind of jobs on one cluster.

    Attributes:
        name: its name, unique in a suite.
        regime: the name of the clean cell; its own, if it is one.
        shape: of arrivals; empty = not a regime.
        intensity: of arrivals; empty = not a regime.
        perturbation: what is done to the jobs or the cluster; empty = nothing.
        workload: a WORKLOAD argument.
        cluster: a CLUSTER argument.
        load: offered load; None = that of the workload.
        jobs: in each window; None = the usual number, or those of the trace.
        knowledge: of run times.
        dials: of the generator.
    """

    name: str
    regime: str
    shape: str = ""
    intensity: str = ""
    perturbation: str = CLEAN
    workload: str
    cluster: str
    load: float | None = None
    jobs: int | None = None
    knowledge: str
    dials: tuple[tuple[str, Any], ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing is done to its jobs and its cluster."""
        return self.perturbation == CLEAN

    @functools.cached_property
    def nodes(self) -> Cluster:
        """The cluster, before any perturbation."""
        return resolve_cluster(self.cluster)

    @property
    def axes(self) -> tuple[tuple[str, Any], ...]:
        """What it is a combination of, by name."""
        kind = self.perturbation.partition(":")[0]
        named = (
            ("shape", self.shape), ("intensity", self.intensity), ("workload", self.workload),
            ("cluster", self.cluster), ("load", self.load), ("jobs", self.jobs),
            ("perturbation", self.perturbation), ("kind of perturbation", kind),
        )  # fmt: skip
        return (*named, *self.dials)


def number_of_cells(plan: SuitePlan) -> int:
    """Return the number of cells, perturbed ones included, without making them."""
    total = 0
    for table in plan.cells:
        if table.regimes:
            combinations = len(_regimes_of(table))
        else:
            combinations = 1
            for values in _lists(table).values():
                combinations *= len(values)
        total += combinations * len(_perturbations(table))
    return total


def cells_of_plan(plan: SuitePlan) -> list[SuiteCell]:
    """Return the cells: each clean one, followed by its perturbed ones.

    Raises:
        ConfigError: a name is unknown, or two cells have the same name.
    """
    found: dict[str, SuiteCell] = {}
    for number, table in enumerate(plan.cells, 1):
        perturbations = _perturbations(table)
        for text in perturbations:
            if text != CLEAN:
                from berthline.experiments.perturbations import check_perturbation

                check_perturbation(text)
        clean_cells = _regime_cells(plan, table) if table.regimes else _combined(plan, table)
        for clean in clean_cells:
            resolve_cluster(clean.cluster)  # refused now rather than in the middle of the suite
            for text in perturbations:
                name = clean.name if text == CLEAN else f"{clean.name}{PERTURBED}{text}"
                cell = dataclasses.replace(clean, name=name, perturbation=text)
                if text == CLEAN and found.get(name) == cell:
                    continue  # the twin of another table's cells too
                if name in found:
                    raise ConfigError(
                        f"two cells have the name {name!r}",
                        where=f"{plan.name}, table of cells {number}",
                        expected="every combination once",
                    )
                found[name] = cell
    order: dict[str, list[SuiteCell]] = {}
    for cell in found.values():
        order.setdefault(cell.regime, []).append(cell)
    return [cell for group in order.values() for cell in group]


def window_of(
    cell: SuiteCell, part: str, number: int, *, seed: int, windows: tuple[int, int]
) -> Workload:
    """Return the jobs of a window of a cell, before any perturbation.

    A generator makes them from a seed. A trace is cut into windows, those of VAL first.

    Args:
        cell: the cell.
        part: VAL or REPORT.
        number: which of its windows.
        seed: for a generator.
        windows: how many VAL and REPORT have.

    Raises:
        BerthlineError: the workload cannot be read or generated, or is too short.
    """
    if is_generator(cell.workload):
        return resolve_workload(
            cell.workload,
            cluster=cell.nodes,
            jobs=cell.jobs,
            load=cell.load,
            seed=seed,
            settings=dict(cell.dials),
        )
    jobs = _trace(cell.workload, cell.cluster, cell.load, cell.dials)
    cuts = spread_windows(len(jobs), sum(windows), cell.jobs, where=cell.workload)
    first, last = cuts[number if part == "VAL" else windows[0] + number]
    return jobs.window(first, last)


@functools.lru_cache(maxsize=4)
def _trace(
    workload: str, cluster: str, load: float | None, options: tuple[tuple[str, Any], ...]
) -> Workload:
    return resolve_workload(workload, cluster=cluster, load=load, settings=dict(options))


def seed_of(plan_seed: int, regime: str, part: str, number: int, what: str = "jobs") -> int:
    """Return the seed of a window: it depends on its name, not on its place in the plan.

    All perturbations of a regime have the same one, and so has the regime in another suite.
    """
    text = f"{plan_seed}/{regime}/{part}/{number}/{what}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


@functools.lru_cache(maxsize=64)
def file_digest(text: str) -> str:
    """Return the hash of a file that a WORKLOAD or a CLUSTER argument names; empty = no file."""
    path = Path(text)
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _perturbations(table: CellTable) -> list[str]:
    """Return the perturbations of a table; the clean twin is always the first."""
    return [CLEAN, *(text for text in dict.fromkeys(table.perturbations) if text != CLEAN)]


def _regimes_of(table: CellTable) -> list[dict[str, Any]]:
    known = meta_regimes()
    values: dict[str, list[Any]] = {
        "shape": list(dict.fromkeys(one["dials"]["shape"] for one in known)),
        "intensity": list(dict.fromkeys(one["dials"]["intensity"] for one in known)),
        "gpus": list(dict.fromkeys(_gpus(one) for one in known)),
    }
    for axis, allowed in values.items():
        for asked in getattr(table, axis):
            if asked not in allowed:
                what, _, hint = unknown_name(axis, str(asked), map(str, allowed))
                raise ConfigError(what, expected=", ".join(map(str, allowed)), hint=hint)
    return [
        one
        for one in known
        if one["dials"]["shape"] in (table.shape or values["shape"])
        and one["dials"]["intensity"] in (table.intensity or values["intensity"])
        and _gpus(one) in (table.gpus or values["gpus"])
    ]


def _gpus(regime: dict[str, Any]) -> int:
    return resolve_cluster(regime["cluster"]).total_gpus


def _regime_cells(plan: SuitePlan, table: CellTable) -> Iterator[SuiteCell]:
    for regime in _regimes_of(table):
        shape, intensity = regime["dials"]["shape"], regime["dials"]["intensity"]
        name = f"{shape}-{intensity}-{_gpus(regime)}"
        yield SuiteCell(
            name=name,
            regime=name,
            shape=shape,
            intensity=intensity,
            workload=PRESET,
            cluster=regime["cluster"],
            jobs=regime["episode_jobs"],
            knowledge=table.knowledge or plan.knowledge,
            dials=tuple(regime["dials"].items()),
        )


def _lists(table: CellTable) -> dict[str, Sequence[Any]]:
    """Return the lists of a table, by name."""
    found: dict[str, Sequence[Any]] = {
        axis: _as_list(getattr(table, axis)) for axis in ("workload", "cluster", "load", "jobs")
    }
    return found | {f"set.{dial}": _as_list(value) for dial, value in table.set.items()}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _combined(plan: SuitePlan, table: CellTable) -> Iterator[SuiteCell]:
    lists = _lists(table)
    for values in itertools.product(*lists.values()):
        of = dict(zip(lists, values, strict=True))
        dials = tuple((k.removeprefix("set."), v) for k, v in of.items() if k.startswith("set."))
        named = [("load", of["load"]), ("jobs", of["jobs"]), ("knows", table.knowledge), *dials]
        options = ",".join(f"{key}={_short(value)}" for key, value in named if value is not None)
        name = f"{_short(of['workload'])}@{_short(of['cluster'])}{',' if options else ''}{options}"
        yield SuiteCell(
            name=name,
            regime=name,
            workload=of["workload"],
            cluster=of["cluster"],
            load=of["load"],
            jobs=of["jobs"],
            knowledge=table.knowledge or plan.knowledge,
            dials=dials,
        )


def _short(value: Any) -> str:
    """Return a value as a part of a name: the last part of a path, without the slashes."""
    if isinstance(value, float):
        return f"{value:g}"
    return re.split(r"[/\\]", str(value).rstrip("/"))[-1]
