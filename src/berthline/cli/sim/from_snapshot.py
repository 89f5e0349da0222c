"""`berthline sim DIR --from-snapshot`: continue the run of a directory."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from berthline.cli.conditions import read_conditions
from berthline.cli.output import counted, progress
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.cli.sim.command import Sim
    from berthline.runs.simulate_run import MeasuredRun

_SAID_BY_DIRECTORY = ("cluster", "jobs", "load", "set", "format", "map", "order", "gate")
_NOT_HERE = ("energy_rate", "energy_period", "time_decisions")


def continued(
    options: Sim,
    argv: Sequence[str],
    *,
    groupings: Sequence[str],
    window: tuple[float, float] | None,
) -> tuple[MeasuredRun, Sim]:
    """Return the run that continues the one of a directory, and its resolved options.

    Args:
        options: of the verb.
        argv: the command line.
        groupings: what metrics are printed by.
        window: the measurement window.

    Raises:
        ConfigError: an option contradicts the directory, or there is no such run.
    """
    from berthline.runs.open_run import open_run
    from berthline.runs.resume_run import resume_run
    from berthline.runs.run_output import RunOutput

    defaults = {field.name: field.default for field in msgspec.structs.fields(options)}
    for name in (*_SAID_BY_DIRECTORY, *_NOT_HERE):
        if getattr(options, name) != defaults[name]:
            raise ConfigError(
                f"--{name.replace('_', '-')} is given with --from-snapshot",
                where=options.workload,
                expected="the jobs and the cluster of the run directory"
                if name in _SAID_BY_DIRECTORY
                else "a run that begins empty",
                hint="omit it",
            )
    if not Path(options.workload).is_dir():
        raise ConfigError(
            "--from-snapshot continues a run directory, and this is none",
            where=options.workload,
            expected="a directory of berthline sim, with --until and --out",
        )
    run = open_run(options.workload)
    if run.kind != "sim":
        raise ConfigError(
            f"the run directory is of berthline {run.kind}",
            where=options.workload,
            expected="one of berthline sim, with --until",
        )
    snapshot = run.snapshot(options.at)
    arrivals = run.arrivals(snapshot)

    def given(name: str) -> bool:
        return options.config_file is not None or any(
            word.split("=")[0] == f"--{name}" for word in argv
        )

    options = msgspec.structs.replace(
        options,
        at=snapshot.now,
        scheduler=snapshot.scheduler if options.scheduler is None else options.scheduler,
        knowledge=options.knowledge if given("knowledge") else snapshot.knowledge,
        seed=options.seed if given("seed") else snapshot.seed,
    )
    total = snapshot.num_jobs + (0 if arrivals is None else len(arrivals))
    with progress("simulating") as report:
        found = resume_run(
            snapshot,
            options.scheduler,
            arrivals=arrivals,
            knowledge=options.knowledge,
            seed=options.seed,
            horizon=options.horizon,
            conditions=read_conditions(options.condition),
            simulator=options.simulator,
            by=groupings,
            measure=window,
            out=options.out
            and RunOutput(
                options.out,
                shlex.join(["berthline", "sim", *argv]),
                msgspec.structs.asdict(options) | {"set": None},
            ),
            force=options.force,
            progress=lambda arrived: report(arrived, total, counted(arrived, "job")),
        )
    return found, options
