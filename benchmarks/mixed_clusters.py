"""Tuned rules for which job gets which GPU type, against placements, on mixed clusters;
`make results RESULTS=mixed_clusters` runs it."""

from __future__ import annotations

import dataclasses
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.paired_windows import Experiment, Setting, main
from benchmarks.tuning import tune

import berthline as bl
from berthline.errors import TraceError
from berthline.evaluate.compare.protocol import spread_windows
from berthline.evaluate.metrics.job_table import completion_times, job_table
from berthline.evaluate.metrics.slowdown import bounded_slowdowns
from berthline.learn.tuning.search_space import Parameter, SearchSpace
from berthline.model.cluster import Cluster, NodeGroup
from berthline.traces.offered_load import scale_to_load
from berthline.traces.split import split_by_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VENUS = (
    Path(__file__).parents[2]
    / "shared/traces/helios_venus/venus_gpu_jobs_2020-03-18_2020-08-31.csv.gz"
)
"""Where the log may be: beside the repository."""
NODES, GPUS, JOBS, DAY = 24, 4, 1000, 86_400.0
LOAD = 0.9
"""Relative to the capacity of the cluster, including the speeds of its GPUs."""
TRAIN, VAL, REPORT = 24, 8, 16
"""Windows."""
LONG, LONG_JOBS = 6, 5000
TRAIN_WINDOWS, EPOCHS, SEEDS, PRICE = 4, 2, (0, 1, 2, 3, 4), 5.0

HEURISTICS = {
    **{
        f"{order}, fastest-type": f"{order}+easy@fastest-type"
        for order in ("sjf", "smallest-area", "sqrt-area", "fcfs")
    },
    "smallest-area, best-fit": "smallest-area+easy@best-fit",
}
LANES = tuple(
    f"smallest-area+easy@fastest-type?express-lane:T={threshold}:r={share}"
    for threshold in (60, 900, 3600, 14400)
    for share in (0.1, 0.2, 0.33, 0.5, 0.67)
)
_ORDER = "[estimate * gpus ** {g}]+easy"
_BY_TYPE = "@[node_free_gpus - 1000000 * node_speed * where(estimate < {S}, -1, 1)]"
_LANE = "?express-lane:T={T}:r={r}"
_G = Parameter("g", 0.0, 1.5, 1.0)
_S = Parameter("S", 1.0, 36_000.0, 10.0, is_log=True)
_GATE = (Parameter("T", 10.0, 86_400.0, 600.0, is_log=True), Parameter("r", 0.0, 0.8, 0.1))
SPACES = {
    "tuned types": SearchSpace("types", _ORDER + _BY_TYPE, (_G, _S)),
    "tuned gate": SearchSpace("gate", _ORDER + "@fastest-type" + _LANE, (_G, *_GATE)),
    "tuned types and gate": SearchSpace("both", _ORDER + _BY_TYPE + _LANE, (_G, _S, *_GATE)),
}
"""Jobs shorter than S take the slowest GPUs first. Jobs longer than T leave a share r free; these
are the slowest GPUs, because such jobs take the fastest first."""


@dataclasses.dataclass(frozen=True)
class Mixed:
    """A setting: the types, with the same number of nodes each, and the source of the jobs."""

    types: tuple[str, ...]
    jobs: str

    @property
    def name(self) -> str:
        """Return its name on the page."""
        return f"{' + '.join(self.types)}, {self.jobs}"


SETTINGS = (
    Mixed(("P100", "V100", "H100"), "synthetic"),
    Mixed(("P100", "V100", "H100"), "Venus"),
    Mixed(("V100", "A100"), "synthetic"),
    Mixed(("V100", "A100"), "Venus"),
)


def cluster_of(mixed: Mixed) -> Cluster:
    """Return the cluster of a setting."""
    count = NODES // len(mixed.types)
    groups = [NodeGroup(count=count, gpus=GPUS, gpu_type=kind) for kind in mixed.types]
    return Cluster.from_groups(groups, name=" + ".join(mixed.types))


