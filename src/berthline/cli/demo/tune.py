"""The demo's live tuning: tune a gate for some seconds, and evaluate it on held-out jobs."""

from __future__ import annotations

import importlib.util
import textwrap
from typing import TYPE_CHECKING, Any

from berthline.cli.output import note, number
from berthline.cli.train.es_show import lines
from berthline.evaluate.metrics.starvation import wait_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

SECONDS = 12.0
"""How long to search; choosing rivals before and the evaluation after take extra time."""
WINDOW_JOBS, TRAIN_WINDOWS, JUDGED = 2500, 16, 12
SPACE = "gate"


def tune(
    workload: str,
    cluster: Cluster,
    *,
    load: float,
    settings: Mapping[str, object],
    knowledge: str,
    seed: int,
    quiet: bool,
) -> dict[str, Any]:
    """Tune the numbers of a gate, and return what `berthline train es` would.

    Args:
        workload: a generator of jobs.
        cluster: the nodes.
        load: offered load.
        settings: dials of the generator.
        knowledge: what is known about run times.
        seed: decides everything random except how far the search gets.
        quiet: print nothing during the search.
    """
    from berthline.learn.tuning.tune import tune as tune_scheduler

    has_cma = importlib.util.find_spec("cmaes") is not None
    if not has_cma and not quiet:
        note("cmaes is not installed: using random search instead")
    found = tune_scheduler(
        space=SPACE,
        jct_tolerance=0.01,
        p99_tolerance=0.03,
        search="cma" if has_cma else "random",
        budget=SECONDS,
        workload=workload,
        cluster=cluster,
        knowledge=knowledge,
        window_jobs=WINDOW_JOBS,
        train_windows=TRAIN_WINDOWS,
        windows=JUDGED,
        load=load,
        seed=seed,
        settings=settings,
        workers=None,
        watch=None if quiet else lambda _: lines("tuning"),
    )
    assert found.summary is not None  # only a search that is stopped has none
    return found.summary


def whole_run(
    summary: dict[str, Any], jobs: Workload, cluster: Cluster, knowledge: str, seed: int
) -> dict[str, Any]:
    """Return how the tuned scheduler does over all jobs of the comparison, in one run.

    The windows of the search start empty, which flatters gates; this run does not.
    """
    from berthline.evaluate.compare.compare import compare

    rival = summary["report"]["against"]["rival"]["scheduler"]
    found = compare(
        jobs,
        cluster,
        [rival, summary["scheduler"]],
        knowledge=knowledge,
        seed=seed,
        continuous=True,
    )
    theirs, ours = found.schedulers
    return {
        "jobs": len(jobs),
        "rival": rival,
        "jct": ours.against_baseline.jct_mean.verdict,
        "slowdown": ours.against_baseline.bounded_slowdown_mean.verdict,
        "longest_wait": 0.0 if ours.starvation is None else ours.starvation.wait,
        "rival_longest_wait": 0.0 if theirs.starvation is None else theirs.starvation.wait,
    }


def tuned_sentence(summary: dict[str, Any]) -> str:
    """Return the result of the tuning on held-out jobs."""
    report = summary["report"]
    rival, lane = report["against"]["rival"], report["against"]["lane"]
    joint, whole = report["joint"]["rival"], summary["whole_run"]
    sentence = (
        f"Tuned just now: {number(summary['evaluations'])} gates in {summary['seconds']:.0f} s, the"
        f" best chosen on {summary['val']['windows']} windows and evaluated on {report['windows']}"
        f" others against {rival['scheduler']}, chosen in the same way: {joint}. Against the"
        " express lane chosen in the same way: slowdown"
        f" {lane['mean_bounded_slowdown']['verdict']}, mean JCT {lane['mean_jct']['verdict']}."
        f" In one run over all {number(whole['jobs'])} jobs above, against {whole['rival']}: mean"
        f" JCT {whole['jct']}; bounded slowdown: {whole['slowdown']}; longest wait"
        f" {wait_words(whole['longest_wait'])}, against {wait_words(whole['rival_longest_wait'])}."
    )
    return f"{textwrap.fill(sentence, 79, break_on_hyphens=False)}\n\n  {summary['scheduler']}"
