"""simulate: one scheduler on one workload, with measurements, and a run directory if asked.

`sim.simulate` makes the run. Around it, this reads what the arguments name, as `berthline sim`
does, measures, and writes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from berthline.argument_types import check_arguments
from berthline.counted import counted
from berthline.errors import ConfigError
from berthline.evaluate.metrics.energy_rate import EnergyRate
from berthline.evaluate.metrics.groups import check_grouping
from berthline.evaluate.metrics.measurement_window import MeasurementWindow
from berthline.policies.scheduler import Scheduler
from berthline.runs.job_outcomes import run_jobs
from berthline.runs.job_tables import table_writers
from berthline.runs.run_directory import RunDirectory, open_directory
from berthline.runs.run_layout import START
from berthline.runs.run_output import RunOutput, argument_name
from berthline.runs.start_file import write_start
from berthline.sim.policy_runner import nameable
from berthline.sim.simulate import simulate as simulate_jobs
from berthline.text_or_path import text_of
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.stated_cluster import default_cluster
from berthline.traces.workload_argument import resolve_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from berthline.evaluate.metrics.groups import GroupMetrics
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.sim.simulate import Result
    from berthline.text_or_path import TextOrPath


class MeasuredRun(NamedTuple):
    """A run and what was measured of it.

    Attributes:
        result: the run.
        summary: what summary.json has.
        groups: the metrics of groups of jobs, by grouping.
    """

    result: Result
    summary: dict[str, Any]
    groups: dict[str, list[GroupMetrics]]


def simulate(
    workload: Workload | TextOrPath,
    cluster: Cluster | TextOrPath | None,
    scheduler: Scheduler | TextOrPath | Any,
    *,
    knowledge: str = "estimate",
    jobs: int | None = None,
    load: float | None = None,
    seed: int = 0,
    format: str | None = None,  # noqa: A002 - the same name as in load_trace
    settings: Mapping[str, object] | None = None,
    horizon: float | None = None,
    conditions: Mapping[str, float] | None = None,
    simulator: Literal["native", "reference"] | str = "native",
    time_decisions: bool = False,
    by: Sequence[str] = (),
    measure: tuple[float, float] | None = None,
    energy_rate: EnergyRate | TextOrPath | None = None,
    energy_period: float | None = None,
    out: TextOrPath | RunOutput | None = None,
    force: bool = False,
    remark: Callable[[str], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Simulate the workload and return the result, whose schedule log says what happened.

    Args:
        workload: the jobs: a Workload, or a WORKLOAD argument such as `"trace.swf"` or
            `"synthetic"` (see `resolve_workload`).
        cluster: a Cluster, or a CLUSTER argument such as `"uniform:64x8:V100"`, a cluster file or a
            node list (see `resolve_cluster`); None = what a trace states, else
            `uniform:8x8:V100`.
        scheduler: a Scheduler, or its text such as `"sjf+easy@best-fit"`, or the directory of a
            training run such as `"runs/ppo"`, or a policy: a `Policy`, or a function, a network or
            a model that can be one, which is slow.
        knowledge: what the scheduler knows about run times: none, estimate, predicted or exact.
        jobs: number of jobs to generate, or to take from the start of a trace; None = 1000, or all.
        load: offered load; None = the default of a generator, or the trace as it is.
        seed: decides everything random: order, placement, failures and refused starts, and the
            jobs of a generator.
        format: format of a trace file; None = recognise it.
        settings: dials of a generator, or options of a trace format.
        horizon: stop at this time; None = run until every job has finished.
        conditions: replace some of the cluster's conditions, such as `{"restart": 30}`.
        simulator: `native` (fast) or `reference` (the SimPy definition of the semantics).
        time_decisions: measure the time of every decision, for `Result.decision_latency`. A clock
            is read twice at each, which takes longer than many decisions of the native simulator.
            Of a learned policy, the choices of its network are timed, without its observations.
        by: what `out` has metrics of groups by: `user`, `pool`, `size`, `priority`.
        measure: what `out` measures: only jobs submitted in this window (from, to), in seconds.
        energy_rate: price or carbon per kWh over time, for `out`; or a CSV file of it.
        energy_period: an energy rate from a file repeats after this many seconds.
        out: write a run directory, as `berthline sim` does.
        force: replace an earlier run of `simulate` there.
        remark: called with a sentence if a node list omits something, a value is a guess, or a
            policy runs in Python.
        progress: called periodically with the number of jobs that have arrived.

    Raises:
        BerthlineError: the inputs are not compatible, or the directory must not be replaced.

    Example:
        >>> result = simulate("synthetic", "uniform:8x8:V100", "sjf+easy", jobs=200)
        >>> result.metrics().jobs.completed
        200
    """
    return simulate_run(
        workload, cluster, scheduler, knowledge=knowledge, jobs=jobs, load=load, seed=seed,
        format=format, settings=settings, horizon=horizon, conditions=conditions,
        simulator=simulator, time_decisions=time_decisions, by=by, measure=measure,
        energy_rate=energy_rate, energy_period=energy_period, out=out, force=force, remark=remark,
        progress=None if progress is None else lambda done, _total, _label: progress(done),
        is_measured=out is not None,
    ).result  # fmt: skip