def windows_of(mixed: Mixed, cluster: Cluster, trace: Path) -> dict[str, list[bl.Workload]]:
    """Return the windows of every part: with separate seeds, or split by time.

    Logs also have long windows, only for evaluation.

    Raises:
        TraceError: the log is not there.
    """
    speed = float(np.mean([kind.speed for kind in cluster.types]))
    if mixed.jobs == "synthetic":
        made = [
            bl.generate("synthetic", cluster=cluster, jobs=JOBS, load=LOAD * speed, seed=seed)
            for seed in range(1000, 1000 + TRAIN + VAL + REPORT)
        ]
        parts = made[:TRAIN], made[TRAIN : TRAIN + VAL], made[TRAIN + VAL :]
        return dict(zip(("train", "val", "report"), parts, strict=True))
    if not trace.exists():
        raise TraceError("the log is not there", where=str(trace))
    log = bl.load_trace(trace)
    of_one_type = cluster.total_gpus // len(mixed.types)
    jobs = bl.Workload.from_columns(
        submit=log.submit, run=log.run, gpus=log.gpus.clip(max=of_one_type), name=mixed.jobs
    )
    split = split_by_time(scale_to_load(jobs, cluster, LOAD * speed), gap_seconds=DAY)
    cuts = {
        "train": (split.train, TRAIN, JOBS),
        "val": (split.validation, VAL, JOBS),
        "report": (split.test, REPORT, JOBS),
        "report, long windows": (split.test, LONG, LONG_JOBS),
    }
    return {
        name: [part.window(*cut) for cut in spread_windows(len(part), number, size, where=name)]
        for name, (part, number, size) in cuts.items()
    }


class Loss:
    """Mean JCT against a reference; p99 JCT and slowdown cost if they exceed the reference's."""

    def __init__(self, cluster: Cluster, reference: str) -> None:
        self._cluster, self._reference = cluster, reference
        self._known: dict[int, list[float]] = {}

    def measured(self, text: str, window: bl.Workload) -> list[float]:
        """Return mean JCT, p99 JCT and mean bounded slowdown."""
        log = bl.simulate(window, self._cluster, text, knowledge="exact").log
        table = job_table(log, window)
        jct = completion_times(table, window)
        slowdown = bounded_slowdowns(table, window)
        return [float(jct.mean()), float(np.quantile(jct, 0.99)), float(slowdown.mean())]

    def __call__(self, text: str, windows: Sequence[bl.Workload]) -> float:
        """Return the loss of a scheduler on some windows."""
        for window in windows:
            if id(window) not in self._known:
                self._known[id(window)] = self.measured(self._reference, window)
        ours = np.array([self.measured(text, window) for window in windows])
        theirs = np.array([self._known[id(window)] for window in windows])
        jct, p99, slowdown = np.log(ours / theirs).mean(axis=0).tolist()
        return float(jct + PRICE * (max(p99, 0.0) + max(slowdown, 0.0)))


def settings(trace: Path | None) -> Iterator[Setting]:
    """Choose and tune on TRAIN and VAL; yield what is then evaluated on REPORT."""
    for mixed in SETTINGS:
        cluster = cluster_of(mixed)
        windows = windows_of(mixed, cluster, trace or VENUS)
        schedulers = schedulers_of(cluster, windows["train"], windows["val"])
        print(f"{mixed.name}: tuned", flush=True)
        for part in list(windows)[2:]:
            name = mixed.name + part.removeprefix("report")
            yield Setting(name, cluster, windows[part], schedulers)


def schedulers_of(
    cluster: Cluster, train: Sequence[bl.Workload], val: Sequence[bl.Workload]
) -> dict[str, str]:
    """Return all schedulers to evaluate, first the rival: the best heuristic on VAL."""

    def jct(text: str) -> float:
        one = Loss(cluster, text)
        return math.fsum(math.log(one.measured(text, window)[0]) for window in val)

    best = min(HEURISTICS, key=lambda name: jct(HEURISTICS[name]))
    loss = Loss(cluster, HEURISTICS[best])
    schedulers = {"rival": HEURISTICS[best]}
    schedulers |= {name: text for name, text in HEURISTICS.items() if name != best}
    schedulers["best lane"] = min(LANES, key=lambda text: loss(text, val))
    for name, space in SPACES.items():
        found = []
        for seed in SEEDS:

            def train_loss(text: str, epoch: int, seed: int = seed) -> float:
                draws = np.random.Generator(np.random.Philox(key=[seed, epoch]))
                chosen = draws.choice(len(train), TRAIN_WINDOWS, replace=False)
                return loss(text, [train[i] for i in sorted(chosen)])

            found.append(
                tune(space, train_loss, lambda text: loss(text, val), epochs=EPOCHS, seed=seed)
            )
        found.sort(key=lambda one: one.val_loss)
        schedulers[name] = found[0].scheduler
    # The spread over seeds.
    schedulers[f"{name}, worst seed"] = found[-1].scheduler
    return schedulers


EXPERIMENT = Experiment(
    page="mixed-clusters",
    settings=settings,
    measures=("jct_mean", "jct_p99", "bounded_slowdown", "energy_per_job_kwh"),
    shown=3,
    values={"jct_mean": ("s", 1.0)},
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT, __doc__))
