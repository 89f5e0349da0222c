"""Gates outside the setting they were tuned in: other clusters, and other jobs at the same load;
`make results RESULTS=gate_transfer` runs it."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.gate_transfer_page import LANE, RIVALS, SHIPPED, draw, parts
from benchmarks.hindsight import LANES, METRICS, Place, best_by, best_lane
from benchmarks.log_page import run_page
from benchmarks.tuning import tune
from benchmarks.winning_settings import LOGS

import berthline as bl
from berthline.errors import TraceError
from berthline.evaluate.compare.protocol import spread_windows
from berthline.learn.tuning.search_goal import Goal
from berthline.learn.tuning.search_space import SPACES
from berthline.policies.shipped_policies import card_of
from berthline.traces.offered_load import scale_to_load
from berthline.traces.split import split_by_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.result_files import Row

PAGE = "gate-transfer"
SPREAD = {"run_median": 200, "run_sigma": 2.5, "run_high": 172_800}
GENERATORS = {
    "spread": ("diurnal", SPREAD),
    "synthetic": ("synthetic", {}),
    "lublin": ("lublin", {}),
}
"""Generated jobs: with run times as spread as on GPU clusters, and others."""
LOAD, DAY, JOBS_PER_GPU = 0.9, 86_400.0, 16
LOG_JOBS = 2000
TRAIN, VAL, REPORT = 24, 12, 24
"""Numbers of windows; logs may have fewer."""
TRAIN_WINDOWS, EPOCHS, SEEDS = 4, 3, (0, 1)
GOAL = Goal(jct_tolerance=0.005, p99_tolerance=0.035, makespan_tolerance=0.05)
"""The goal of the shipped policy."""
LIMITS = Goal(jct_tolerance=0.02, p99_tolerance=0.05)
"""The limits under which VAL chooses among lanes."""


@dataclasses.dataclass(frozen=True)
class Home:
    """Where a gate is tuned and gates are evaluated: the jobs and the cluster."""

    jobs: str
    cluster: str

    @property
    def name(self) -> str:
        """Its name on the page."""
        return f"{self.jobs}, {self.cluster}"

    @property
    def place(self) -> Place:
        """The cluster; run times are known exactly, so that only the place differs."""
        return Place(bl.Cluster.parse(f"uniform:{self.cluster}"), "exact")

    def windows(self, folder: Path) -> dict[str, list[bl.Workload]]:
        """Return the windows of every part: with separate seeds, or split by time.

        Raises:
            TraceError: the log is not there.
        """
        cluster = self.place.cluster
        if self.jobs in GENERATORS:
            generator, dials = GENERATORS[self.jobs]
            jobs = JOBS_PER_GPU * cluster.total_gpus
            made = [
                bl.generate(generator, cluster=cluster, jobs=jobs, load=LOAD, seed=seed, **dials)
                for seed in range(5000, 5000 + TRAIN + VAL + REPORT)
            ]
            cuts = made[:TRAIN], made[TRAIN : TRAIN + VAL], made[TRAIN + VAL :]
            return dict(zip(("train", "val", "report"), cuts, strict=True))
        path = folder / LOGS[self.jobs].file
        if not path.exists():
            raise TraceError("the log is not there", where=str(path))
        log = bl.load_trace(path)
        jobs_that_fit = bl.Workload.from_columns(
            submit=log.submit,
            run=log.run,
            gpus=log.gpus.clip(max=cluster.total_gpus),
            name=self.jobs,
        )
        split = split_by_time(scale_to_load(jobs_that_fit, cluster, LOAD), gap_seconds=DAY)
        return {
            "train": _cut(split.train, TRAIN),
            "val": _cut(split.validation, VAL),
            "report": _cut(split.test, REPORT),
        }


HOMES = (
    *(Home("spread", size) for size in ("8x8", "16x8", "32x8", "64x8", "32x4", "8x16")),
    Home("synthetic", "16x8"),
    Home("lublin", "16x8"),
    Home("Venus", "16x8"),
    Home("Venus", "64x8"),
    Home("Philly", "16x8"),
    Home("PAI", "16x8"),
    Home("HPC2N", "1x240"),
    Home("CTC", "1x338"),
)


def _cut(part: bl.Workload, most: int) -> list[bl.Workload]:
    """Return up to `most` windows, spread over a part."""
    count = min(most, len(part) // LOG_JOBS)
    cuts = spread_windows(len(part), count, LOG_JOBS, where=part.name)
    return [part.window(*cut) for cut in cuts]


def tuned_at(home: Home, windows: dict[str, list[bl.Workload]]) -> tuple[str, str]:
    """Return the best gate on VAL that the seeds found, and the best lane there."""
    place, train, val = home.place, windows["train"], windows["val"]
    named = {name: place.run(name, val) for name in place.named()}
    reference = best_by(named, "mean_jct")
    on_train = place.run(reference, train)

    def val_loss(text: str) -> float:
        return GOAL.loss(place.run(text, val), named[reference])

    found = []
    for seed in SEEDS:

        def train_loss(text: str, epoch: int, seed: int = seed) -> float:
            draws = np.random.Generator(np.random.Philox(key=[seed, epoch]))
            chosen = draws.choice(len(train), min(TRAIN_WINDOWS, len(train)), replace=False)
            ours = place.run(text, [train[i] for i in chosen])
            return GOAL.loss(ours, [on_train[i] for i in chosen])

        found.append(tune(SPACES["hold"], train_loss, val_loss, epochs=EPOCHS, seed=seed))
    best = min(found, key=lambda one: one.val_loss)
    lanes = {text: place.run(text, val) for text in LANES}
    told = ", ".join(f"{one.val_loss:+.3f}" for one in found)
    print(f"{home.name}: VAL {found[0].start_val_loss:+.3f} at the start, found {told}", flush=True)
    return best.scheduler, best_lane(lanes, LIMITS, named[reference])


def runs(folder: Path) -> Iterator[Row]:
    """Tune everywhere, then read REPORT everywhere; yield a row for each run."""
    windows = {home: home.windows(folder) for home in HOMES}
    found = {home: tuned_at(home, windows[home]) for home in HOMES}
    gates = {f"tuned on {home.name}": gate for home, (gate, _) in found.items()}
    for home in HOMES:
        report = windows[home]["report"]
        named = {name: home.place.run(name, report) for name in home.place.named()}
        schedulers = {role: best_by(named, metric) for role, metric in RIVALS.items()}
        schedulers |= {SHIPPED: card_of(SHIPPED).scheduler}
        schedulers |= {LANE: found[home][1], "lane as it comes": "smallest-area+easy?express-lane"}
        for name, text in {**schedulers, **gates}.items():
            for number, outcome in enumerate(home.place.run(text, report)):
                values = dict(zip(METRICS, (f"{value:.10g}" for value in outcome), strict=True))
                row = {"place": home.name, "gate": name, "scheduler": text, "window": str(number)}
                yield row | {"jobs": str(len(report[number]))} | values
        print(f"{home.name}: evaluated", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Tune and evaluate, and write the CSV file, the page and the figure."""
    return run_page(PAGE, __doc__, measure=runs, parts=parts, draw=draw, argv=argv)


if __name__ == "__main__":
    sys.exit(main())
