"""Options of the environments: plain keywords, the same for one environment and for a batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from berthline.env import option_types
from berthline.env.columns import ColumnsArgument
from berthline.env.presets import PRESETS
from berthline.env.registration import SEATS, env_id
from berthline.env.rewards import RewardArgument
from berthline.env.seat_defaults import with_defaults
from berthline.errors import ConfigError, unknown_name
from berthline.model.cluster import Cluster
from berthline.model.snapshot import Snapshot
from berthline.model.workload import Workload
from berthline.size_limits import MOST
from berthline.traces.split import FRACTIONS, GAP_SECONDS
from berthline.traces.stated_cluster import default_cluster

SEMANTICS = ("mask", "wait", "rank")
NO_OPS = ("never", "when_blocked", "always")
OBSERVATIONS = ("dict", "flat")
LOOKAHEADS = ("off", "per_gpu", "sorted", "cdf")
MISSING_TYPES = ("reject", "any")
STARTS = ("empty", "warm")
WINDOW_POLICIES = ("head", "head+tail", "top")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """What an environment is made of. Every field is a keyword of `gym.make` and `gym.make_vec`.

    The defaults here are the plain ones, which presets and stored policies begin with; seats have
    others, in `seat_defaults.py`.

    Attributes:
        workload: WORKLOAD as on the command line (a generator, a trace file), a path, or a
            Workload.
        cluster: CLUSTER as on the command line, a path, or a Cluster; if it is not given, what the
            header of the trace states.
        episode_jobs: jobs per episode; None = the whole trace, or the whole part that `split`
            names.
        start: the state in which episodes begin: `empty`, an empty cluster; `warm`, a cluster that
            `warm_rule` has kept busy so far; or a Snapshot or the run directory of one, with the
            jobs of the workload that come after it. None = `warm` for windows of a trace, unless
            nothing comes before them, and `empty` otherwise.
        warm_rule: the scheduler whose run an episode with `start="warm"` begins in; None = the
            environment's order, placement and gate, with the discipline `easy` (`skip` without run
            times) if none is given.
        load: offered load of generated episodes, or (lowest, highest) of the range that each
            episode draws from. Episodes of a trace have the times between their submissions scaled
            to it. None = the generator's own default, or the trace as it is.
        dials: settings of the generator, or of the trace format.
        slice: jobs of the trace to use, (first, end) in order of submission, before it is split or
            rescaled; None = all.
        split: only windows from this part of the trace: train, validation or test.
        split_gap: seconds between the parts, so that their jobs were not in the queue together.
        split_fractions: shares of the jobs of the three parts.
        missing_types: what to do with trace jobs that name only GPU types missing from the cluster:
            `reject` them, or let them use `any` type.
        knowledge: what is known about run times: none, estimate, predicted or exact.
        order: sorts the queue, and decides where the agent does not.
        discipline: which jobs may pass a blocked job; None = easy, or skip without run times; in
            Pick and PickPlace, where the agent chooses among the jobs, strict.
        placement: where jobs go, unless the agent decides.
        gate: a further condition for jobs to start; None = none.
        conditions: replace some of the cluster's conditions, such as `{"restart": 30}`.
        window: waiting jobs shown.
        window_policy: which jobs are shown when more wait: `head`, `head+tail`, or `top`, an equal
            share for each of `window_formulas` and for the order.
        window_formulas: for the policy `top`, smallest value first.
        running_window: running jobs shown.
        running_order: formula by which they are chosen and sorted, smallest value first.
        features: columns of the observation: see "Columns" in docs/mdp.md.
        observation: `dict` of tables, or `flat`: one vector.
        lookahead: when GPUs are expected to be free: `per_gpu`, `sorted`, `cdf`, `off` (zeros of
            the same shape), or None for no such part.
        lookahead_size: how many numbers it has; None = GPUs of the cluster, at most 64.
        lookahead_seconds: the time that counts as 1 in it.
        reward: a name, or terms: see "Reward" in docs/mdp.md.
        reward_weights: weights of its terms.
        baseline: scheduler that rewards compare with.
        credit: a scheduler, as in `experts`; each decision is rewarded with what it changes in the
            return of the episode if this scheduler decides from then on: see "Credit" in
            docs/mdp.md. None = the reward is paid as it comes.
        semantics: Pick only: `mask` (jobs that can start now), `wait` (any job; time runs until it
            starts, and others may pass it as the discipline allows) or `rank` (the order that the
            discipline works with).
        rerank: Pick only: with `semantics="rank"`, whether the order is asked for again from its
            first job after each start at one instant; None = if the base order or gate reads words
            that a start may change.
        no_op: Pick, PickPlace, Backfill and Preempt only: where the no-op is allowed: `never`,
            `when_blocked` (where nothing can start) or `always`. With `semantics="rank"` there is
            none.
        schedulers: Meta only: what the agent chooses from.
        every_events: Meta only: decision points between two choices.
        every_seconds: Meta only: seconds between two choices, at least.
        placements: Place only: rules to choose from; empty = the agent chooses nodes.
        protect_head: Backfill only: whether jobs that would delay the head are masked out; None =
            yes, or no without run times, because no one can tell which jobs would delay it.
        max_holds: Gate only: how often one job may be held.
        hold_seconds: Gate only: seconds before the agent is asked again about a held job, unless
            the nodes the job may use are idle; 0 = until the next event.
        recheck: Gate only: seconds after which the agent is asked again about a held job even if
            nothing has happened, or `hold_seconds` if that is more; 0 = never.
        min_run: Preempt only: seconds a job runs before it may be chosen.
        max_restarts: Preempt only: how often a job may be preempted.
        experts: schedulers for `berthline.environments.expert_actions`.
        horizon_factor: the episode is truncated at last submission + factor x total work / GPUs,
            unless that is 0; None = never.
        max_steps: the episode is truncated after this number of decisions; None = never.
        preset: options of a reference system; options given here take precedence.
    """

    workload: str | Workload = "synthetic"
    cluster: str | Cluster = "uniform:8x8:V100"
    episode_jobs: int | None = 256
    start: str | Snapshot | None = None
    warm_rule: str | None = None
    load: float | tuple[float, float] | None = None
    dials: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    slice: tuple[int, int] | None = None
    split: str | None = None
    split_gap: float = GAP_SECONDS
    split_fractions: tuple[float, float, float] = FRACTIONS
    missing_types: str = "reject"
    knowledge: str = "estimate"
    order: str = "fcfs"
    discipline: str | None = None
    placement: str = "best-fit"
    gate: str | None = None
    conditions: Mapping[str, float] | None = None
    window: int = 64
    window_policy: str = "head"
    window_formulas: tuple[str, ...] = ("gpus", "-wait")
    running_window: int = 32
    running_order: str | None = None
    features: ColumnsArgument = None
    observation: str = "dict"
    lookahead: str | None = None
    lookahead_size: int | None = None
    lookahead_seconds: float = 10_000.0
    reward: RewardArgument = "mean-jct-hours"
    reward_weights: Mapping[str, float] | None = None
    baseline: str = "fcfs+easy"
    credit: str | None = None
    semantics: str = "mask"
    rerank: bool | None = None
    no_op: str = "always"
    schedulers: tuple[str, ...] = (
        "fcfs+easy",
        "sjf+easy",
        "smallest-area+easy",
        "largest-first+easy",
    )
    every_events: int = 1
    every_seconds: float = 0.0
    placements: tuple[str, ...] = ()
    protect_head: bool | None = None
    max_holds: int = 32
    hold_seconds: float = 0.0
    recheck: float = 0.0
    min_run: float = 0.0
    max_restarts: float = float("inf")
    experts: tuple[str, ...] = ()
    horizon_factor: float | None = None
    max_steps: int | None = None
    preset: str | None = None


MOST_ROWS = 65_536
_MOST = 2**31 - 1
"""The largest count in the native core."""

_ROWS = option_types.whole(1, MOST_ROWS)
_SECONDS = option_types.number(0)
_TYPES: dict[str, option_types.OptionType] = {
    "workload": option_types.named_or(Workload),
    "cluster": option_types.named_or(Cluster),
    "episode_jobs": option_types.whole(1, MOST["episode_jobs"]).or_none(),
    "start": option_types.named_or(Snapshot).or_none(),
    "warm_rule": option_types.TEXT.or_none(),
    "load": option_types.NUMBER_OR_RANGE.or_none(),
    "dials": option_types.TABLE,
    "slice": option_types.RANGE_OF_JOBS.or_none(),
    "split": option_types.TEXT.or_none(),
    "split_gap": _SECONDS,
    "split_fractions": option_types.THREE_NUMBERS,
    "missing_types": option_types.TEXT,
    "knowledge": option_types.TEXT,
    "order": option_types.TEXT,
    "discipline": option_types.TEXT.or_none(),
    "placement": option_types.TEXT,
    "gate": option_types.TEXT.or_none(),
    "conditions": option_types.numbers_by_name('{"restart": 30}').or_none(),
    "window": _ROWS,
    "window_policy": option_types.TEXT,
    "window_formulas": option_types.texts('["gpus", "-wait"]'),
    "running_window": _ROWS,
    "running_order": option_types.TEXT.or_none(),
    "observation": option_types.TEXT,
    "lookahead": option_types.TEXT.or_none(),
    "lookahead_size": _ROWS.or_none(),
    "lookahead_seconds": option_types.number(0, above=True),
    "reward_weights": option_types.numbers_by_name('{"jct": 2}').or_none(),
    "baseline": option_types.TEXT,
    "credit": option_types.TEXT.or_none(),
    "semantics": option_types.TEXT,
    "rerank": option_types.FLAG.or_none(),
    "no_op": option_types.TEXT,
    "schedulers": option_types.texts('["fcfs+easy", "sjf+easy"]'),
    "every_events": option_types.whole(1, _MOST),
    "every_seconds": _SECONDS,
    "placements": option_types.texts('["best-fit", "worst-fit"]'),
    "protect_head": option_types.FLAG.or_none(),
    "max_holds": option_types.whole(0, _MOST),
    "hold_seconds": _SECONDS,
    "recheck": _SECONDS,
    "min_run": _SECONDS,
    "max_restarts": option_types.number(0),
    "experts": option_types.texts('["fcfs", "sjf"]'),
    "horizon_factor": option_types.number(0, 1e9).or_none(),
    "max_steps": option_types.whole(1, _MOST).or_none(),
    "preset": option_types.TEXT.or_none(),
}
"""What each option takes; `features` and `reward` are checked where they are resolved."""

ONLY_OF = {
    "semantics": ("pick",),
    "rerank": ("pick",),
    "no_op": ("pick", "pickplace", "backfill", "preempt"),
    "schedulers": ("meta",),
    "every_events": ("meta",),
    "every_seconds": ("meta",),
    "placements": ("place",),
    "protect_head": ("backfill",),
    "max_holds": ("gate",),
    "hold_seconds": ("gate",),
    "recheck": ("gate",),
    "min_run": ("preempt",),
    "max_restarts": ("preempt",),
}
"""Options of some seats; they have no effect in others."""


def resolve_options(seat: str, given: Mapping[str, Any], *, are_complete: bool = False) -> Options:
    """Return the options of an environment: what was given, then its preset or the seat's defaults.

    Args:
        seat: of the environment.
        given: keywords of Options.
        are_complete: whether the seat's defaults were among them when they were stored, so that
            today's do not apply.

    Raises:
        ConfigError: an unknown seat, option or preset, a value of the wrong kind or out of range,
            or an option or a preset of another seat.
    """
    _check_choice("seat", seat, list(SEATS.values()))
    where = f"environment {seat!r}"
    fields = {field.name: field for field in dataclasses.fields(Options)}
    for name in given:
        if name not in fields:
            what, expected, hint = unknown_name("option", name, fields)
            raise ConfigError(what, where=where, expected=expected, hint=hint)
    plain = {
        name: _TYPES[name].take(name, value) if name in _TYPES else value
        for name, value in given.items()
    }
    for name, value in plain.items():
        own = ONLY_OF.get(name, (seat,))
        # The default changes nothing, so that a complete list of options is accepted.
        if seat not in own and value != fields[name].default:
            names = [_name_of(one) for one in own]
            expected = f"the environment {names[0]}"
            if len(names) > 1:
                expected = f"the environments {', '.join(names[:-1])} and {names[-1]}"
            raise ConfigError(
                f"{name} is {given[name]!r}",
                where=where,
                expected=f"this option only in {expected}",
            )
    if plain.get("preset") is not None:
        plain = {**_preset_options(seat, plain["preset"], plain), **plain}
    elif not are_complete:
        plain = with_defaults(seat, plain)
    start = plain.get("start")
    if isinstance(start, str) and start not in STARTS:
        start = plain["start"] = _state_of(start)
    if "cluster" not in plain and isinstance(start, Snapshot):
        plain["cluster"] = start.cluster
    if "cluster" not in plain and "workload" in plain:
        plain["cluster"] = default_cluster(plain["workload"])
    options = Options(**plain)
    _check_choice("semantics", options.semantics, SEMANTICS)
    _check_choice("no_op", options.no_op, NO_OPS)
    _check_rank(options)
    _check_choice("observation", options.observation, OBSERVATIONS)
    _check_choice("window_policy", options.window_policy, WINDOW_POLICIES)
    _check_choice("missing_types", options.missing_types, MISSING_TYPES)
    if options.lookahead is not None:
        _check_choice("lookahead", options.lookahead, LOOKAHEADS)
    return options


def with_max_steps(given: Mapping[str, Any], max_episode_steps: int | None) -> dict[str, Any]:
    """Return options with Gymnasium's name for `max_steps`, if it is given.

    Raises:
        ConfigError: both are given, and differ.
    """
    options = dict(given)
    if max_episode_steps is not None:
        most = options.setdefault("max_steps", max_episode_steps)
        if most != max_episode_steps:
            raise ConfigError(
                f"max_steps is {most!r} and max_episode_steps is {max_episode_steps!r}",
                expected="one of them: they mean the same",
            )
    return options


def _state_of(start: str) -> Snapshot:
    """Return the snapshot of a run directory, which is at the horizon of the run."""
    if not Path(start).is_dir():
        what, expected, hint = unknown_name("start", start, STARTS)
        expected = f"{expected}, a Snapshot, or the directory of a run that has a horizon"
        raise ConfigError(what, expected=expected, hint=hint)
    from berthline.runs.open_run import open_run

    return open_run(start).snapshot()


def _check_rank(options: Options) -> None:
    """Refuse options that have no effect with, or without, ranks."""
    ranks = options.semantics == "rank"
    if options.rerank is not None and not ranks:
        raise ConfigError(
            f"rerank is {options.rerank}",
            where=f'semantics="{options.semantics}"',
            expected='rerank only with semantics="rank"',
        )
    if ranks and options.no_op != Options.no_op:
        raise ConfigError(
            f"no_op is {options.no_op!r}",
            where='semantics="rank"',
            expected="no such option: without a no-op, a job is held back by one put before it",
        )


def _preset_options(seat: str, name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if name not in PRESETS:
        what, expected, hint = unknown_name("preset", str(name), PRESETS)
        raise ConfigError(what, expected=expected, hint=hint)
    preset = PRESETS[name]
    if preset.seat != seat:
        raise ConfigError(
            f"preset {name!r} is for another seat",
            where=f"environment {seat!r}",
            expected=f"a preset of the seat {seat!r}",
            hint=f"use {env_id(_name_of(preset.seat))}",
        )
    return {**preset.options, **preset.following(given)}


def _name_of(seat: str) -> str:
    return next(name for name, own in SEATS.items() if own == seat)


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        what, expected, hint = unknown_name(name, str(value), choices)
        raise ConfigError(what, expected=expected, hint=hint)
