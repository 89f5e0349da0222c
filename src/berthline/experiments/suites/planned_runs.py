"""The runs of a plan: every scheduler in every window of every cell, and which of them are chosen.

A *unit* is a regime with one seed: its clean window and the perturbed ones, which are made and
measured together. Everything here is a function of the plan, so runs have the same names, seeds and
order for any part of the plan, and on any engine.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import itertools
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from berthline.errors import ConfigError
from berthline.evaluate.compare.protocol import REPORT, VAL
from berthline.experiments.suites.suite_cells import (
    USUAL_JOBS,
    SuiteCell,
    cells_of_plan,
    file_digest,
    number_of_cells,
    seed_of,
)
from berthline.package_version import package_version
from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from berthline.experiments.suites.suite_plan import SuitePlan

BEST_ON_VAL = "best-on-val"
"""Stands for the rule that was best on the VAL windows of a cell."""
MANY_RUNS = 1_000_000
"""More runs than this are refused unless the user insists."""


class RunId(NamedTuple):
    """A run: the numbers of its unit, of its cell in the unit, and of its scheduler."""

    unit: int
    cell: int
    scheduler: int


@dataclasses.dataclass(frozen=True)
class PlannedScheduler:
    """A scheduler of a suite.

    Attributes:
        name: as in the plan; for a part that is trained, the name of the part.
        part: the name of its part; empty = it is not one.
        training_seed: of a part that is trained; None = it is not.
        text: what is run.
        identity: what it is, for the keys of runs: equal schedulers have the same.
    """

    name: str
    part: str
    training_seed: int | None
    text: str
    identity: str

    @property
    def label(self) -> str:
        """Its name, unique in the suite."""
        if self.training_seed is not None:
            return f"{self.name}#{self.training_seed}"
        return self.part or self.name


@dataclasses.dataclass(frozen=True)
class Unit:
    """A regime with one seed.

    Attributes:
        number: its place in the plan.
        cells: the clean cell, then the perturbed ones.
        part: VAL or REPORT.
        seed: its number.
        windows: number of VAL windows and of REPORT windows of each cell.
        plan_seed: that of the plan.
    """

    number: int
    cells: tuple[SuiteCell, ...]
    part: str
    seed: int
    windows: tuple[int, int]
    plan_seed: int

    @property
    def clean(self) -> SuiteCell:
        """The clean cell."""
        return self.cells[0]

    def seed_for(self, what: str) -> int:
        """Return the seed of its jobs, of its runs, or of its perturbations."""
        return seed_of(self.plan_seed, self.clean.regime, self.part, self.seed, what)

    def work(self, runs: int) -> float:
        """Return about how much work some of its runs are, in jobs."""
        return runs * (50.0 + (self.clean.jobs or USUAL_JOBS))

    def digest(self, cell: int) -> hashlib._Hash:
        """Return a hash of everything that affects all results of one of its cells."""
        own = self.cells[cell]
        of_cell = [getattr(own, field.name) for field in dataclasses.fields(own)]
        files = (file_digest(own.workload), file_digest(own.cluster))
        of_unit = (self.part, self.seed, self.windows, self.plan_seed)
        return hashlib.sha256(repr((package_version(), of_cell, files, of_unit)).encode())


class PlannedRuns:
    """The chosen runs of a plan.

    Args:
        plan: the plan.
        trained: the policies that were trained for its parts, by part and training seed; None =
            they are not trained yet.
        yes: whether a very large number of runs is intended.

    Attributes:
        plan: the plan.
        schedulers: all of them.
        cells: the chosen cells.
        units: the chosen units, in order.

    Raises:
        BerthlineError: a name is unknown, or nothing is chosen.
    """

    def __init__(
        self, plan: SuitePlan, trained: Sequence[PlannedScheduler] = (), *, yes: bool = False
    ) -> None:
        self.plan = plan
        self.schedulers = [*_schedulers_of(plan), *trained]
        everything = number_of_cells(plan) * plan.seeds * self.number_of_schedulers
        if everything > MANY_RUNS and not yes and not plan.only and plan.limit is None:
            raise ConfigError(
                f"the suite has {everything:,} runs",
                where=plan.name,
                expected=f"up to {MANY_RUNS:,}",
                hint="`yes` makes them all the same; `limit` takes a balanced part",
            )
        everywhere = cells_of_plan(plan)
        self._pattern = plan.only
        chosen = self._chosen(everywhere)
        if not chosen:
            raise ConfigError(
                f"`only` is {plan.only!r}, which no run has",
                where=plan.name,
                expected="a cell such as "
                f"{everywhere[0].name!r}, or a run such as {self._example(everywhere[0])!r}; "
                "* stands for any text",
            )
        self.units = list(self._units(everywhere, chosen))
        names = {cell.name for unit in self.units for cell in unit.cells}
        self.cells = [cell for cell in everywhere if cell.name in names]

    @property
    def number_of_schedulers(self) -> int:
        """How many schedulers run in each window, those that are yet to be trained included."""
        known = {one.part for one in self.schedulers if one.training_seed is not None}
        missing = [part for part in self.plan.parts if part.train is not None]
        untrained = [part for part in missing if part.name not in known]
        return len(self.schedulers) + sum(training_seeds(self.plan, part) for part in untrained)

    @property
    def chooses_on_val(self) -> bool:
        """Whether the best rule is chosen on VAL windows."""
        plan = self.plan
        is_whole = "/" not in plan.only and plan.val_seeds > 0
        return plan.policy and not plan.run and len(plan.schedulers) > 1 and is_whole

    def runs_of(self, unit: Unit) -> Iterator[RunId]:
        """Yield the chosen runs of a unit, in order."""
        for cell, scheduler in itertools.product(
            range(len(unit.cells)), range(len(self.schedulers))
        ):
            run = RunId(unit.number, cell, scheduler)
            if self._is_chosen(unit.cells[cell], unit.seed, self.schedulers[scheduler]):
                yield run

    def name_of(self, unit: Unit, run: RunId) -> str:
        """Return the name of a run, which chooses it alone."""
        cell = unit.cells[run.cell]
        return f"{cell.name}/seed-{unit.seed}/{self.schedulers[run.scheduler].label}"

    def __len__(self) -> int:
        return sum(1 for unit in self.units for _ in self.runs_of(unit))

    def _example(self, cell: SuiteCell) -> str:
        label = self.schedulers[0].label if self.schedulers else "PART"
        return f"{cell.name}/seed-0/{label}"

    def _is_chosen(self, cell: SuiteCell, seed: int, scheduler: PlannedScheduler) -> bool:
        if "/" not in self._pattern:
            return True  # the cells were chosen
        return _fits(f"{cell.name}/seed-{seed}/{scheduler.label}", self._pattern)

    def _chosen(self, cells: Sequence[SuiteCell]) -> set[tuple[str, int]]:
        """Return the chosen windows of REPORT: names of cells, and seeds."""
        pattern, seeds = self._pattern, range(self.plan.seeds)
        if not pattern:
            found = [(cell.name, seed) for cell in cells for seed in seeds]
        elif "/" not in pattern:
            found = [
                (cell.name, seed) for cell in cells if _fits(cell.name, pattern) for seed in seeds
            ]
        else:
            labels = self.schedulers or _schedulers_of(self.plan)
            found = [
                (cell.name, seed)
                for cell in cells
                for seed in seeds
                if any(self._is_chosen(cell, seed, one) for one in labels)
            ]
        if self.plan.limit is None:
            return set(found)
        return self._balanced(cells, set(found), self.plan.limit)

    def _balanced(
        self, cells: Sequence[SuiteCell], found: set[tuple[str, int]], limit: int
    ) -> set[tuple[str, int]]:
        """Return as many windows as a limit allows, with all values of all axes about as often."""
        each = max(1, self.number_of_schedulers)
        by_name = {cell.name: cell for cell in cells}
        on_val = len(self.plan.schedulers) * self.plan.val_seeds if self.chooses_on_val else 0
        names = {name for name, _ in found}
        order = _spread([cell for cell in cells if cell.name in names])
        taken: set[tuple[str, int]] = set()
        regimes: set[str] = set()
        for seed, cell in itertools.product(range(self.plan.seeds), order):
            if (cell.name, seed) not in found:
                continue
            new = {(cell.name, seed), (by_name[cell.regime].name, seed)} - taken
            runs = (len(taken) + len(new)) * each + len(regimes | {cell.regime}) * on_val
            if runs > limit:
                break
            taken |= new
            regimes.add(cell.regime)
        if not taken:
            raise ConfigError(
                f"`limit` is {limit}",
                where=self.plan.name,
                expected=f"{2 * each + on_val} or more: all schedulers in a window and its twin",
            )
        return taken

    def _units(self, cells: Sequence[SuiteCell], chosen: set[tuple[str, int]]) -> Iterator[Unit]:
        plan = self.plan
        windows = (plan.val_seeds if plan.policy else 0, plan.seeds)
        numbers = itertools.count()
        for regime, group in itertools.groupby(cells, lambda cell: cell.regime):
            clean, *perturbed = list(group)
            has_some = False
            for seed in range(plan.seeds):
                own = [cell for cell in perturbed if (cell.name, seed) in chosen]
                if not own and (regime, seed) not in chosen:
                    continue
                has_some = True
                yield Unit(next(numbers), (clean, *own), REPORT, seed, windows, plan.seed)
            if has_some and self.chooses_on_val:
                for seed in range(plan.val_seeds):
                    yield Unit(next(numbers), (clean,), VAL, seed, windows, plan.seed)


def training_seeds(plan: SuitePlan, part: object) -> int:
    """Return how many times a part is trained."""
    own = getattr(part, "train", None) or {}
    return int({**plan.train, **own}.get("seeds", 1))


def _schedulers_of(plan: SuitePlan) -> list[PlannedScheduler]:
    """Return the schedulers of a plan that need no training.

    Raises:
        ConfigError: one is named twice.
        PolicyError: one is not a scheduler.
    """
    given = [*plan.schedulers, *([plan.run] if plan.run else [])]
    found = [_planned(text, "") for text in given]
    found += [_planned(part.scheduler, part.name) for part in plan.parts if part.scheduler]
    counted = Counter(one.identity for one in found if not one.part)
    for one in found:
        if counted[one.identity] > 1 and not one.part:
            raise ConfigError(
                f"scheduler {one.name!r} is listed twice", where=plan.name, expected="each once"
            )
    return found


def _planned(text: str, part: str) -> PlannedScheduler:
    scheduler = Scheduler.parse(text)
    return PlannedScheduler(text, part, None, text, repr(scheduler))


def _fits(name: str, pattern: str) -> bool:
    """Whether a name is a pattern, or fits it; names may have brackets."""
    return name == pattern or fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def _spread(cells: Sequence[SuiteCell]) -> list[SuiteCell]:
    """Return cells in an order of which every beginning has all values about as often."""
    seen: Counter[tuple[str, object]] = Counter()
    left = list(cells)
    order = []
    while left:
        cell = min(left, key=lambda one: sum(seen[axis] for axis in one.axes))
        left.remove(cell)
        seen.update(cell.axes)
        order.append(cell)
    return order


def asked_of(plan: SuitePlan) -> dict[str, object]:
    """Return the plan as flat data, which must be the same to resume."""
    table: dict[str, object] = msgspec.to_builtins(plan)
    for name in ("cells", "parts"):
        rows = getattr(plan, name)
        table[name] = [msgspec.json.encode(row).decode() for row in rows]
    del table["about"], table["page"]
    return table
