"""The plan of a suite: a TOML file as data. It says which runs are to be made, and nothing else.

    name, about, schedulers, seeds      what the suite is
    [[cells]]                           a table of lists: every combination of them is a cell
    [[parts]], [train]                  schedulers of their own, some of them trained first

The shipped suites are such files in this folder. A plan that was run is kept in its run directory
as `suite.toml`, with what the command line changed.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from berthline.errors import ConfigError, misfit, unknown_name
from berthline.evaluate.metrics.compared_metrics import check_metric
from berthline.size_limits import check_sizes

SUFFIX = ".toml"
META = "meta"
"""The value of `regimes`: those of `env.meta_regimes`."""
CLEAN = ""
"""The perturbation of a cell as it is."""

Texts = str | list[str]


class CellTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of cells: every combination of its lists. None = not given.

    Attributes:
        regimes: `meta` = the regimes of a meta-scheduler; else `workload` and `cluster` are given.
        shape: of arrivals, of these regimes; empty = all.
        intensity: of arrivals, of these regimes; empty = all.
        gpus: of the cluster, of these regimes; empty = all.
        workload: generators or trace files.
        cluster: names, shapes or files of clusters.
        load: offered loads.
        jobs: numbers of jobs in each window.
        knowledge: of run times; else that of the suite.
        set: dials of the generator; each may be a list.
        perturbations: what is done to the jobs or the cluster, beside the clean cell.
    """

    regimes: str = ""
    shape: list[str] = []
    intensity: list[str] = []
    gpus: list[int] = []
    workload: Texts | None = None
    cluster: Texts | None = None
    load: float | list[float] | None = None
    jobs: int | list[int] | None = None
    knowledge: str | None = None
    set: dict[str, Any] = {}
    perturbations: list[str] = []


class SuitePart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scheduler of a suite with a name of its own: a rule, or a policy that is trained first.

    Attributes:
        name: its name.
        scheduler: the rule.
        train: parameters of `berthline.train`, over those that all parts share.
    """

    name: str
    scheduler: str = ""
    train: dict[str, Any] | None = None


class SuitePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A suite as data.

    Attributes:
        name: its name.
        about: what it is, in a sentence.
        page: which page a report has; empty = that of the name.
        schedulers: the rules, run in every cell.
        more: further ones, run with `--schedulers all`.
        policy: whether a policy may be added; without one, the best rule on VAL is shown too.
        run: the policy that was added.
        seeds: number of seeds of every cell.
        val_seeds: number of further seeds that the best rule of a cell is chosen on.
        seed: what all of them derive from.
        knowledge: of run times.
        metric: what verdicts are about.
        jobs_table: whether the table of jobs is written.
        costs: whether CPU time and memory of every run are measured.
        cells: the tables of cells.
        train: parameters of `berthline.train` that all trained parts share.
        parts: schedulers with names of their own.
        only: what was chosen of the plan; empty = all of it.
        limit: the largest number of runs that was asked for; None = no limit.
    """

    name: str
    about: str
    page: str = ""
    schedulers: list[str] = []
    more: list[str] = []
    policy: bool = False
    run: str = ""
    seeds: int
    val_seeds: int = 2
    seed: int = 0
    knowledge: str = "estimate"
    metric: str = "jct_mean"
    jobs_table: bool = True
    costs: bool = False
    only: str = ""
    limit: int | None = None
    cells: list[CellTable]
    train: dict[str, Any] = {}
    parts: list[SuitePart] = []

    def table(self) -> dict[str, Any]:
        """Return the plan as a TOML table, without what has its default."""
        return _without_defaults(self)


def shipped_suites() -> dict[str, SuitePlan]:
    """Return the suites that the package brings, by name."""
    folder = resources.files("berthline.experiments.suites")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(SUFFIX)), key=lambda f: f.name)
    plans = [read_plan(file.read_bytes(), where=file.name) for file in files]
    order = ("core", "robustness", "ablation", "transfer", "scale", "online")
    plans.sort(key=lambda plan: order.index(plan.name) if plan.name in order else len(order))
    return {plan.name: plan for plan in plans}