def simulate_run(
    workload: Workload | TextOrPath,
    cluster: Cluster | TextOrPath | None,
    scheduler: Scheduler | TextOrPath | Any,
    *,
    knowledge: str,
    jobs: int | None,
    load: float | None,
    seed: int,
    format: str | None,  # noqa: A002 - the same name as in load_trace
    settings: Mapping[str, object] | None,
    horizon: float | None,
    conditions: Mapping[str, float] | None,
    simulator: str,
    time_decisions: bool,
    by: Sequence[str],
    measure: tuple[float, float] | None,
    energy_rate: EnergyRate | TextOrPath | None,
    energy_period: float | None,
    out: TextOrPath | RunOutput | None,
    force: bool,
    remark: Callable[[str], None] | None,
    progress: Callable[[int, int, str], None] | None,
    is_measured: bool = True,
) -> MeasuredRun:
    """Return the run of `simulate` with what was measured of it; the arguments are the same.

    `progress` is called with (done, total, label); without `is_measured`, nothing is measured.
    """
    check_arguments(
        seed=seed, horizon=horizon, conditions=conditions, settings=settings, by=by,
        measure=measure, energy_period=energy_period,
    )  # fmt: skip
    window = None if measure is None else MeasurementWindow.checked(measure)
    for grouping in by:
        check_grouping(grouping)
    if energy_period is not None and energy_rate is None:
        raise ConfigError("`energy_period` has no effect without `energy_rate`")
    if not isinstance(scheduler, Scheduler):
        policy = nameable(scheduler)  # its name means something while it exists
        scheduler = Scheduler.parse(policy)
    output = RunOutput.of(out, "berthline.simulate(...)")
    directory = open_directory(
        None if output is None else text_of("out", output.path), verb="sim", force=force
    )
    given = default_cluster(workload, format, remark) if cluster is None else cluster
    nodes = resolve_cluster(given, remark)
    if conditions:
        nodes = nodes.with_conditions(conditions)
    named = argument_name(workload)
    workload = resolve_workload(
        workload, cluster=nodes, jobs=jobs, load=load, seed=seed, format=format, settings=settings
    )
    rate = energy_rate
    if rate is not None and not isinstance(rate, EnergyRate):
        path = text_of("energy_rate", rate)
        rate = EnergyRate.for_workload(path, workload, period=energy_period or math.inf)
    total = len(workload)
    result = simulate_jobs(
        workload,
        nodes,
        scheduler,
        knowledge=knowledge,
        seed=seed,
        horizon=horizon,
        simulator=simulator,
        time_decisions=time_decisions,
        progress=None
        if progress is None
        else lambda arrived: progress(arrived, total, counted(arrived, "job")),
    )
    if result.policy is not None and remark is not None:
        remark(result.policy)
    if not is_measured:
        return MeasuredRun(result, {}, {})
    run = measured_run(result, by, window, rate, progress)
    if directory is not None and output is not None:
        asked = {
            "workload": named,
            "cluster": argument_name(given),
            "knowledge": knowledge,
            "jobs": jobs,
            "load": load,
            "seed": seed,
            "set": {name: str(value) for name, value in (settings or {}).items()},
            "format": format,
            "horizon": horizon,
            "measure": None if measure is None else f"{measure[0]!r}:{measure[1]!r}",
            "energy_rate": None if energy_rate is None else argument_name(energy_rate),
            "energy_period": energy_period,
            "simulator": simulator,
            "time_decisions": time_decisions,
        }
        keep_run(run, directory, output, asked, by)
    return run


def measured_run(
    result: Result,
    by: Sequence[str],
    window: MeasurementWindow | None,
    rate: EnergyRate | None,
    progress: Callable[[int, int, str], None] | None,
) -> MeasuredRun:
    """Return a run with its summary, and with the metrics of groups of its jobs."""
    summary = result.summary(measure=window)
    groups: dict[str, list[GroupMetrics]] = {}
    if rate is not None:
        summary["energy_cost"] = result.energy_cost(rate, measure=window)
    for done, grouping in enumerate(by, start=1):
        groups[grouping] = result.by(grouping, measure=window)
        # by_priority always exists, with fewer metrics.
        summary.setdefault(f"by_{grouping}", {row.group: row for row in groups[grouping]})
        if progress is not None:
            progress(done, len(by), f"by {grouping}")
    return MeasuredRun(result, summary, groups)


def keep_run(
    run: MeasuredRun,
    directory: RunDirectory,
    output: RunOutput,
    asked: Mapping[str, Any],
    by: Sequence[str],
) -> None:
    """Write the directory of a run."""
    result = run.result
    files = table_writers([run_jobs(result)], workload=result.workload, cluster=result.cluster)
    if result.start is not None:
        start = result.start
        files[START] = lambda path: write_start(start, path)
    directory.write(
        command=output.command,
        config={
            **(asked if output.config is None else output.config),
            "scheduler": str(result.scheduler),
            "by": list(by),
            "condition": None,
            "conditions": result.cluster.conditions.changed(),
        },
        seed=result.seed,
        summary=run.summary,
        metrics=[run.summary],
        log=result.log,
        workload=result.workload,
        files=files,
    )
