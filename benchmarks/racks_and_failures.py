"""Tuned orders, placements and gates on clusters with and without racks and failures;
`make results RESULTS=racks_and_failures` runs it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchmarks.hindsight import HEURISTICS
from benchmarks.jct_and_slowdown import Ground, Searches, windows_of
from benchmarks.paired_windows import Experiment, Setting, main
from benchmarks.winning_settings import LOGS, TRACES

from berthline.learn.tuning.search_rivals import usable_rivals
from berthline.learn.tuning.search_space import SPACES as SHIPPED_SPACES
from berthline.learn.tuning.search_space import Parameter, SearchSpace
from berthline.model.cluster import Cluster, NodeGroup
from berthline.policies.shipped_policies import card_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NODES, GPUS, NODES_PER_RACK = 32, 8, 4
LOAD = 0.75
"""Offered load without slow gangs and failures, which increase it."""
EPOCHS, SEEDS = 2, (0,)
SLOW_GANGS = {"across_nodes": 0.9, "across_racks": 0.6}
FAILURES = {"mtbf": 2 * 86_400.0, "mttr": 7200.0}
CONDITIONS = {
    "plain": {},
    "racks": SLOW_GANGS,
    "failures": FAILURES,
    "racks and failures": {**SLOW_GANGS, **FAILURES},
}
"""A gang on two nodes loses a tenth of its speed, and in two racks another two fifths. A node fails
every two days and returns after two hours; jobs save their state after every half hour of work."""

_PLACED = tuple(
    f"{order}+easy@{placement}"
    for order in ("fcfs", "sjf", "smallest-area", "sqrt-area", "srf")
    for placement in ("best-fit", "rack-aware", "worst-fit", "balance")
)
NAMED = (*HEURISTICS, *_PLACED)
LANES = tuple(
    f"smallest-area+easy@{placement}?express-lane:T={threshold}:r={share}"
    for placement in ("best-fit", "rack-aware")
    for threshold in (900, 3600, 14400, 43200)
    for share in (0.05, 0.1, 0.15, 0.2)
)
RACK_GPUS = GPUS * NODES_PER_RACK
_ORDER = SHIPPED_SPACES["order"]
_HOLD = SHIPPED_SPACES["hold"]
_SIZE = _HOLD.parameters[0]
_BY_SIZE = "[estimate * gpus ** {g}]+easy"
# A gang that fits into a rack waits for one, up to a share of its estimate.
_WAIT = (
    f"where((gpus > {GPUS}) * (gpus <= {RACK_GPUS}) * (wait < {{p}} * estimate),"
    " rack_free_gpus - gpus, 0)"
)
_PATIENCE = Parameter("p", 0.0, 3.0, 0.3)
# It loses 1 / across_racks - 1 of its run time if it does not wait.
BY_HAND = f"smallest-area+easy@rack-aware?[{_WAIT}]".replace(
    "{p}", f"{1 / SLOW_GANGS['across_racks'] - 1:.3g}"
)


def _on_racks(space: SearchSpace) -> SearchSpace:
    text = space.text.replace("@best-fit", "")
    return SearchSpace(space.name, text.replace("+easy", "+easy@rack-aware"), space.parameters)


def _gate_and_rack() -> SearchSpace:
    head, _, gate = _on_racks(_HOLD).text.partition("?")
    text = f"{head}?[min({gate.removeprefix('[').removesuffix(']')}, {_WAIT})]"
    return SearchSpace("both", text, (*_HOLD.parameters, _PATIENCE))


SPACES = {
    "tuned order": (_ORDER, _on_racks(_ORDER)),
    "tuned placement": (
        SearchSpace(
            "placement",
            f"{_BY_SIZE}@[{{f}} * node_free_gpus + {{b}} * node_running"
            f" + node_rack * where(gpus > {GPUS}, {{k}}, -{{j}})]",
            (
                _SIZE,
                Parameter("f", -1.0, 1.0, 0.5),
                Parameter("b", -1.0, 1.0, 0.0),
                Parameter("k", 0.0, 10.0, 0.1),
                Parameter("j", 0.0, 10.0, 0.1),
            ),
        ),
    ),
    "tuned gate": (_HOLD, _on_racks(_HOLD)),
    "tuned wait for a rack": (
        SearchSpace("rack", f"{_BY_SIZE}@rack-aware?[{_WAIT}]", (_SIZE, _PATIENCE)),
    ),
    "tuned gate and wait for a rack": (_gate_and_rack(),),
}
"""What is tuned. If there are two spaces, with and without rack-aware placement, VAL chooses."""


def cluster_of(conditions: dict[str, float]) -> Cluster:
    """Return the nodes with their racks and conditions."""
    group = NodeGroup(count=NODES, gpus=GPUS, nodes_per_rack=NODES_PER_RACK)
    cluster = Cluster.from_groups([group], name=f"{NODES}x{GPUS} in racks of {NODES_PER_RACK}")
    return cluster.with_conditions(conditions)


def settings(trace: Path | None) -> Iterator[Setting]:
    """Choose and tune on TRAIN and VAL; yield what is then evaluated on REPORT."""
    for name, conditions in CONDITIONS.items():
        cluster = cluster_of(conditions)
        ground = Ground(cluster, "exact")
        path = trace or TRACES / LOGS["Venus"].file
        windows = windows_of("Venus", cluster, path, load=LOAD, widest=2 * RACK_GPUS)
        named = usable_rivals(NAMED, "exact", preemptive=False)
        searches = Searches(ground, windows, named)
        chosen = {"best lane": min(LANES, key=searches.val_loss)}
        for what, spaces in SPACES.items():
            print(f"{name}: {what}", flush=True)
            chosen[what] = searches.best(spaces, epochs=EPOCHS, seeds=SEEDS).scheduler
        for part in list(windows)[2:]:
            rival = ground.lowest_jct(named, windows[part])
            schedulers = {
                "rival": rival,
                "smallest-area, best-fit": "smallest-area+easy@best-fit",
                "smallest-area, rack-aware": "smallest-area+easy@rack-aware",
                "wait for a rack, by hand": BY_HAND,
                "holdback": card_of("holdback").scheduler,
                **chosen,
            }
            where = name + part.removeprefix("report")
            yield Setting(where, cluster, windows[part], schedulers)


EXPERIMENT = Experiment(
    page="racks-and-failures",
    settings=settings,
    measures=("jct_mean", "bounded_slowdown", "jct_p99", "lost_gpu_hours"),
    shown=3,
    values={"jct_mean": ("s", 1.0), "bounded_slowdown": ("over all windows", 1.0)},
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT, __doc__))
