"""`berthline suite`: run a suite, list the suites, or tell how far one is."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.compare.command import noted_if_interrupted, read_schedulers
from berthline.cli.options import (
    Address,
    EngineName,
    Force,
    Json,
    Out,
    Timeout,
    Workers,
    engine_of,
    parse_options,
    whole,
)
from berthline.cli.output import note, print_facts, print_json, progress
from berthline.cli.suite.show import (
    list_suites,
    show_estimate,
    show_failures,
    show_progress,
    show_suite,
)
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from berthline.experiments.suites.suite_plan import SuitePlan

STATUS = "status"
ALL = "all"
"""The value of --schedulers that adds the further ones of a suite."""


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Run a suite: many cells, the same jobs for every scheduler in each.

    Without a name, list the suites with their runs and the CPU time they take.

    A suite of one's own is a TOML file. After an interruption --resume continues.

    Examples:
      berthline suite
      berthline suite core --limit 200 --out runs/core
      berthline suite core --schedulers fcfs,sjf,f1 --seeds 2
      berthline suite core --dry-run
      berthline suite core --only 'base-low-*' --seeds 2
      berthline suite status runs/core
    """

    what: Annotated[Positional[tuple[str, ...]], arg(metavar="[NAME]")] = ()
    """A suite, or a TOML file; or: status DIR."""
    schedulers: Annotated[
        str | None, arg(metavar="A,B", help_behavior_hint="(default: those of the suite)")
    ] = None
    """The rules, separated by commas; all = those of the suite and its further ones."""
    policy: Annotated[str | None, arg(metavar="RUN", help_behavior_hint="(default: none)")] = None
    """Add a learned policy: a training run or its checkpoint."""
    seeds: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--seeds", lowest=1),
        arg(help_behavior_hint="(default: that of the suite)"),
    ] = None
    """Number of seeds of each cell."""
    steps: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--steps", lowest=1),
        arg(help_behavior_hint="(default: that of the suite)"),
    ] = None
    """Steps of each training, for suites that train."""
    only: Annotated[str | None, arg(metavar="PATTERN", help_behavior_hint="(default: all)")] = None
    """Cells such as 'base-*', or runs such as 'base-low-2/seed-3/sjf+easy'; * stands for any
    text."""
    limit: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--limit", lowest=1),
        arg(help_behavior_hint="(default: none)"),
    ] = None
    """Make at most N runs, of which all shapes and sizes have about as many."""
    engine: EngineName = "local"
    address: Address = None
    workers: Workers = None
    timeout: Timeout = None
    dry_run: Annotated[bool, arg(help_behavior_hint="")] = False
    """Only print what the suite will take, from a timed sample; write nothing."""
    launch: Annotated[str | None, arg(metavar="slurm", help_behavior_hint="(default: none)")] = None
    """Write an array job for Slurm that makes the runs in --out."""
    submit: Annotated[bool, arg(help_behavior_hint="")] = False
    """With --launch: submit it too."""
    array: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--array", lowest=1),
        arg(help_behavior_hint="(with --launch; default: 16)"),
    ] = None
    """Number of tasks of the array job."""
    share: Annotated[str | None, arg(metavar="I/N", help_behavior_hint="(default: all runs)")] = (
        None
    )
    """Make the I-th of N shares of the runs, from 0; --resume without it collects them."""
    yes: Annotated[bool, arg(help_behavior_hint="")] = False
    """Make more than a million runs without asking."""
    json: Json = False
    out: Out = None
    force: Force = False
    resume: Annotated[bool, arg(help_behavior_hint="")] = False
    """Resume an interrupted suite in --out, or repeat its failed runs."""


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Suite, argv, verb="suite")
    if options.what[:1] == (STATUS,):
        return _status(options)
    if len(options.what) > 1:
        raise ConfigError(
            f"unexpected argument {options.what[1]!r}", expected="one suite", hint="berthline suite"
        )
    if not options.what:
        return list_suites(as_json=options.json)
    from berthline.experiments.suites.suite_plan import find_suite

    plan = plan_of(find_suite(options.what[0]), options)
    if options.dry_run:
        return _dry_run(plan, options)
    if options.launch is not None or options.share is not None:
        from berthline.cli.suite import launch

        return launch.run(plan, options)
    from berthline.experiments.suites.run_suite import run_suite

    engine = engine_of(options.engine, options.address, options.timeout)
    with noted_if_interrupted(options.out), progress(f"suite {plan.name}") as report:
        found = run_suite(
            plan,
            out=options.out,
            engine=engine,
            workers=options.workers,
            force=options.force,
            resume=options.resume,
            yes=options.yes,
            command=shlex.join(["berthline", "suite", *argv]),
            again=lambda name: shlex.join(
                [*command_of(options), "--only", name, "--workers", "1", "--debug"]
            ),
            progress=report,
            remark=note,
        )
    if options.json:
        print_json(found.summary)
    else:
        show_suite(found.summary, str(options.out or ""))
    if found.failures:
        show_failures(found.failures, options.out)
        return 1
    return 0


