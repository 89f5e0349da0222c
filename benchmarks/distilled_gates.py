"""Short gates: networks and the ten numbers of `holdback` as readable rules;
`make results RESULTS=distilled_gates` runs it."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from benchmarks.gate_transfer import GOAL, Home
from benchmarks.hindsight import Place, best_by
from benchmarks.paired_windows import Experiment, Setting, main, names, versus, versus_heads
from benchmarks.tuning import EPOCH, POPULATION
from benchmarks.winning_settings import TRACES

import berthline as bl
from berthline.cli.main import main as berthline
from berthline.deploy.run_policy import load_policy, policy_plan
from berthline.env.native_envs import NativeEnvs
from berthline.env.observation_layout import ObservationLayout
from berthline.errors import ConfigError
from berthline.learn.tuning.search_space import Parameter, SearchSpace
from berthline.learn.tuning.strategies import EvolutionStrategy
from berthline.policies.learned import Learned
from berthline.policies.shipped_policies import card_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.result_files import Row

RUN = Path("runs/distilled-gates")
TRAIN = "ppo --env Gate --steps 300000 --validate-every 75000 --seeds 2"
"""The networks: default settings, on windows of 256 jobs of `lublin`."""
CLUSTER, JOBS, LONG_JOBS, LOAD = "uniform:8x8:V100", 256, 2000, 1.0
WATCHED, REPORT, LONG = 48, 96, 12
"""Windows in which a network is recorded, and in which all gates are evaluated."""
EPOCHS = 12
BASE = "sqrt-area+easy@best-fit"
_FREE = "pool_free_gpus - gpus - pool_total_gpus"
_T, _R = Parameter("T", 30.0, 86_400.0, 3600.0, is_log=True), Parameter("r", 0.0, 0.9, 0.1)
RULES = {
    "lane: 2 numbers": SearchSpace("lane", f"{BASE}?express-lane:T={{T}}:r={{r}}", (_T, _R)),
    "lane that gives in: 3 numbers": SearchSpace(
        "patience",
        f"{BASE}?[where((estimate > {{T}}) * (wait < {{p}} * estimate), {_FREE} * {{r}}, 0)]",
        (_T, _R, Parameter("p", 0.01, 100.0, 1.0, is_log=True)),
    ),
    "sloped lane: 4 numbers": SearchSpace(
        "slope",
        f"{BASE}?[where(estimate > {{T}}, {_FREE}"
        " * clip({r} + {l} * log2(estimate / {T}) - {w} * log2(1 + wait / estimate), 0, 0.9), 0)]",
        (_T, _R, Parameter("l", -0.1, 0.2, 0.0), Parameter("w", 0.0, 0.4, 0.0)),
    ),
}
"""Rules that are fitted to a network's answers."""
TERMS = {
    "l": "log2(estimate / {T})",
    "s": "log2(gpus + 1)",
    "w": "log2(1 + wait / estimate)",
    "q": "log2(1 + queued_gpus / total_gpus)",
    "d": "log2(1 + queued_work / total_gpus / 3600)",
    "b": "log2(1 + arrival_burstiness)",
    "f": "fragmentation",
}
"""What `holdback` adds to the share that stays free, by the names of its numbers."""
SHARES = tuple(round(0.05 * step, 2) for step in range(13))
KEPT = (4, 2, 1, 0)
"""Numbers of terms with which pruned gates are evaluated."""


class Answers:
    """A network's answers: the questions, and whether it held the job back."""

    def __init__(self, seen: Sequence[npt.NDArray[np.float32]], held: Sequence[bool]) -> None:
        length, _, left, wait, *_ = np.array(seen, float).T
        self._estimate = 10 ** (6 * length) - 1
        self._left, self._waited = left, wait / np.maximum(1 - wait, 1e-9)
        self._held = np.array(held)

    @property
    def share_held(self) -> float:
        """Share of the jobs that were held back."""
        return float(self._held.mean())

    def disagreement(self, rule: str, values: dict[str, float]) -> float:
        """Return the share of answers that a rule would not give; both kinds count half."""
        free = np.full(len(self._held), values["r"])
        if rule == "slope":
            free += values["l"] * np.log2(np.maximum(self._estimate, 1e-9) / values["T"])
            free -= values["w"] * np.log2(1 + self._waited)
        held = (self._estimate > values["T"]) & (self._left < np.clip(free, 0, 0.9))
        if rule == "patience":
            held &= self._waited < values["p"]
        wrong = held != self._held
        return float((wrong[self._held].mean() + wrong[~self._held].mean()) / 2)


def windows_of(first: int, count: int, jobs: int) -> list[bl.Workload]:
    """Return windows of the jobs that networks are trained on."""
    cluster = bl.Cluster.parse(CLUSTER)
    return [
        bl.generate("lublin", cluster=cluster, jobs=jobs, load=LOAD, seed=seed)
        for seed in range(first, first + count)
    ]


def trained() -> list[Learned]:
    """Return the networks of all seeds; train them first if that has not been done.

    Raises:
        ConfigError: they could not be trained.
    """
    if not (RUN / "summary.json").is_file():
        resume = ["--resume"] if (RUN / "config.toml").is_file() else []
        if berthline(["train", *TRAIN.split(), "--out", str(RUN), *resume]):
            raise ConfigError("the networks were not trained", where=str(RUN))
    return [
        found
        for seed in sorted(RUN.glob("seed-*"))
        if (found := Learned.find(str(seed))) is not None
    ]