def find_suite(text: str) -> SuitePlan:
    """Return the suite of a name, or in a file.

    Raises:
        ConfigError: there is none, or the file is not a suite.
    """
    path = Path(text)
    if not text.endswith(SUFFIX):
        known = shipped_suites()
        if text not in known:
            what, expected, hint = unknown_name("suite", text, known)
            raise ConfigError(what, expected=f"{expected}; or a file that ends in .toml", hint=hint)
        return known[text]
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the suite: {error.strerror}", where=text) from None
    return read_plan(content, where=text)


def read_plan(content: bytes, *, where: str) -> SuitePlan:
    """Return the plan in a TOML text.

    Raises:
        ConfigError: it is not a plan.
    """
    try:
        plan = msgspec.convert(tomllib.loads(content.decode("utf-8")), SuitePlan)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        what, place, expected = misfit(error, {"cells": "table of cells", "parts": "part"})
        raise ConfigError(
            what,
            where=f"{where}, {place}" if place else where,
            expected=expected,
            hint="docs/reference/suites.md lists the keys of a suite",
        ) from None
    return check_plan(plan, where=where)


def check_plan(plan: SuitePlan, *, where: str) -> SuitePlan:
    """Return a plan whose parts fit together.

    Raises:
        ConfigError: they do not.
    """

    def wrong(what: str, expected: str, place: str = "", hint: str = "") -> ConfigError:
        return ConfigError(
            what, where=f"{where}, {place}" if place else where, expected=expected, hint=hint
        )

    if not plan.name or "/" in plan.name:
        raise wrong(f"`name` is {plan.name!r}", "a name without slashes")
    if not plan.schedulers and not plan.parts:
        raise wrong("there is nothing to run", "`schedulers`, or [[parts]]")
    if not plan.cells:
        raise wrong("there are no cells", "one table [[cells]] or more")
    check_sizes(optional=False, seeds=plan.seeds)
    check_metric(plan.metric)
    from berthline.sim.inputs import KNOWLEDGE

    for number, table in enumerate(plan.cells, 1):
        place = f"table of cells {number}"
        _check_axes(table, place, wrong)
        for knowledge in {plan.knowledge, table.knowledge or plan.knowledge}:
            if knowledge not in KNOWLEDGE:
                what, expected, hint = unknown_name("knowledge", knowledge, KNOWLEDGE)
                raise wrong(what, expected, place, hint)
    names = [part.name for part in plan.parts]
    for part in plan.parts:
        place = f"part {part.name!r}"
        if not part.name or "/" in part.name or names.count(part.name) > 1:
            raise wrong("the name is empty, has a slash, or is used twice", "other names", place)
        if (part.train is None) == (not part.scheduler):
            raise wrong("a part is a rule or is trained", "`scheduler` or `train`", place)
    return plan


def _check_axes(table: CellTable, place: str, wrong: Any) -> None:
    for axis in ("workload", "cluster", "load", "jobs"):
        if getattr(table, axis) == []:
            raise wrong(f"`{axis}` is empty", "one value or more", place)
    for dial, value in table.set.items():
        if value == []:
            raise wrong(f"`set.{dial}` is empty", "one value or more", place)
    if table.regimes:
        if table.regimes != META:
            what, expected, hint = unknown_name("regimes", table.regimes, [META])
            raise wrong(what, expected, place, hint)
        for axis in ("workload", "cluster", "load", "jobs", "set"):
            if getattr(table, axis):
                raise wrong(f"`{axis}` is given beside `regimes`", "one of them", place)
        return
    for axis in ("shape", "intensity", "gpus"):
        if getattr(table, axis):
            raise wrong(f"`{axis}` is given without `regimes`", f'regimes = "{META}"', place)
    for axis in ("workload", "cluster"):
        if getattr(table, axis) is None:
            raise wrong(f"`{axis}` is missing", "`workload` and `cluster`, or `regimes`", place)


def _without_defaults(one: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(one):
        value = getattr(one, field.name)
        default = field.default
        if default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        if value == default:
            continue
        if isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
            value = [_without_defaults(each) for each in value]
        found[field.name] = value
    return found
