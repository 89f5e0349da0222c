"""Runs that the tests of `explain` use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.errors import BerthlineError
from berthline.model.workload import Workload
from berthline.sim.simulate import Result, simulate

if TYPE_CHECKING:
    from tests.agreement.random_runs import Run

    from berthline.model.cluster import Cluster


def simulated(run: Run) -> Result | None:
    """Return the run; None = it is refused, or jobs are preempted without end."""
    try:
        return simulate(
            run.workload,
            run.cluster,
            run.scheduler,
            knowledge=run.knowledge,
            seed=run.seed,
            horizon=run.horizon,
        )
    except BerthlineError:
        return None


def run_of(
    gpus: list[int],
    scheduler: str,
    *,
    cluster: Cluster | str = "uniform:2x4",
    submit: list[float] | None = None,
    run: list[float] | None = None,
    **columns: object,
) -> Result:
    """Return a run of a few jobs, one a second, each 100 s unless said."""
    jobs = len(gpus)
    run = run or [100.0] * jobs
    workload = Workload.from_columns(
        submit=submit or list(range(jobs)),
        run=run,
        gpus=gpus,
        **{"estimate": run, **columns},  # type: ignore[arg-type]  # columns of a workload
    )
    return simulate(workload, cluster, scheduler)
