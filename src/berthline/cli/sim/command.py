"""`berthline sim`: run one workload on one cluster under one scheduler."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.compare.show import wrapped
from berthline.cli.conditions import ConditionOption, header_of, read_conditions
from berthline.cli.energy_rate import (
    EnergyPeriod,
    EnergyRateFile,
    check_energy_rate,
    cost_of,
)
from berthline.cli.groups import By, read_groupings, show_groups
from berthline.cli.options import (
    ConfigFile,
    Force,
    Format,
    Horizon,
    Jobs,
    Json,
    Knowledge,
    Load,
    Measure,
    OptionalClusterName,
    Out,
    Seed,
    Settings,
    WorkloadName,
    check_choice,
    command_line,
    moment,
    parse_options,
    read_settings,
)
from berthline.cli.output import (
    clock,
    counted,
    job_counts,
    new_table,
    note,
    note_dropped_rows,
    number,
    percent,
    print_facts,
    print_json,
    print_table,
    progress,
    seconds,
    trace_facts,
)
from berthline.cli.sim.facts import (
    disturbances,
    rejected_by_reason,
    shorter_than_its_jobs,
    unlike_the_trace,
)
from berthline.cli.sim.from_snapshot import continued
from berthline.cli.traces.file import Map, format_options
from berthline.errors import ConfigError, PolicyError
from berthline.evaluate.metrics.measurement_window import MeasurementWindow
from berthline.evaluate.metrics.starvation import starvation_words, starves_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.policies.scheduler import Scheduler
    from berthline.runs.simulate_run import MeasuredRun
    from berthline.sim.simulate import Result


class Sim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Run one workload on one cluster under one scheduler, and print the results.

    Examples:
      berthline sim synthetic --jobs 10000 --scheduler sjf+easy
      berthline sim trace.swf --scheduler fcfs+easy --cluster my.toml --out runs/1
      berthline sim synthetic --order "estimate * sqrt(gpus)" --jobs 10000 --json
      berthline sim synthetic --scheduler 'srpt+skip!srpt' --condition restart=30
      berthline sim synthetic --by user,size --energy-rate tariff.csv
      berthline sim synthetic --jobs 5000 --measure 86400:172800
      berthline sim trace.swf --until 86400 --out runs/day
      berthline sim runs/day --from-snapshot --scheduler sjf+easy
    """

    workload: WorkloadName
    cluster: OptionalClusterName = None
    from_snapshot: Annotated[bool, arg(help_behavior_hint="")] = False
    """WORKLOAD is a run directory: continue the run from its horizon, with the jobs that come after
    it."""
    at: Annotated[
        float | None,
        moment("--at", may_be_zero=True),
        arg(metavar="TIME", help_behavior_hint="(default: its horizon)"),
    ] = None
    """With --from-snapshot: continue from this instant of the run (86400, 12h, 30d)."""
    scheduler: Annotated[
        str | None,
        arg(metavar="SCHEDULER", help_behavior_hint="(default: fcfs, or that of the snapshot)"),
    ] = None
    """order[+discipline][@placement][?gate][!preemption]: see berthline policies."""
    order: Annotated[str | None, arg(metavar="FORMULA", help_behavior_hint="")] = None
    """An ordering that replaces the scheduler's: the smallest value is next."""
    gate: Annotated[str | None, arg(metavar="FORMULA", help_behavior_hint="")] = None
    """A gate that replaces the scheduler's: a job may start only while it is 0 or more."""
    knowledge: Knowledge = "estimate"
    condition: ConditionOption = ()
    jobs: Jobs = None
    load: Load = None
    seed: Seed = 0
    set: Settings = ()
    format: Format = None
    map: Map = None
    horizon: Horizon = None
    measure: Measure = None
    by: By = ()
    energy_rate: EnergyRateFile = None
    energy_period: EnergyPeriod = None
    simulator: Annotated[str, arg(metavar="NAME")] = "native"
    """native is fast; reference is slow, and defines the semantics."""
    time_decisions: Annotated[bool, arg(help_behavior_hint="")] = False
    """Time every decision of the scheduler, or every choice of a learned policy's network; the run
    takes longer, its log is the same."""
    config_file: ConfigFile = None
    json: Json = False
    out: Out = None
    force: Force = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Sim, argv, verb="sim")
    from berthline.sim.inputs import KNOWLEDGE
    from berthline.sim.simulate import SIMULATORS

    check_choice("--knowledge", options.knowledge, KNOWLEDGE)
    check_choice("--simulator", options.simulator, SIMULATORS)
    window = None if options.measure is None else MeasurementWindow.parse(options.measure)
    groupings = read_groupings(options.by)
    check_energy_rate(options.energy_rate, options.energy_period)
    if options.at is not None and not options.from_snapshot:
        raise ConfigError("--at has no effect without --from-snapshot")
    if options.from_snapshot:
        run, options = continued(options, argv, groupings=groupings, window=window)
    else:
        run, options = _from_empty(options, argv, groupings=groupings, window=window)
    result, summary = run.result, run.summary
    if options.json:
        note_dropped_rows(result.workload)
        print_json(summary)
    else:
        show(result, cost=summary.get("energy_cost"), measure=window)
        for grouping, rows in run.groups.items():
            print()
            show_groups(grouping, rows)
        print()
        print_facts(
            {
                "results": options.out or "",
                "again": command_line("sim", options),
            }
        )
    return 0


