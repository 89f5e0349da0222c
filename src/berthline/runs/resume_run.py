"""resume: continue a run from a snapshot, and write a run directory if asked.

`sim.snapshots.resume` makes the run; `write_snapshot` writes a state that was not simulated here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.evaluate.metrics.groups import check_grouping
from berthline.evaluate.metrics.measurement_window import MeasurementWindow
from berthline.model.schedule import FINISH, REJECT
from berthline.model.snapshot import Snapshot
from berthline.runs.job_tables import input_writers
from berthline.runs.run_directory import open_directory
from berthline.runs.run_layout import START
from berthline.runs.run_output import RunOutput, argument_name
from berthline.runs.simulate_run import MeasuredRun, keep_run, measured_run
from berthline.runs.start_file import write_start
from berthline.sim.snapshots.check import check_snapshot
from berthline.sim.snapshots.resume import resume as resume_jobs
from berthline.text_or_path import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from berthline.model.workload import Workload
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.simulate import Result
    from berthline.text_or_path import TextOrPath


def resume(
    snapshot: Snapshot,
    scheduler: Scheduler | TextOrPath | None = None,
    *,
    arrivals: Workload | None = None,
    knowledge: str | None = None,
    seed: int | None = None,
    horizon: float | None = None,
    conditions: Mapping[str, float] | None = None,
    simulator: str = "native",
    out: TextOrPath | RunOutput | None = None,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Continue a run from a snapshot and return its log, rows of the snapshot included.

    With the scheduler, the seed and the later jobs of the run that the snapshot is from, the rest
    of the log is that of the run, row for row. Another scheduler decides at once.

    Args:
        snapshot: the state at the beginning.
        scheduler: as in `simulate`; None = that of the snapshot.
        arrivals: the jobs that are submitted later, on the clock of the snapshot (build them with
            `rebase=False`); None = no more jobs come.
        knowledge: as in `simulate`; None = that of the snapshot.
        seed: as in `simulate`; None = that of the snapshot.
        horizon: as in `simulate`.
        conditions: as in `simulate`.
        simulator: as in `simulate`.
        out: write a run directory, as `berthline sim` does.
        force: replace an earlier run there.
        progress: as in `simulate`.

    Raises:
        BerthlineError: the snapshot contradicts itself, the inputs are not compatible, or run times
            are not known.

    Example:
        >>> import berthline as bl
        >>> result = bl.simulate("synthetic", "uniform:8x8:V100", "fcfs+easy", jobs=200)
        >>> half = result.snapshot(50_000.0)
        >>> bl.resume(half, "sjf+easy").metrics().jobs.unfinished
        0
    """
    return resume_run(
        snapshot, scheduler, arrivals=arrivals, knowledge=knowledge, seed=seed, horizon=horizon,
        conditions=conditions, simulator=simulator, by=(), measure=None, out=out, force=force,
        is_measured=out is not None, progress=progress,
    ).result  # fmt: skip


def resume_run(
    snapshot: Snapshot,
    scheduler: Scheduler | TextOrPath | None,
    *,
    arrivals: Workload | None,
    knowledge: str | None,
    seed: int | None,
    horizon: float | None,
    conditions: Mapping[str, float] | None,
    simulator: str,
    by: Sequence[str],
    measure: tuple[float, float] | None,
    out: TextOrPath | RunOutput | None,
    force: bool,
    is_measured: bool = True,
    progress: Callable[[int], None] | None,
) -> MeasuredRun:
    """Return the run of `resume` with what was measured of it; the arguments are the same."""
    if measure is not None and isinstance(snapshot, Snapshot):
        MeasurementWindow.of_run(measure, snapshot.now)  # an error costs no run
    window = None if measure is None else MeasurementWindow.checked(measure)
    for grouping in by:
        check_grouping(grouping)
    output = RunOutput.of(out, "berthline.resume(...)")
    directory = open_directory(
        None if output is None else text_of("out", output.path), verb="sim", force=force
    )
    result = resume_jobs(
        snapshot,
        scheduler,
        arrivals=arrivals,
        knowledge=knowledge,
        seed=seed,
        horizon=horizon,
        conditions=conditions,
        simulator=simulator,
        progress=progress,
    )
    if not is_measured:
        return MeasuredRun(result, {}, {})
    run = measured_run(result, by, window, None, None)
    if directory is not None and output is not None:
        asked = {
            "workload": argument_name(result.workload),
            "cluster": argument_name(result.cluster),
            "knowledge": result.knowledge,
            "seed": result.seed,
            "horizon": horizon,
            "simulator": simulator,
            "from_snapshot": True,
        }
        keep_run(run, directory, output, asked, by)
    return run


def write_snapshot(snapshot: Snapshot, out: TextOrPath | RunOutput, *, force: bool = False) -> None:
    """Write a snapshot as a run directory, which `open_run(DIR).snapshot()` reads.

    Args:
        snapshot: the state.
        out: the directory.
        force: replace an earlier run there.

    Raises:
        ConfigError: the snapshot contradicts itself, or the directory must not be replaced.
    """
    check_snapshot(snapshot)
    output = RunOutput.of(out, "berthline.write_snapshot(...)")
    assert output is not None
    directory = open_directory(text_of("out", output.path), verb="sim", force=force)
    assert directory is not None
    log = snapshot.log
    over = int(((log.kind == FINISH) | (log.kind == REJECT)).sum())
    facts: dict[str, Any] = {
        "scheduler": snapshot.scheduler,
        "workload": snapshot.workload.name,
        "cluster": snapshot.cluster.name,
        "knowledge": snapshot.knowledge,
        "seed": snapshot.seed,
    }
    summary = facts | {
        "now": snapshot.now,
        "jobs": {"known": snapshot.num_jobs, "over": over, "left_out": snapshot.memory.jobs},
        "decisions": log.decisions,
        "log_sha256": log.sha256(),
    }
    directory.write(
        command=output.command,
        config={
            **facts,
            "from_snapshot": True,
            "horizon": snapshot.now,
            "conditions": snapshot.cluster.conditions.changed(),
        },
        seed=snapshot.seed,
        summary=summary,
        metrics=[summary],
        log=log,
        workload=snapshot.workload,
        files={
            **input_writers(snapshot.workload, snapshot.cluster),
            START: lambda path: write_start(snapshot, path),
        },
    )
