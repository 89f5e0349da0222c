"""Order, gate and preemption tuned together, against each alone;
`make results RESULTS=hold_and_preempt` runs it."""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import TYPE_CHECKING

from benchmarks.hindsight import HEURISTICS, LANES
from benchmarks.jct_and_slowdown import Ground, Searches, windows_of
from benchmarks.paired_windows import Experiment, Setting, main, names, versus, versus_heads
from benchmarks.winning_settings import LOGS, TRACES

import berthline as bl
from berthline.learn.tuning.search_rivals import usable_rivals
from berthline.learn.tuning.search_space import SPACES as SHIPPED_SPACES
from berthline.learn.tuning.search_space import SearchSpace
from berthline.policies.shipped_policies import card_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.result_files import Row

CLUSTER, EPOCHS, SEEDS = "uniform:16x8", 3, (0,)
SAVED = {"restart": 60.0, "checkpoint": 1800.0}
LOST = {"restart": 600.0, "checkpoint": math.inf}
"""What a preemption costs: a minute and up to half an hour of work; ten minutes and all work."""

PREEMPTIVE = {
    "srpt": "srpt+skip!srpt",
    "srpt, easy": "srpt+easy@best-fit!srpt",
    "srpt-area": "srpt-area+skip@best-fit![remaining * gpus]",
    "srpt-area, saves first": "srpt-area+skip@best-fit![remaining * gpus]:min_run=-1",
    "las": "las+skip!las",
    "las, no promotion": "las+skip!las:promote=0",
    "srpt-area behind a lane": (
        "srpt-area+easy@best-fit?express-lane:T=14400:r=0.1![remaining * gpus]"
    ),
}
_HOLD, _BOTH = SHIPPED_SPACES["hold"], SHIPPED_SPACES["hold-preempt"]
_SIZE, _NUMBERS = _HOLD.parameters[0], _BOTH.parameters[len(_HOLD.parameters) :]
_INDEX = "!" + _BOTH.text.partition("!")[2]
SHIPPED, OPENED = "holdback", "the same without its gate"
SPACES = {
    "gate alone": (_HOLD, SHIPPED_SPACES["lane"]),
    "preemption alone": tuple(
        SearchSpace(
            rule, f"[remaining * gpus ** {{g}}]+{rule}@best-fit{_INDEX}", (_SIZE, *_NUMBERS)
        )
        for rule in ("easy", "skip")
    ),
    "gate and preemption": tuple(
        SearchSpace(rule, _BOTH.text.replace("+easy@", f"+{rule}@"), _BOTH.parameters)
        for rule in ("easy", "skip")
    ),
}
"""What is tuned, each in two spaces; VAL chooses the better one."""


@dataclasses.dataclass(frozen=True)
class Case:
    """The jobs, what is known of run times, and the cost of a preemption."""

    jobs: str
    knowledge: str
    costs: str

    @property
    def name(self) -> str:
        """Its name on the page."""
        return f"{self.jobs}, {self.knowledge}, work {self.costs}"

    @property
    def cluster(self) -> bl.Cluster:
        """The nodes, with the costs."""
        costs = {"saved": SAVED, "lost": LOST}[self.costs]
        return bl.Cluster.parse(CLUSTER).with_conditions(costs)


CASES = (
    Case("Venus", "exact", "saved"),
    Case("Venus", "estimate", "saved"),
    Case("spread", "exact", "saved"),
    Case("spread", "estimate", "lost"),
)


def settings(trace: Path | None) -> Iterator[Setting]:
    """Choose and tune on TRAIN and VAL; yield what is then evaluated on REPORT."""
    for case in CASES:
        ground = Ground(case.cluster, case.knowledge)
        windows = windows_of(case.jobs, case.cluster, trace or TRACES / LOGS["Venus"].file)
        named = usable_rivals(HEURISTICS, case.knowledge, preemptive=False)
        searches = Searches(ground, windows, named)
        chosen = {SHIPPED: card_of(SHIPPED).scheduler}
        chosen["best lane"] = min(LANES, key=searches.val_loss)
        for name, spaces in SPACES.items():
            print(f"{case.name}: {name}", flush=True)
            chosen[name] = searches.best(spaces, epochs=EPOCHS, seeds=SEEDS).scheduler
        # Does the gate help, or the rest of what was found?
        head, _, rest = chosen["gate and preemption"].partition("?")
        chosen[OPENED] = f"{head}!{rest.partition('!')[2]}"
        for part in list(windows)[2:]:
            rival = ground.lowest_jct([*named, *PREEMPTIVE.values()], windows[part])
            yield Setting(
                case.name + part.removeprefix("report"),
                case.cluster,
                windows[part],
                {"rival": rival, **PREEMPTIVE, **chosen},
                case.knowledge,
            )


def together(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Compare both together with each alone."""
    shown = ("jct_mean", "bounded_slowdown", "jct_p99", "preemptions", "lost_gpu_hours")
    lines = versus_heads("setting", "against", keys=shown)
    for setting in names(rows, "setting"):
        for other in ("gate alone", "preemption alone", OPENED):
            cells = versus(rows, setting, "gate and preemption", other, shown)
            lines.append(f"| {setting} | {other} | {cells} |")
    return {"together": lines}


EXPERIMENT = Experiment(
    page="hold-and-preempt",
    settings=settings,
    measures=("jct_mean", "bounded_slowdown", "jct_p99", "lost_gpu_hours"),
    shown=3,
    values={
        "jct_mean": ("s", 1.0),
        "bounded_slowdown": ("over all windows", 1.0),
        "preemptions": ("a window", 1.0),
    },
    more=together,
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT, __doc__))