def _from_empty(
    options: Sim,
    argv: list[str],
    *,
    groupings: Sequence[str],
    window: MeasurementWindow | None,
) -> tuple[MeasuredRun, Sim]:
    """Return a run that begins with an empty cluster, and its resolved options."""
    from berthline.runs.run_output import RunOutput
    from berthline.runs.simulate_run import simulate_run
    from berthline.traces.stated_cluster import default_cluster

    if options.scheduler is None:
        options = msgspec.structs.replace(options, scheduler="fcfs")
    scheduler = read_scheduler(options)
    named = options.cluster or default_cluster(options.workload, options.format, note)
    options = msgspec.structs.replace(options, cluster=named)
    config = {**msgspec.structs.asdict(options), "set": read_settings(options.set)}
    with progress("simulating") as report:
        run = simulate_run(
            options.workload,
            named,
            scheduler,
            knowledge=options.knowledge,
            jobs=options.jobs,
            load=options.load,
            seed=options.seed,
            format=options.format,
            settings=format_options(options.map, options.set),
            horizon=options.horizon,
            conditions=read_conditions(options.condition),
            simulator=options.simulator,
            time_decisions=options.time_decisions,
            by=groupings,
            measure=window,
            energy_rate=options.energy_rate,
            energy_period=options.energy_period,
            out=options.out
            and RunOutput(options.out, shlex.join(["berthline", "sim", *argv]), config),
            force=options.force,
            remark=note,
            progress=report,
        )
    return run, options


def read_scheduler(options: Sim) -> Scheduler:
    """Return the scheduler that --scheduler, --order and --gate specify together.

    Raises:
        PolicyError: a part is wrong; the error says so if --order is a whole scheduler.
    """
    from berthline.policies.formula_checks import idle_formulas
    from berthline.policies.orders import ORDERS
    from berthline.policies.scheduler import Scheduler

    try:
        scheduler = Scheduler.parse(options.scheduler or "", order=options.order, gate=options.gate)
    except PolicyError:
        if options.order is None:
            raise
        name = re.match(r"([a-z0-9-]+)[+@?][a-z]", options.order)
        if name is None or name[1] not in ORDERS:
            raise
        raise PolicyError(
            f"--order is {options.order!r}, which is a scheduler",
            expected="a formula, or the name of an ordering, such as sjf",
            hint=f"did you mean --scheduler {shlex.quote(options.order)}?",
        ) from None
    for remark in idle_formulas(scheduler):
        note(remark)
    return scheduler


def show(
    result: Result, *, cost: float | None = None, measure: MeasurementWindow | None = None
) -> None:
    """Print a result as text, with the cost of its energy if known."""
    window = result.window(measure)
    metrics, cluster = result.metrics(measure=measure), result.cluster
    print(f"{result.scheduler}")
    print(
        f"{result.workload.name} on {cluster.name} ({counted(cluster.total_gpus, 'GPU')}), "
        f"knowledge {result.knowledge}, seed {result.seed}\n"
        f"{header_of(cluster.conditions.changed(), result.run_times)}"
    )
    table = new_table("", "mean", "p50", "p95", "p99", "max")
    for label, values, write in (
        ("wait, s", metrics.wait, seconds),
        ("JCT, s", metrics.jct, seconds),
        ("slowdown", metrics.slowdown, _ratio),
        ("bounded slowdown", metrics.bounded_slowdown, _ratio),
    ):
        table.add_row(label, *(write(value) for value in msgspec.structs.astuple(values)))
    print_table(table)
    print()
    print_facts(
        {
            "measured": "" if window is None else window.in_words(),
            "jobs": job_counts(metrics.jobs),
            "rejected": rejected_by_reason(result),
            "unfinished": "counted with the time they have spent so far"
            if metrics.jobs.unfinished
            else "",
            **trace_facts(result.workload),
            **disturbances(result, metrics, window),
            "makespan": f"{number(metrics.makespan)} s = {clock(metrics.makespan)}",
            "GPUs used": f"{percent(metrics.utilization.gpu)} of GPU-seconds, "
            f"{percent(metrics.utilization.flops)} weighted by FLOPS",
            "queue": f"{number(metrics.queue.mean, 1)} jobs on average, "
            f"{number(metrics.queue.max)} at most",
            "starvation": ""
            if metrics.starvation is None
            else wrapped(starvation_words(metrics.starvation)),
            "starves": wrapped(starves_words({str(result.scheduler): metrics.starvation})),
            "deadlines": ""
            if metrics.deadline_miss_rate is None
            else f"{percent(metrics.deadline_miss_rate)} missed",
            "energy": f"{number(metrics.energy_kwh, 0 if metrics.energy_kwh >= 100 else 2)} kWh",
            "cost": "" if cost is None else f"{cost_of(cost)} for energy, at the rates given",
            "fairness": f"{number(metrics.fairness.jain, 3)} (Jain's index over users; 1 = even)"
            if len(result.workload.user_names) > 1
            else "",
            "note": unlike_the_trace(result),
            "caution": shorter_than_its_jobs(result),
            "decisions": _latency(result),
            "run took": f"{result.wall_seconds:.3g} s, {counted(metrics.events, 'event')}",
        }
    )


def _latency(result: Result) -> str:
    """Return how long decisions took, if they were timed."""
    latency = result.decision_latency()
    if latency.p50 is None or latency.p99 is None or latency.max is None:
        return ""
    p50, p99, most = (f"{value * 1e6:.3g}" for value in (latency.p50, latency.p99, latency.max))
    return f"{p50} us at the median, {p99} us at the 99th percentile, {most} us at most"


def _ratio(value: float) -> str:
    return number(value, 2 if abs(value) < 100 else 0)