def plan_of(plan: SuitePlan, options: Suite) -> SuitePlan:
    """Return a plan with what the options change.

    Raises:
        ConfigError: an option does not apply to the suite.
    """
    from berthline.experiments.suites.suite_plan import check_plan

    changes: dict[str, object] = {}
    if options.schedulers == ALL:
        changes["schedulers"] = [*plan.schedulers, *plan.more]
    elif options.schedulers is not None:
        changes["schedulers"] = read_schedulers(options.schedulers)
    if options.policy is not None:
        if not plan.policy:
            raise ConfigError(
                "--policy does not apply to this suite",
                where=plan.name,
                expected="a suite with `policy = true`",
            )
        changes["run"] = options.policy
    if options.steps is not None:
        if not any(part.train is not None for part in plan.parts):
            raise ConfigError("--steps: this suite trains nothing", where=plan.name)
        changes["train"] = {**plan.train, "steps": options.steps}
        changes["parts"] = [
            part if part.train is None else _without_steps(part) for part in plan.parts
        ]
    for name in ("seeds", "only", "limit"):
        if getattr(options, name) is not None:
            changes[name] = getattr(options, name)
    return check_plan(msgspec.structs.replace(plan, **changes), where=options.what[0])


def _without_steps(part: msgspec.Struct) -> msgspec.Struct:
    own = {key: value for key, value in (part.train or {}).items() if key != "steps"}  # type: ignore[attr-defined]
    return msgspec.structs.replace(part, train=own)


def command_of(options: Suite) -> list[str]:
    """Return the words of a command that makes the same runs, without where and how."""
    words = ["berthline", "suite", *options.what]
    for name in ("schedulers", "policy", "seeds", "steps"):
        value = getattr(options, name)
        if value is not None:
            words += [f"--{name}", str(value)]
    return words


def _status(options: Suite) -> int:
    """Tell how far the suite in a directory is."""
    if len(options.what) != 2:
        raise ConfigError("which suite?", expected="berthline suite status DIR")
    from berthline.experiments.suites.suite_progress import read_progress

    found = read_progress(Path(options.what[1]))
    if options.json:
        print_json(found)
    else:
        show_progress(found)
    return 0


def _dry_run(plan: SuitePlan, options: Suite) -> int:
    from berthline.experiments.suites.estimate import estimate_of
    from berthline.experiments.suites.planned_runs import PlannedRuns

    planned = PlannedRuns(plan, yes=options.yes)
    estimate = estimate_of(planned)
    if options.json:
        print_json({**msgspec.structs.asdict(estimate), "names": [c.name for c in planned.cells]})
        return 0
    show_estimate(estimate, planned)
    print_facts({"run": shlex.join([*command_of(options), "--out", "DIR"])})
    return 0
