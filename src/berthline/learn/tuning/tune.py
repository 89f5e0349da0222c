"""tune: search for the numbers of a scheduler on the simulator, in a run directory or without one.

Light when it is imported: the help of `berthline train es` shows the defaults.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError, unknown_name
from berthline.evaluate.compare.evaluation_defaults import (
    KNOWLEDGE,
    WINDOWS,
    WORKLOAD,
)
from berthline.runs.growing_files import write_json
from berthline.runs.run_layout import STATE, SUMMARY
from berthline.runs.run_output import RunOutput, argument_name
from berthline.runs.training_directory import open_training
from berthline.text_or_path import text_of

if TYPE_CHECKING:
    from berthline.learn.tuning.search import SearchProgress
    from berthline.learn.tuning.search_space import SearchSpace
    from berthline.learn.tuning.search_windows import SearchWindows
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload  # noqa: TC004 - numpy would slow `--help` down
    from berthline.text_or_path import TextOrPath

BOTH = ("cma", "random")
SEARCHES = (*BOTH, "both")
SPACE = "gate"
TRAIN_WINDOWS = 32
BUDGET_SECONDS = 60.0

Watch = Callable[[str], Callable[["SearchProgress"], None]]
"""Given the name of a search, returns what is called after each of its generations."""


@dataclasses.dataclass(frozen=True, eq=False)
class TuningResult:
    """What `tune` found.

    Attributes:
        directory: the run directory, which is a scheduler; None = nothing was written.
        summary: what summary.json has; None = it was stopped, and `resume` continues it.
        source: a workload of the windows, which says where they come from.
    """

    directory: Path | None
    summary: dict[str, Any] | None
    source: Workload

    @property
    def searches(self) -> list[dict[str, Any]]:
        """The summary of each search: two with `search="both"`."""
        if self.summary is None:
            return []
        return list(self.summary.get("searches", {"": self.summary}).values())


def tune(
    *,
    space: str = SPACE,
    scheduler: str | None = None,
    params: Sequence[str] = (),
    goal: str = "slowdown",
    jct_tolerance: float = 0.02,
    p99_tolerance: float = 0.10,
    search: str = "cma",
    budget: float | None = None,
    evaluations: int | None = None,
    population: int | None = None,
    against: Sequence[TextOrPath] | None = None,
    workload: Workload | TextOrPath = WORKLOAD,
    cluster: Cluster | TextOrPath | None = None,
    knowledge: str = KNOWLEDGE,
    window_jobs: int | None = None,
    train_windows: int = TRAIN_WINDOWS,
    windows: int = WINDOWS,
    gap_seconds: float | None = None,
    conditions: Mapping[str, float] | None = None,
    load: float | None = None,
    seed: int = 0,
    format: str | None = None,  # noqa: A002 - the name that load_trace has for it
    settings: Mapping[str, object] | None = None,
    workers: int | None = 1,
    out: TextOrPath | RunOutput | None = None,
    resume: bool = False,
    must_stop: Callable[[], bool] | None = None,
    watch: Watch | None = None,
    remark: Callable[[str], None] | None = None,
) -> TuningResult:
    """Tune the numbers of a scheduler on the simulator; the result is a scheduler in plain text.

    The same as `berthline train es`. Candidates run on TRAIN windows, the best is chosen on VAL
    windows, and it is measured on REPORT windows. `search="cma"` needs the extra `tune`.

    Args:
        space: what is tuned: order, gate, hold, lane, preempt or hold-preempt.
        scheduler: a scheduler of your own, with names in braces for the numbers to search for; it
            replaces `space`.
        params: the range of each of these numbers: `"NAME=LOW:HIGH[:log][:START]"`.
        goal: what is minimized: slowdown (with limits to JCT), jct, or a mix of both.
        jct_tolerance: by which share mean JCT may exceed that of the heuristic with the lowest.
        p99_tolerance: the same for p99 JCT.
        search: cma (CMA-ES), random, or both with the same budget.
        budget: how many seconds to search; None = 60, unless `evaluations` is given.
        evaluations: how many candidates to try; the result is then the same on any machine.
        population: candidates of a generation; None = 8, more with many parameters.
        against: heuristics that the rival is chosen from; None = many.
        workload: a Workload, or a WORKLOAD argument (see `resolve_workload`).
        cluster: a Cluster, or a CLUSTER argument (see `resolve_cluster`); None = what the header of
            a trace states, or `uniform:8x8:V100`.
        knowledge: what the schedulers know of run times: none, estimate, predicted or exact.
        window_jobs: jobs of a window; None = 1000 of a generator, or as many as a trace has room
            for.
        train_windows: how many TRAIN windows; candidates run on four at a time.
        windows: how many VAL windows, and as many REPORT windows.
        gap_seconds: seconds left out between the parts of a trace; None = a day, or less for a
            short trace (see `usual_gap`).
        conditions: replace some of the cluster's conditions, such as `{"restart": 30}`.
        load: offered load; None = the default of a generator, or the trace as it is.
        seed: of everything random.
        format: of a trace file; None = recognise it.
        settings: dials of a generator, or options of a trace format.
        workers: how many processes run candidates; 1 = this one alone, None = one per core.
        out: write a run directory, as `berthline train es` does.
        resume: continue an interrupted search in `out`; the other parameters must be the same.
        must_stop: asked after each generation; once it is true, the search is saved and ends.
        watch: shows the progress of each search.
        remark: called with a sentence if a node list omits something or leaves it to a guess.

    Raises:
        BerthlineError: an unknown name, a wrong value, too few jobs, or a directory that must not
            be replaced.
    """
    from berthline.learn.tuning.search import Search, SearchConfig
    from berthline.learn.tuning.search_goal import Goal
    from berthline.learn.tuning.search_space import read_space
    from berthline.learn.tuning.search_workers import SearchWorkers
    from berthline.traces.cluster_argument import resolve_cluster
    from berthline.traces.stated_cluster import default_cluster
    from berthline.worker_pool import usable_cores

    _check_choices(knowledge=knowledge, goal=goal, search=search)
    _check_numbers(
        jct_tolerance=jct_tolerance,
        p99_tolerance=p99_tolerance,
        budget=budget,
        evaluations=evaluations,
        population=population,
        window_jobs=window_jobs,
        train_windows=train_windows,
        windows=windows,
        gap_seconds=gap_seconds,
        seed=seed,
        workers=workers,
    )
    wanted = read_space(None if scheduler is not None else space, scheduler, params)
    if cluster is None:
        cluster = default_cluster(workload, format, remark)
    nodes = resolve_cluster(cluster, remark)
    nodes = nodes.with_conditions(conditions) if conditions else nodes
    judged = _windows(
        workload,
        nodes,
        train=train_windows,
        judged=windows,
        window_jobs=window_jobs,
        gap_seconds=gap_seconds,
        remark=remark,
        load=load,
        seed=seed,
        format=format,
        settings=dict(settings or {}),
    )
    rivals = _rivals(against, wanted, knowledge)
    output = RunOutput.of(out, "berthline.tune(...)")
    if output is None and resume:
        raise ConfigError("`resume` has no effect without `out`", hint="add `out=DIR`")
    path = None if output is None else Path(text_of("out", output.path))
    if output is not None and path is not None:
        asked: Mapping[str, Any] = {
            "algorithm": "es",
            "space": space,
            "goal": goal,
            "jct_tolerance": jct_tolerance,
            "p99_tolerance": p99_tolerance,
            "search": search,
            "budget": budget,
            "evaluations": evaluations,
            "population": population,
            "against": None if against is None else ",".join(os.fspath(one) for one in against),
            "workload": argument_name(workload),
            "cluster": argument_name(cluster),
            "knowledge": knowledge,
            "window_jobs": window_jobs,
            "train_windows": train_windows,
            "windows": windows,
            "gap": None if gap_seconds is None else f"{gap_seconds:g}s",
            "load": load,
            "seed": seed,
            "set": {k: str(v) for k, v in (settings or {}).items() if k != "mapping"},
            "format": format,
            "map": (settings or {}).get("mapping"),
            "conditions": dict(conditions or {}),
        }
        config = {
            **(asked if output.config is None else output.config),
            "text": wanted.text,
            "parameters": {p.name: [p.low, p.high, p.start, p.is_log] for p in wanted.parameters},
        }
        open_training(path, config, command=output.command, seed=seed, resume=resume)
    config_of = functools.partial(
        SearchConfig,
        goal=Goal(name=goal, jct_tolerance=jct_tolerance, p99_tolerance=p99_tolerance),
        seconds=BUDGET_SECONDS if budget is None and evaluations is None else budget,
        evaluations=evaluations,
        population=population or 0,
        seed=seed,
    )
    processes = usable_cores() if workers is None else workers
    summaries = []
    with SearchWorkers(judged.window, nodes, knowledge=knowledge, processes=processes) as running:
        for how in BOTH if search == "both" else (search,):
            inner = path / how if path is not None and search == "both" else path
            found = _finished(inner)
            if found is None:
                one = Search(
                    config_of(search=how),
                    wanted,
                    judged,
                    running,
                    rivals=rivals,
                    path=inner,
                    resume=inner is not None and (inner / STATE).is_file(),
                )
                tell = (lambda _: None) if watch is None else watch(f"{how} on {wanted.name}")
                found = one.run(tell, must_stop or (lambda: False))
            if found is None:
                return TuningResult(path, None, judged.source)
            summaries.append(found)
    summary = summaries[0] if search != "both" else _side_by_side(summaries)
    if path is not None and search == "both":
        write_json(path / SUMMARY, summary)
    return TuningResult(path, summary, judged.source)


def _check_choices(**chosen: str) -> None:
    from berthline.learn.tuning.search_goal import GOALS
    from berthline.sim.inputs import KNOWLEDGE as KINDS

    known = {"knowledge": KINDS, "goal": GOALS, "search": SEARCHES}
    for name, value in chosen.items():
        if value not in known[name]:
            what, expected, hint = unknown_name(name, value, known[name])
            raise ConfigError(what, expected=expected, hint=hint)


def _check_numbers(**given: float | None) -> None:
    from berthline.env.option_types import number, whole

    kinds = {
        "jct_tolerance": number(0),
        "p99_tolerance": number(0),
        "budget": number(0, above=True).or_none(),
        "evaluations": whole(1).or_none(),
        "population": whole(4).or_none(),
        "window_jobs": whole(1).or_none(),
        "train_windows": whole(1),
        "windows": whole(2),
        "gap_seconds": number(0).or_none(),
        "seed": whole(0),
        "workers": whole(1).or_none(),
    }
    for name, value in given.items():
        kinds[name].take(name, value)


def _windows(
    workload: Workload | TextOrPath,
    cluster: Cluster,
    *,
    train: int,
    judged: int,
    window_jobs: int | None,
    gap_seconds: float | None,
    remark: Callable[[str], None] | None,
    load: float | None,
    seed: int,
    format: str | None,  # noqa: A002 - the name that load_trace has for it
    settings: dict[str, object],
) -> SearchWindows:
    """Return the TRAIN, VAL and REPORT windows.

    Raises:
        BerthlineError: the workload cannot be used, or has too few jobs.
    """
    from berthline.learn.tuning.search_windows import SearchWindows
    from berthline.model.speeds import scaling_words
    from berthline.traces.offered_load import scale_to_load
    from berthline.traces.split import gap_in_words, usual_gap
    from berthline.traces.workload_argument import is_generator, resolve_workload

    def make(seed: int, jobs: int | None, load: float | None) -> Workload:
        return resolve_workload(
            workload,
            cluster=cluster,
            jobs=jobs,
            load=load,
            seed=seed,
            format=format,
            settings=settings,
        )

    if is_generator(workload):
        return SearchWindows.generated(
            lambda seed: make(seed, window_jobs, load),
            cluster,
            seed=seed,
            train=train,
            judged=judged,
        )
    trace = make(seed, None, None)
    if remark is not None:
        for sentence in scaling_words(trace, cluster):
            remark(sentence)
    if load is not None:
        trace = scale_to_load(trace, cluster, load)
    if gap_seconds is None:
        gap_seconds = usual_gap(trace)
        if remark is not None and gap_in_words(gap_seconds):
            remark(gap_in_words(gap_seconds))
    return SearchWindows.of_trace(
        trace,
        cluster,
        train=train,
        judged=judged,
        window_jobs=window_jobs,
        gap_seconds=gap_seconds,
    )


def _rivals(against: Sequence[TextOrPath] | None, space: SearchSpace, knowledge: str) -> list[str]:
    """Return the heuristics and express lanes to choose rivals from."""
    from berthline.learn.tuning.search_rivals import HEURISTICS, LANES, usable_rivals

    lanes = usable_rivals(LANES, knowledge, preemptive=space.preempts)
    if against is None:
        return [*usable_rivals(HEURISTICS, knowledge, preemptive=space.preempts), *lanes]
    named = [text_of("against", one) for one in against]
    return [*named, *(lane for lane in lanes if lane not in named)]


def _finished(path: Path | None) -> dict[str, Any] | None:
    """Make the directory of a search, and return the summary of one that has ended there."""
    if path is None:
        return None
    path.mkdir(parents=True, exist_ok=True)
    if not (path / SUMMARY).is_file():
        return None
    summary: dict[str, Any] = json.loads((path / SUMMARY).read_bytes())
    return summary


def _side_by_side(summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the summary of several searches: the scheduler is the best of them on VAL."""
    best = min(summaries, key=lambda one: float(one["val"]["loss"]))
    return {
        "algorithm": "es",
        "search": "both",
        "scheduler": best["scheduler"],
        "best_search": best["search"],
        "searches": {one["search"]: one for one in summaries},
    }
