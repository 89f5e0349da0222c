"""`berthline bench episodes`: CPU microseconds that a training loop spends to generate an episode.

An episode has 400 jobs and is drawn together with many others, as in a batch of environments. The
best of several rounds counts, in which the generators take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.cli.bench.speed import SEED, cpu_seconds
from berthline.cli.output import new_table, print_table

if TYPE_CHECKING:
    from berthline.env.episodes_source import GeneratedEpisodes

JOBS, EPISODES = 400, 1000
QUICK_EPISODES = 100
MOST_MICROSECONDS, MOST_OF_FITTED = 50.0, 100.0
"""Limits for an episode drawn with many others; a fitted generator draws three times as many
numbers per job as the others."""
FITTED_JOBS = 20_000
ROUNDS, QUICK_ROUNDS = 5, 1


class EpisodeSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Time of an episode of one generator."""

    generator: str
    jobs: int
    episodes: int
    microseconds: float
    """CPU time of an episode, drawn together with all others."""
    target: float
    meets_target: bool | None
    """None = too few episodes to tell."""


def measure_episodes(
    *, quick: bool, report: Callable[[int, int, str], None] = lambda *_: None
) -> Iterator[EpisodeSpeed]:
    """Yield the time of episodes for each generator, and for one fitted to a workload."""
    from berthline.env.episodes_source import GeneratedEpisodes
    from berthline.model.cluster import Cluster
    from berthline.traces.generators.fitted.fit import fit
    from berthline.traces.generators.fitted.fitted_generator import SUFFIX
    from berthline.traces.generators.synthetic import GENERATORS, generate

    cluster = Cluster.parse("philly")
    count = QUICK_EPISODES if quick else EPISODES
    rounds = QUICK_ROUNDS if quick else ROUNDS
    with TemporaryDirectory(prefix="berthline-bench-") as folder:
        path = Path(folder) / f"fitted{SUFFIX}"
        fit(generate("diurnal", cluster=cluster, jobs=FITTED_JOBS, seed=SEED)).save(path)
        names = {**{name: name for name in GENERATORS}, "fitted to diurnal": str(path)}
        sources = {
            name: GeneratedEpisodes(text, cluster, jobs=JOBS, seed=SEED)
            for name, text in names.items()
        }
    best = dict.fromkeys(sources, np.inf)
    for turn in range(rounds):
        for done, (name, source) in enumerate(sources.items()):
            report(turn * len(sources) + done, rounds * len(sources), name)
            seconds, _ = cpu_seconds(partial(_draw, source, count, turn))
            best[name] = min(best[name], seconds / count)
    for name, seconds in best.items():
        target = MOST_MICROSECONDS if name in GENERATORS else MOST_OF_FITTED
        yield EpisodeSpeed(
            generator=name,
            jobs=JOBS,
            episodes=count,
            microseconds=1e6 * seconds,
            target=target,
            meets_target=None if quick else 1e6 * seconds < target,
        )


def _draw(source: GeneratedEpisodes, count: int, turn: int) -> None:
    slots = np.arange(count, dtype=np.int64)
    source.draw(np.stack((slots, np.full(count, turn)), axis=1))


def show_episodes(speeds: list[EpisodeSpeed]) -> None:
    """Print the measurements as text."""
    first = speeds[0]
    print(f"\nCPU microseconds for an episode of {first.jobs} jobs:\n")
    table = new_table("generator", f"{first.episodes:,} at once", "target", "")
    for speed in speeds:
        table.add_row(
            speed.generator,
            f"{speed.microseconds:.1f}",
            f"< {speed.target:g}",
            {True: "met", False: "missed", None: ""}[speed.meets_target],
        )
    print_table(table)
    judged = [speed.meets_target for speed in speeds if speed.meets_target is not None]
    if not judged:
        print(f"\ntargets are for {EPISODES:,} episodes at once: not checked")
    elif all(judged):
        print("\nall targets met")
    else:
        print(f"\n{judged.count(False)} of {len(judged)} targets missed")
