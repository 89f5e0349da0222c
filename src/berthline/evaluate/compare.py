"""compare: several schedulers on the same windows of jobs, against one of them as the baseline.

Every scheduler runs every window from an empty cluster, with the same knowledge and seed, so that
differences are the schedulers' own. Windows that start empty flatter schedulers that hold GPUs
back; a continuous run has no such windows, and is judged in blocks of its jobs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError
from berthline.evaluate.blocks import BLOCKS
from berthline.evaluate.grid import Cell, Grid, Progress, run_grid
from berthline.evaluate.groups import check_grouping
from berthline.evaluate.judge import comparison_of
from berthline.evaluate.measurement_window import MeasurementWindow
from berthline.evaluate.run_record import RunSettings
from berthline.model.workload import Workload, check_workload
from berthline.text_or_path import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from berthline.evaluate.comparison import Comparison
    from berthline.evaluate.energy_rate import EnergyRate
    from berthline.model.cluster import Cluster
    from berthline.text_or_path import TextOrPath


def compare(
    workload: Workload | Sequence[Workload],
    cluster: Cluster | TextOrPath,
    schedulers: Sequence[TextOrPath],
    *,
    baseline: TextOrPath | None = None,
    knowledge: str = "estimate",
    seed: int = 0,
    windows: int = 1,
    continuous: bool = False,
    blocks: int = BLOCKS,
    conditions: Mapping[str, float] | None = None,
    simulator: str = "native",
    energy_rate: EnergyRate | None = None,
    by: Sequence[str] = (),
    measure: tuple[float, float] | None = None,
    workers: int | None = 1,
    progress: Progress | None = None,
) -> Comparison:
    """Run every scheduler on the same windows and compare each with the baseline.

    Args:
        workload: the jobs; several workloads (one per generator seed, say) are a window each.
        cluster: a Cluster, or a CLUSTER argument such as `"uniform:64x8:V100"` or a file's path.
        schedulers: their texts, such as `["fcfs", "sjf+easy@best-fit"]`; learned ones also as
            paths.
        baseline: one of them, or another that is then run first; None = the first.
        knowledge: what the schedulers know of run times: none, estimate, predicted or exact.
        seed: for whatever is random in a scheduler, and for the intervals.
        windows: cut each workload into this many consecutive windows of equally many jobs (one
            more or less where it does not divide), each on an empty cluster from time 0.
        continuous: one run over the whole workload, judged in blocks of jobs.
        blocks: into how many.
        conditions: replace some of the cluster's conditions, such as `{"restart": 30}`.
        simulator: `native` or `reference`.
        energy_rate: price or carbon per kWh over time, on the clock of each workload; windows cut
            from one keep their time in it.
        by: also compare groups of jobs: `user`, `pool`, `size`, `priority`.
        measure: a measurement window (from, to) in seconds on the clock of each window, which
            leaves out a warm-up and a cool-down: jobs count that are submitted in it.
        workers: how many processes make the runs; 1 = this one alone, None = as many as pay. The
            results are the same.
        progress: called after each run with (done, total, label).

    Raises:
        ConfigError: something else than workloads, no or duplicate schedulers, more windows or
            blocks than jobs, several windows in a continuous run, no such grouping, or no job in
            the measurement window.
        BerthlineError: a scheduler does not go with the workload, cluster or knowledge.
    """
    from berthline.model.cluster import Cluster

    # A text is a sequence too, and neither it nor a path is a workload.
    is_one = isinstance(workload, Workload | str | os.PathLike)
    given: Any = [workload] if is_one else workload
    workloads = [check_workload(one) for one in given]
    names, reference = with_baseline(schedulers, baseline)
    if not isinstance(cluster, Cluster):
        cluster = Cluster.parse(cluster)
    if conditions:
        cluster = cluster.with_conditions(conditions)
    for grouping in by:
        check_grouping(grouping)
    grid = Grid(
        [cell_of(workloads, cluster, windows=windows, energy_rate=energy_rate)],
        names,
        [seed],
        RunSettings(
            knowledge=knowledge,
            simulator=simulator,
            by=tuple(by),
            keeps_jobs=continuous,
            measure=None if measure is None else MeasurementWindow.checked(measure),
        ),
        continuous=continuous,
        blocks=blocks,
    )
    return comparison_of(run_grid(grid, workers=workers, progress=progress), 0, reference)


def cell_of(
    workloads: Sequence[Workload],
    cluster: Cluster,
    *,
    windows: int = 1,
    load: float | None = None,
    energy_rate: EnergyRate | None = None,
) -> Cell:
    """Return the cell whose windows are these workloads, each cut into so many.

    Raises:
        ConfigError: no workload, or more windows than jobs.
    """
    if not workloads:
        raise ConfigError("no workload to compare on", expected="one workload or more")
    fewest = min(map(len, workloads))
    if not 1 <= windows <= fewest:
        raise ConfigError(
            f"--windows is {windows}", expected=f"1 to {fewest}: every window needs a job"
        )

    def window(number: int) -> tuple[Workload, float]:
        workload, part = workloads[number // windows], number % windows
        if windows == 1:
            return workload, 0.0
        first, last = (len(workload) * i // windows for i in (part, part + 1))
        return workload.window(first, last), float(workload.submit[first])

    return Cell(
        workload=workloads[0].name,
        source=workloads[0],
        cluster=cluster,
        load=load,
        windows=len(workloads) * windows,
        window=window,
        energy_rate=energy_rate,
    )


def with_baseline(
    schedulers: Sequence[TextOrPath], baseline: TextOrPath | None
) -> tuple[list[str], int]:
    """Return the schedulers to run and which of them is the baseline.

    Two texts are the same scheduler when they are written out alike, as `sjf` and `sjf+strict`.

    Raises:
        ConfigError: there is none, or one is there twice.
        PolicyError: one is none.
    """
    from berthline.policies.scheduler import Scheduler

    if isinstance(schedulers, str | os.PathLike) or not schedulers:
        raise ConfigError(
            f"schedulers is {schedulers!r}",
            expected="a list of schedulers, such as ['fcfs', 'sjf+easy']",
        )
    names = [text_of("scheduler", one) for one in schedulers]
    in_full = [str(Scheduler.parse(name)) for name in names]
    for index, text in enumerate(in_full):
        if text in in_full[:index]:
            earlier = names[in_full.index(text)]
            raise ConfigError(
                f"scheduler {names[index]!r} is listed twice",
                where="" if earlier == names[index] else f"as {earlier!r} before",
                expected="each scheduler once",
            )
    if baseline is None:
        return names, 0
    wanted = str(Scheduler.parse(baseline))
    if wanted in in_full:
        return names, in_full.index(wanted)
    return [text_of("baseline", baseline), *names], 0
