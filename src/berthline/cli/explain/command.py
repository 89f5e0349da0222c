"""`berthline explain`: why one job waited, and when one more would start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.options import Json, command_line, moment, parse_options, whole
from berthline.cli.output import note_dropped_rows, print_json, progress
from berthline.cli.run_source import RunOptions, is_run_directory, read_result
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from berthline.evaluate.explain.explain import Explanation
    from berthline.evaluate.explain.unblock import Change
    from berthline.sim.simulate import Result

LONGEST = "longest"

POINTS, QUICK_POINTS, INSTANTS = 300, 60, 200
"""Decision points to examine, how many with --quick, and instants of --calibrate."""

ASKED_KEYS = (
    "gpus",
    "gpu_milli",
    "estimate",
    "cpus",
    "memory_mib",
    "user",
    "pool",
    "gpu_types",
    "priority",
)
"""The keys of evaluate/forecast/asked_job.py, which takes long to import."""


class Explain(RunOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Explain why a job waited: reasons, jobs ahead, and what would have helped.

    With --submit or --calibrate, and RUN without JOB: forecasts.

    Examples:
      berthline explain longest synthetic --scheduler fcfs+easy --load 1
      berthline explain 421 synthetic --scheduler sjf --load 1 --at 62200 --top 3
      berthline explain 4 trace.swf --scheduler fcfs --quick --json
      berthline explain --submit "gpus=4,estimate=2h" synthetic --load 1 --at 62200
      berthline explain --calibrate synthetic --load 1 --points 20
    """

    job: Annotated[Positional[str], arg(metavar="[JOB]")]
    """Its name in the trace or its number (row) in the workload; longest = the longest wait."""
    source: Annotated[
        Positional[str],
        arg(
            metavar="RUN",
            help="A run directory of berthline sim --out, or of compare (add --scheduler); or a"
            " WORKLOAD as for sim, which is simulated.",
            help_behavior_hint="",
        ),
    ] = ""
    submit: Annotated[
        str | None,
        arg(
            metavar="REQUEST",
            help="One more job: when would it start? Such as gpus=4,estimate=2h; keys: "
            f"{', '.join(ASKED_KEYS)}.",
            help_behavior_hint="",
        ),
    ] = None
    calibrate: Annotated[bool, arg(help_behavior_hint="")] = False
    """Forecast at many instants of the run, and count the starts inside the intervals. With
    --submit: at instants before it, and stretch its interval as they call for."""
    at: Annotated[
        float | None,
        moment("--at", may_be_zero=True),
        arg(
            metavar="TIME",
            help_behavior_hint="(default: its submission; with --submit: the end of an unfinished "
            "run, else its last submission)",
        ),
    ] = None
    """The time (86400, 12h, 30d), on the workload's clock, of the list of jobs ahead and of the
    forecast."""
    top: Annotated[int, msgspec.Meta(ge=1), whole("--top", lowest=1)] = 5
    """Number of rows in each list of jobs; the timeline has twice as many."""
    points: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None,
        whole("--points", lowest=0),
        arg(
            help_behavior_hint=f"(default: {POINTS}; with --quick {QUICK_POINTS}; with "
            f"--calibrate {INSTANTS})"
        ),
    ] = None
    """Decision points to examine, evenly spread over the wait; 0 = all. Instants of --calibrate."""
    draws: Annotated[int, msgspec.Meta(ge=0), whole("--draws", lowest=0)] = 100
    """Runs of the simulator for the forecast; 0 = no forecast."""
    quick: Annotated[bool, arg(help_behavior_hint="")] = False
    """Show only the reasons: no forecast, no runs with changes, and fewer points."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Explain, argv, verb="explain")
    if options.submit is not None or options.calibrate:
        return _forecasts(options)
    if not options.source:
        raise ConfigError(
            "RUN is missing",
            where="explain",
            expected="berthline explain JOB RUN",
            hint="with --submit or --calibrate: RUN alone",
        )
    from berthline.cli.explain.text import show
    from berthline.evaluate.explain.explain import explain

    result = read_result(options.source, options)
    job = find_job(result, options.job)
    points = options.points
    if points is None:
        points = QUICK_POINTS if options.quick else POINTS
    with progress(f"job {options.job}") as report:
        explanation = explain(
            result,
            job,
            at=options.at,
            top=options.top,
            max_points=points,
            draws=0 if options.quick else options.draws,
            progress=lambda done, of: report(done, of, "replaying"),
        )
        changes: list[Change] = []
        if not options.quick and (explanation.wait or explanation.reject_reason):
            from berthline.evaluate.explain.unblock import unblock

            changes = unblock(
                result, explanation, progress=lambda done, of: report(done, of, "changing things")
            )
    if options.json:
        note_dropped_rows(result.workload)
        print_json(as_json(result, explanation, changes))
    else:
        show(result, explanation, changes, top=options.top)
        print()
        briefly = is_run_directory(options.source)
        print(f"again      {command_line('explain', options, briefly=briefly)}")
    return 0


def _forecasts(options: Explain) -> int:
    """Run `--submit` or `--calibrate`, whose only argument is the run."""
    if options.source:
        raise ConfigError(
            f"{options.job!r} and {options.source!r} are given",
            where="explain",
            expected="berthline explain --submit REQUEST RUN, or --calibrate RUN",
        )
    from berthline.cli.explain.forecasts import show_asked, show_calibration

    result = read_result(options.job, options)
    again = command_line("explain", options, briefly=is_run_directory(options.job))
    if options.submit is None:
        points = INSTANTS if options.points is None else options.points
        return show_calibration(result, options, points=points, again=again)
    return show_asked(result, options, again=again)


def find_job(result: Result, text: str) -> int:
    """Return the id of the job that a JOB argument names.

    Raises:
        ConfigError: there is no such job.
    """
    workload = result.workload
    if text == LONGEST:
        import numpy as np

        from berthline.evaluate.metrics.job_table import job_table

        table = job_table(result.log, workload)
        started = np.where(np.isnan(table.start), table.end, table.start)
        return int(np.where(table.counted, started - workload.submit, -1.0).argmax())
    if workload.names is not None:
        named = [job for job, name in enumerate(workload.names.tolist()) if name == text]
        if named:
            return named[0]
    if text.isascii() and text.isdigit() and int(text) < len(workload):
        return int(text)
    first = "" if workload.names is None else f"a name in the trace, such as {workload.names[0]}; "
    raise ConfigError(
        f"there is no job {text!r}",
        where=workload.name,
        expected=f"{first}a number from 0 to {len(workload) - 1}; or {LONGEST}",
    )


def as_json(result: Result, explanation: Explanation, changes: list[Any]) -> dict[str, Any]:
    """Return the object that `--json` prints."""
    from berthline.model.workload_rows import job_name

    workload, job = result.workload, explanation.job
    told = msgspec.to_builtins(explanation)
    told.pop("job")
    return {
        "job": job,
        "name": job_name(workload, job),
        "user": workload.user_names[workload.user[job]],
        "gpus": float(workload.gpu_amount[job]),
        "submit": float(workload.submit[job]),
        "scheduler": str(result.scheduler),
        "workload": workload.name,
        "cluster": result.cluster.name,
        "knowledge": result.knowledge,
        "run_times": result.run_times,
        "seed": result.seed,
        **told,
        "changes": changes,
    }