def watch(network: Learned, windows: Sequence[bl.Workload]) -> Answers:
    """Let the network schedule windows; return its answers."""
    seen, held = [], []
    for window in windows:
        plan = policy_plan(network, window, bl.Cluster.parse(CLUSTER), knowledge=network.knowledge)
        policy = load_policy(network, ObservationLayout.of(plan))
        envs = NativeEnvs(plan, 1, 1, same_step=False)
        envs.seed(0, 0, 0)
        envs.reset([0])
        is_over = False
        while not is_over:
            answer = policy.choose(envs.observation[0], envs.mask[0])
            if envs.mask[0].all():
                seen.append(envs.observation[0].copy())
                held.append(answer == 0)
            _, terminated, truncated, _ = envs.step_single(answer, 0)
            is_over = terminated or truncated
    return Answers(seen, held)


def imitated(space: SearchSpace, answers: Answers) -> str:
    """Return the rule of a space that agrees most with a network."""
    strategy = EvolutionStrategy(space.start, population=POPULATION, seed=0)
    best = (answers.disagreement(space.name, space.values(space.start)), space.start)
    for _ in range(EPOCHS * EPOCH):
        points = strategy.ask()
        losses = [answers.disagreement(space.name, space.values(point)) for point in points]
        strategy.tell(points, np.array(losses))
        best = min(best, *zip(losses, points, strict=True), key=lambda one: one[0])
    print(f"{space.name}: disagrees in {100 * best[0]:.1f} %", flush=True)
    return space.scheduler(best[1])


def pruned(place: Place, val: Sequence[bl.Workload]) -> dict[int, str]:
    """Return `holdback` with fewer and fewer terms, the least useful removed first."""
    named = {name: place.run(name, val) for name in place.named()}
    reference = named[best_by(named, "mean_jct")]
    kept, found = list(TERMS), {}
    while kept:
        losses = {}
        for gone, share in itertools.product(kept, (card_of("holdback").parameters["r"], *SHARES)):
            text = shortened([name for name in kept if name != gone], share)
            losses[text, gone] = GOAL.loss(place.run(text, val), reference)
        text, gone = min(losses, key=losses.__getitem__)
        kept.remove(gone)
        found[len(kept)] = text
        print(f"without {gone}: VAL {losses[text, gone]:+.3f}", flush=True)
    return found


def shortened(kept: Sequence[str], share: float) -> str:
    """Return `holdback` with some of its terms, and another initial share."""
    card = card_of("holdback")
    numbers = card.parameters
    length = f"{numbers['T']:g}"
    free = f"{share:g}"
    for name in kept:
        weight = -numbers[name] if name == "w" else numbers[name]
        term = TERMS[name].replace("{T}", length)
        free += f" {'-' if weight < 0 else '+'} {abs(weight):g} * {term}"
    order = re.match(r"\[[^]]*\]\+easy@best-fit", card.scheduler)
    assert order is not None
    return f"{order[0]}?[where(estimate > {length}, {_FREE} * clip({free}, 0, 0.9), 0)]"


def settings(trace: Path | None) -> Iterator[Setting]:
    """Distil; yield what is then evaluated on held-out windows."""
    cluster = bl.Cluster.parse(CLUSTER)
    for seed, network in enumerate(trained()):
        answers = watch(network, windows_of(20_000, WATCHED, JOBS))
        print(f"seed {seed}: {100 * answers.share_held:.1f} % of jobs held back", flush=True)
        schedulers = {"no gate": BASE, "network": network.name}
        schedulers |= {name: imitated(space, answers) for name, space in RULES.items()}
        schedulers["lane as it comes"] = f"{BASE}?express-lane"
        for name, windows in (
            (f"PPO, seed {seed}", windows_of(30_000, REPORT, JOBS)),
            (f"PPO, seed {seed}, long windows", windows_of(40_000, LONG, LONG_JOBS)),
        ):
            yield Setting(name, cluster, windows, schedulers, network.knowledge)
    home = Home("spread", "16x8")
    short = pruned(home.place, home.windows(TRACES)["val"])
    order = shortened((), 0.0).partition("?")[0]
    schedulers = {"no gate": order, "holdback": card_of("holdback").scheduler}
    schedulers |= {f"{count} of its {len(TERMS)} terms": short[count] for count in KEPT}
    schedulers["lane as it comes"] = f"{order}?express-lane"
    for place in (home, Home("spread", "32x8"), Home("Venus", "16x8")):
        windows = place.windows(trace or TRACES)["report"]
        yield Setting(f"holdback on {place.name}", place.place.cluster, windows, schedulers)


def against_teacher(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Compare every rule with what it was made from."""
    shown = ("bounded_slowdown", "jct_mean", "jct_p99")
    lines = versus_heads("setting", "rule", "against", keys=shown)
    for setting in names(rows, "setting"):
        _, teacher, *rules = names(rows, "scheduler", setting=setting)
        lines += [
            f"| {setting} | {rule} | {teacher} | {versus(rows, setting, rule, teacher, shown)} |"
            for rule in rules
        ]
    return {"against": lines}


EXPERIMENT = Experiment(
    page="distilled-gates",
    settings=settings,
    measures=("bounded_slowdown", "jct_mean", "jct_p99"),
    shown=3,
    values={"bounded_slowdown": ("over all windows", 1.0), "jct_mean": ("s", 1.0)},
    more=against_teacher,
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT, __doc__))
