"""Placement of the first waiting jobs all at once, as a mixed-integer program.

`plan` chooses which of the jobs start and where, so that few jobs stay blocked, few nodes are left
fragmented, the free GPUs of nodes differ little, and the jobs after them still find room. Gangs
get exactly as many nodes as on an empty cluster.

The program has no variable per job and node. A variable counts the nodes of a class that get the
same load, so no two solutions differ by a swap of equal nodes or jobs. No plan is lost: nodes of a
class may be swapped in any plan without changing its cost, and of equal jobs the earlier ones start
first, because they weigh more.

Needs the extra `milp`.
"""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import MissingExtraError
from berthline.model.schedule import NOT_IN_TIME, NOT_ON_OWN_NODES, TOO_MANY_WAYS
from berthline.policies.milp_loads import (
    FreeNodes,
    Gangs,
    JobDemand,
    Loads,
    TooManyLoadsError,
    demands_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Allocations", "FreeNodes", "Gangs", "plan"]

Allocations = list[dict[int, int] | None]
"""For each job its allocation (node -> GPUs, by node); None = it waits."""


def plan(
    jobs: Gangs,
    nodes: FreeNodes,
    *,
    next_jobs: Gangs | None = None,
    most_jobs: int = 8,
    blocked: float = 10.0,
    earlier: float = 1.0,
    fragmented: float = 1.0,
    imbalance: float = 0.3,
    next_blocked: float = 0.5,
    time_limit: float = 0.1,
    seed: int = 0,
) -> Allocations | int:
    """Return where the first jobs go, at the least cost; or why no plan was found.

    A reason is an index into FALLBACK_REASONS. The first job starts if it fits at all, whatever the
    weights: it is never sacrificed for later ones. Results are the same on every call, unless the
    time limit ends one of them.

    Args:
        jobs: waiting jobs, in order.
        nodes: what is free.
        next_jobs: jobs after the planned ones, each considered by itself.
        most_jobs: how many of `jobs` to plan.
        blocked: cost of a job that stays blocked. By default more than the other costs that a job
            on one node of 8 GPUs can save by waiting, with up to 8 next jobs.
        earlier: additional cost of blocking for each place earlier in the order.
        fragmented: cost of a node with some GPUs in use and some free.
        imbalance: cost per GPU of (most free GPUs on a node - fewest free GPUs on a node).
        next_blocked: cost of each of `next_jobs` that fits now and would not afterwards.
        time_limit: seconds for the solver.
        seed: of the solver; it decides between plans of equal cost.

    Raises:
        MissingExtraError: highspy is not installed.
    """
    count = min(most_jobs, len(jobs.gpus))
    if not count or not len(nodes.gpus):
        return [None] * count
    demands = demands_of(jobs, count, int(nodes.gpus.max()))
    later = demands_of(next_jobs, len(next_jobs.gpus), 0) if next_jobs is not None else []
    try:
        loads = Loads(nodes, demands, later)
    except TooManyLoadsError:
        return TOO_MANY_WAYS
    program = Program()
    cost = fragmented * ((loads.gpus > 0) & (loads.gpus < loads.total))
    columns = program.integers(cost, 0, loads.uses_at_most(demands))
    for node_class, size in enumerate(loads.class_size):
        program.row(size, size, (columns[loads.node_class == node_class], 1))
    weights = blocked + earlier * np.arange(count - 1.0, -1.0, -1.0)
    for d, demand in enumerate(demands):
        add_starts(program, columns, loads.amounts[:, d], demand, weights)
    if imbalance:
        add_imbalance(program, columns, loads, demands, imbalance)
    for demand in later:
        add_next(program, columns, loads, demand, next_blocked * len(demand.jobs))
    solution = program.solve(time_limit, seed)
    if isinstance(solution, int):
        return solution
    return read(solution[columns], loads, demands, count)


def solver() -> Any:
    """Return the solver's module.

    Raises:
        MissingExtraError: highspy is not installed.
    """
    try:
        return importlib.import_module("highspy")
    except ImportError:
        raise MissingExtraError("highspy", "milp", "placement by mixed-integer program") from None


class Program:
    """A mixed-integer program, built from columns and rows."""

    def __init__(self) -> None:
        self.num_columns = 0
        self.columns: list[tuple[Any, Any, Any]] = []  # cost, lower, upper
        self.bounds: list[tuple[float, float]] = []  # of rows
        self.entries: list[tuple[Ints, Ints, Floats]] = []  # row, column, value

    def integers(self, cost: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Ints:
        """Add integer columns and return their indices."""
        cost, lower, upper = np.broadcast_arrays(*map(np.atleast_1d, (cost, lower, upper)))
        self.columns.append((cost, lower, upper))
        self.num_columns += len(cost)
        return np.arange(self.num_columns - len(cost), self.num_columns)

    def row(self, lower: float, upper: float, *terms: tuple[Ints, ArrayLike]) -> None:
        """Add a row, the sum of columns times values, with its bounds."""
        for columns, values in terms:
            row = np.full(len(columns), len(self.bounds))
            self.entries.append((row, columns, np.broadcast_to(values, len(columns))))
        self.bounds.append((lower, upper))

    def solve(self, time_limit: float, seed: int) -> Ints | int:
        """Return an optimal solution, or why none was found (index into FALLBACK_REASONS)."""
        highspy = solver()
        rows, columns, values = (np.concatenate(parts) for parts in zip(*self.entries, strict=True))
        cost, lower, upper = (np.concatenate(parts) for parts in zip(*self.columns, strict=True))
        row_lower, row_upper = np.array(self.bounds, np.float64).T
        in_rows = np.argsort(rows, kind="stable")
        starts = np.searchsorted(rows[in_rows], np.arange(len(self.bounds) + 1))
        highs = highspy.Highs()
        options = {
            "output_flag": False,
            "threads": 1,
            "random_seed": seed,
            "time_limit": time_limit,
            "mip_rel_gap": 0.0,
            # Both cost more time than they save: there is little left to presolve, and the root
            # relaxation is so tight that rounding it gives good plans.
            "presolve": "off",
            "mip_heuristic_run_feasibility_jump": False,
        }
        for name, value in options.items():
            highs.setOptionValue(name, value)
        highs.passModel(
            self.num_columns,
            len(self.bounds),
            len(values),
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            cost.astype(np.float64),
            lower.astype(np.float64),
            upper.astype(np.float64),
            row_lower,
            row_upper,
            starts.astype(np.int32),
            columns[in_rows].astype(np.int32),
            values[in_rows].astype(np.float64),
            np.full(self.num_columns, int(highspy.HighsVarType.kInteger), np.int32),
        )
        highs.run()
        status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return NOT_ON_OWN_NODES
        if status != highspy.HighsModelStatus.kOptimal:
            return NOT_IN_TIME
        solution: Ints = np.rint(highs.getSolution().col_value).astype(np.int64)
        return solution


def add_starts(
    program: Program, columns: Ints, amounts: Ints, demand: JobDemand, weights: Floats
) -> None:
    """Let jobs of a demand start; each that does not costs its weight."""
    first_starts = np.array(demand.jobs) == 0  # the head of the queue: it fits, so it starts
    starts = program.integers(-weights[demand.jobs], first_starts, 1)
    used = np.flatnonzero(amounts)
    if demand.counted:
        program.row(0, 0, (columns[used], amounts[used]), (starts, -demand.nodes))
    else:
        program.row(0, 0, (columns[used], 1), (starts, -demand.nodes))
        program.row(0, 0, (columns[used], amounts[used]), (starts, -demand.gpus))


def add_imbalance(
    program: Program, columns: Ints, loads: Loads, demands: Sequence[JobDemand], weight: float
) -> None:
    """Charge for (most free GPUs on a node - fewest free GPUs on a node).

    For each number of GPUs, one column says whether some node has at least that many free, and one
    whether all nodes have.
    """
    before = np.sort(loads.gpus[: len(loads.class_size)].repeat(loads.class_size))[::-1]
    used_at_most = sum(demand.nodes * len(demand.jobs) for demand in demands)
    # Of the nodes with the most free, one more than can be used: one of them stays as it is.
    most_at_least = before[used_at_most] if used_at_most < len(before) else 0
    for level in range(1, 1 + int(before[0])):
        enough = (columns[loads.gpus >= level], 1)
        if level > most_at_least:
            some = program.integers(weight, 0, 1)
            program.row(-math.inf, 0, enough, (some, -len(before)))
        if level <= before[-1]:
            every = program.integers(-weight, 0, 1)
            program.row(0, math.inf, enough, (every, -len(before)))


def add_next(
    program: Program, columns: Ints, loads: Loads, demand: JobDemand, weight: float
) -> None:
    """Reward room for later jobs: the largest nodes together must hold one of them.

    The sum of the n largest numbers is the sum over levels of min(n, numbers that reach the level).
    """
    room = loads.room(demand)
    fits = program.integers(-weight, 0, 1)
    if demand.nodes == 1:
        program.row(0, math.inf, (columns[room >= demand.gpus], 1), (fits, -1))
        return
    levels = np.arange(1, 1 + int(room.max()))
    reaching = program.integers(np.zeros(len(levels)), 0, demand.nodes)
    for level, column in zip(levels, reaching, strict=True):
        program.row(0, math.inf, (columns[room >= level], 1), (np.array([column]), -1))
    program.row(0, math.inf, (reaching[:1], 1), (fits, -demand.nodes))
    program.row(0, math.inf, (reaching, 1), (fits, -demand.gpus))


def read(counts: Ints, loads: Loads, demands: Sequence[JobDemand], count: int) -> Allocations:
    """Return the plan in which `counts` nodes get each load; the fullest go to the lowest ids."""
    load_of = np.zeros(len(loads.class_of), np.int64)
    fullest_first = np.argsort(loads.gpus, kind="stable")
    for node_class in range(len(loads.class_size)):
        chosen = fullest_first[loads.node_class[fullest_first] == node_class]
        load_of[loads.class_of == node_class] = np.repeat(chosen, counts[chosen])
    result: Allocations = [None] * count
    for d, demand in enumerate(demands):
        amounts = loads.amounts[load_of, d]
        if demand.counted:
            share = int(demand.most.max())
            places = np.repeat(np.arange(len(amounts)), amounts).reshape(-1, demand.nodes)
            for job, place in zip(demand.jobs, places.tolist(), strict=False):
                result[job] = dict.fromkeys(place, share)
        elif amounts.any():
            used = np.flatnonzero(amounts)
            result[demand.jobs[0]] = dict(zip(used.tolist(), amounts[used].tolist(), strict=True))
    return result
