"""Presets: the environments of five published schedulers, as options of ours.

Each keeps the observations, questions and rewards of its original where that makes sense, and runs
on our simulator. Each preset lists the differences, with the reasons. Common to all of them:

- A decision point is a loop: jobs start until nothing more is chosen, and only then does time pass.
- JCT and waits count from the submission, and every submitted job counts.
- Actions that are not possible are masked out, and the no-op is the last action.
- A truncated episode is not a finished one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from berthline.env.columns import lookahead_columns, lsf_columns
from berthline.registry import Registry, keywords_of


@dataclasses.dataclass(frozen=True)
class Preset:
    """The options of a reference system.

    Attributes:
        name: its name in the option `preset`.
        seat: which environment it is for.
        system: the system whose environment it follows.
        options: keywords of Options.
        differences: what differs from the original, and why.
        scales: computes options from the values of its generator's dials.
        rivals: schedulers that could do what an agent in this environment can, with which its
            policies are compared; empty = those of the seat.
        busy: the preset that is the same with a load at which choices matter; empty = this one is.
    """

    name: str
    seat: str
    system: str
    options: Mapping[str, Any]
    differences: tuple[str, ...]
    scales: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    rivals: tuple[str, ...] = ()
    busy: str = ""

    def following(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options that follow from dials given with the preset.

        Raises:
            ConfigError: an unknown dial, or a value out of range.
        """
        from berthline.traces.generators.dials import set_dials
        from berthline.traces.generators.synthetic import GENERATORS

        dials = given.get("dials")
        if self.scales is None or not dials:
            return {}
        own = self.options["workload"]
        if given.get("workload", own) != own:
            return {}
        return self.scales(set_dials(GENERATORS[own].dials, dials, where=f"generator {own!r}"))


def _lsf_scales(dials: Mapping[str, Any]) -> Mapping[str, Any]:
    from berthline.traces.generators.gpu_mix import read_mix

    return {
        "features": lsf_columns(
            most_gpus=max(read_mix(str(dials["gpu_mix"])) or (1,)),
            most_memory_mib=int(dials["memory_high"]),
        )
    }


def _lookahead_scales(dials: Mapping[str, Any]) -> Mapping[str, Any]:
    from berthline.traces.generators.reference_systems import lookahead_longest

    longest = lookahead_longest(dials)
    return {"features": lookahead_columns(longest=longest), "lookahead_seconds": longest}


_PICKERS = (
    "static-priority+skip",
    "fcfs+skip",
    "sjf+skip",
    "smallest-area+skip",
    "largest-first+skip",
    "[-priority / estimate]+skip",
    "random+skip",
)
"""Orders of jobs that can start, with run times and priorities."""


_OWN = {
    preset.name: preset
    for preset in (
        Preset(
            "rltune",
            "pick",
            "dshruti20/RLTune: which job starts next, scored at the end against a baseline",
            {
                "workload": "synthetic",
                "cluster": "philly-rltune",
                "conditions": {"gpu_speeds": 0},
                "load": 3.0,
                "episode_jobs": 256,
                "missing_types": "any",
                "knowledge": "none",
                "order": "fcfs",
                "semantics": "wait",
                "discipline": "strict",
                "placement": "first-fit",
                "window": 128,
                "features": "rltune",
                "reward": "relative-bounded-slowdown",
                "baseline": "fcfs@first-fit",
            },
            (
                "Jobs are generated, at load 3: the original's bundled trace leaves the 192 GPUs "
                "so idle that every policy is equal, and 256 jobs are over before a lower load "
                "has filled them. Its traces are read with `workload=FILE` and `load=None`, and "
                "`split` separates training windows from test windows.",
                "Windows of a trace begin inside the running cluster; in the original, every "
                'trajectory begins on an empty one: `start="empty"`.',
                "Run times do not depend on the GPU type, as in the original; without "
                "`conditions` they do.",
                "The other clusters are `helios-rltune` and `alibaba-pai-rltune`. A job that "
                "names a virtual cluster or a GPU type stays there. A job that names only types "
                "missing from the cluster may use every type: in the original, only Alibaba "
                "binds jobs to types. A job without a virtual cluster may use all of them; the "
                "original's Helios, which expects one more column, uses the GPU type instead.",
                "The other scores are `relative-wait`, `relative-jct` (turnaround), "
                "`relative-utilization` and `relative-slowdown`.",
                "Run times are unknown. The original hides them from the agent too, but its "
                "baselines know the true ones: for such baselines, set `knowledge` and "
                "`baseline`.",
                "The third and fourth columns are about the nodes a job may use: its virtual "
                "cluster, its GPU type, and on Philly all nodes, which the original's columns "
                "also treat as one pool. The fourth counts all waiting jobs, not only those in "
                "the window. The fifth is the share of partly used nodes among those with a free "
                "GPU, as in the original on Helios; on Philly it divides by all nodes. The "
                "seventh is 0, 0.5 or 1, within its bounds; the original's reaches 1.5. Rows "
                "without a job are zeros, and the mask marks them.",
                "The no-op lets time pass until the next event; the original waits 600 s at most, "
                "and only for an action that its mask forbids.",
                "A job that can never fit is rejected with a reason, not dropped.",
                "Backfilling is set by `discipline`: `easy` has the rule about spare GPUs, which "
                "the original lacks. Where jobs belong to pools or GPU types, use it, or "
                "`semantics='mask'`: under `strict` a job waits for GPUs that no other can use.",
                "Jobs are placed on the fewest nodes, lowest numbers first. On Philly the "
                "original places a job within one kind of nodes: up to 4 GPUs on either kind, "
                "more on the large nodes. Here a job of 3 or 4 GPUs, which two small nodes could "
                "hold, waits for a large one, and a job of more than 8 may use a small node "
                "beside large ones; the generated jobs have up to 8.",
                "The original's placement by a mixed-integer program, for the agent only, is "
                "`placement='milp-candidates'`: the best of its candidates, without a solver.",
                "The published Philly trace asks for more than twice what these 192 GPUs can do, "
                "and the bundled one for less than a third: `load` rescales arrivals.",
            ),
            rivals=(
                "fcfs",
                "lcfs",
                "smallest-first",
                "random+skip",
                "fcfs+skip",
                "smallest-first+skip",
                "sjf",
                "sjf+skip",
                "f1",
            ),
        ),
        Preset(
            "drl-scheduler",
            "pick",
            "HenryAJX/DRL_Scheduler: D3QN and SAC, which of 16 jobs starts now",
            {
                "workload": "drl-scheduler",
                "cluster": "drl-scheduler-types",
                "load": 0.9,
                "episode_jobs": 256,
                "max_steps": 2000,
                "knowledge": "exact",
                "order": "static-priority",
                "placement": "fastest-type",
                "window": 16,
                "features": "drl-scheduler",
                "reward": "drl-scheduler",
                "baseline": "static-priority+skip@fastest-type",
            },
            (
                "The load is 0.9: the original's 2.5 jobs a second are about 600 times what the "
                "56 GPUs can do. `load=None` is the original's rate.",
                "A step is a decision, not a second: any number of jobs start at one instant, and "
                "what the reward pays every second is integrated over the time that passes.",
                "Jobs that do not fit are masked out; the original treats them as the no-op, and "
                "charges 0.1 for an index without a job.",
                "Run times depend on the GPU type; in the original its speed changes nothing.",
                "The original's column of FLOPS, a random number without effect, is the job's "
                "wait here.",
                "A job uses the fastest type that has room for all of it, and waits while there "
                "is none: the original's allocation `homogeneous`. Its `greedy` starts the same "
                "way, but splits a job that no type has room for; here that job would run at the "
                "speed of the slowest type. `placement='scatter'` also splits jobs, fastest type "
                "first, even if one type has room.",
                "The original has no nodes: each type is one node here. The cluster "
                "`drl-scheduler` has the same GPUs on nodes of 4, where a job of more than 4 may "
                "span types.",
                "An episode has 256 jobs and ends when they have finished; the limit of 2,000 "
                "steps is a truncation. The original's limit of 150,000 s is left out.",
            ),
            rivals=_PICKERS,
            busy="drl-scheduler-busy",
        ),
        Preset(
            "rlmetadqn",
            "meta",
            "gomede/rlmetadqn-tpds: which of five orders applies for the next 10 minutes",
            {
                "workload": "rlmetadqn",
                "dials": {"shape": "base", "intensity": "medium"},
                "cluster": "uniform:1x4:V100",
                "episode_jobs": 120,
                "knowledge": "exact",
                "order": "static-equal",
                "discipline": "strict",
                "schedulers": (
                    "static-equal",
                    "static-priority",
                    "edf",
                    "sjf",
                    "dynamic-heuristic",
                ),
                "every_seconds": 600.0,
                "features": "rlmetadqn",
                "reward": "rlmetadqn",
                "baseline": "sjf",
            },
            (
                "The state has no regime labels: the measured rate and burstiness of arrivals "
                "and the GPUs in use replace them.",
                "The fourth order is the original's SRPT, which does not preempt: that is `sjf`.",
                "An episode has the jobs of one hour on average, and ends when they have "
                "finished. The 48 regimes are `meta_regimes()`: dials, GPUs and jobs of each; "
                "`super_high=True` adds the 8 with 6 jobs a minute, on 4 and 16 GPUs. A policy is "
                "trained in one of them, and `berthline eval --regimes` evaluates it in all.",
                "The agent is asked every 10 minutes, the original every 5 s (`every_seconds=5`): "
                "what an order does in 5 s is lost in the noise, and nothing is learned. It is "
                "asked only while jobs wait; jobs start and end at any instant.",
                "The reward of a step is not clipped to [-10, 2], which would hide all missed "
                "deadlines but two. Power is the original's formula, which is constant from the "
                "third busy GPU on; the word `power_w` uses the power of the GPU types.",
                "Random numbers depend on the seed only, and every scheduler gets the same jobs.",
            ),
        ),
        Preset(
            "lsf",
            "place",
            "LoboShao/lsf_autohost, first generation: which host gets the job",
            {
                "workload": "lsf",
                "cluster": "lsf",
                "conditions": {"max_nodes": 1},
                "load": 0.9,
                "episode_jobs": 5100,
                "knowledge": "exact",
                "order": "fcfs",
                "discipline": "skip",
                "placement": "first-available",
                "window": 1,
                "features": "lsf",
                "reward": "lsf",
                "baseline": "fcfs+skip@first-available",
            },
            (
                "The original has no GPUs: its cores are GPUs here, and memory is a limit in both.",
                "The action is a host, with a mask of those that have room; the original ranks all "
                "hosts by numbers in [0, 1] and has no mask.",
                "The load is 0.9; `load=None` gives the original's 1 to 50 jobs every second, "
                "nearly 4 times what the hosts can do. 5,100 jobs are those of its 200 s.",
                "The free resources of hosts are up to date at every decision, not only once a "
                "second.",
                "Time is continuous: -1 per second becomes minus the elapsed time.",
                "The hosts are the same in every episode; for others, set `cluster`. Dials set "
                "what jobs request: `gpu_mix`, `memory_low`, `memory_high`, `run_low`, "
                "`run_high`. The job's columns are divided by the largest values that these "
                "allow.",
                "A job that no host has room for waits, and others may pass it, as in the "
                "original; a job too large for every host, which fails there, is rejected with a "
                "reason.",
            ),
            _lsf_scales,
            busy="lsf-busy",
        ),
        Preset(
            "lookahead",
            "pick",
            "MohammedYaseen97/gpu-optimizer: PPO, which of 50 jobs starts now, with a look ahead",
            {
                "workload": "heavy-tailed",
                "cluster": "uniform:1x8:V100",
                "episode_jobs": 400,
                "knowledge": "exact",
                "order": "fcfs",
                "window": 50,
                "features": "lookahead",
                "lookahead": "cdf",
                "lookahead_seconds": 10_000.0,
                "reward": "lookahead",
                "baseline": "fcfs+skip",
                "horizon_factor": 1.3,
                "max_steps": 2000,
            },
            (
                "Any number of jobs start at one instant. The original advances to the next "
                "event after every action, so that only one job can start; that alone matters "
                "more than all differences between its policies.",
                "The no-op is the last action, not the first, and the agent is asked only when a "
                "job can start.",
                "A job's wait is shown as wait / (wait + 10,000 s); the original divides by the "
                "horizon, which reveals how much work is still to be submitted.",
                "Run times and the look-ahead are divided by the longest run time, 10,000 s. It "
                "follows the dials of the generator: it is `longest`, or else `run_high`. The "
                "original's uniform run times are `dials={'run_times': 'uniform', 'run_low': "
                "500, 'run_high': 2000, 'longest': 10000}`.",
                "For arrivals that are not bursty: `load=1e6` gives the original's, all at the "
                "beginning; `dials={'burst_share': 0}` spreads them evenly.",
                "The look-ahead uses the run times that `knowledge` gives: exact ones, as in the "
                "original, unless set otherwise. Its modes are `off`, `per_gpu`, `sorted` and "
                "`cdf`, all of the same shape.",
                "A seed gives other jobs than in the original. You can keep its protocol: "
                "training seeds from 1,000,000 on, 60 validation seeds from 2,000,000 on to "
                "select a policy, and 60 seeds from 12,000,000 on for the single report. A batch "
                "takes them as a list.",
            ),
            _lookahead_scales,
            rivals=(
                "fcfs+skip",
                "sjf+skip",
                "random+skip",
                "largest-first+skip",
                "[-gpus * 1e6 + estimate]+skip",
                "largest-area+skip",
            ),
        ),
    )
}


def _busier(name: str, options: Mapping[str, Any], *differences: str) -> Preset:
    """Return a preset with more to decide; the differences are those from the first."""
    like = _OWN[name]
    return dataclasses.replace(
        like,
        name=like.busy,
        system=f"{like.system}; with a load at which that matters",
        options={**like.options, **options},
        differences=(*differences, f"Everything else is as in `{name}`."),
        busy="",
    )


_OWN |= {
    preset.name: preset
    for preset in (
        _busier(
            "drl-scheduler",
            {"load": 1.3},
            "The load is 1.3: at 0.9 jobs hardly wait, and the order in which those that fit start "
            "changes mean JCT by less than 1 %.",
        ),
        _busier(
            "lsf",
            {
                "cluster": "lsf-15",
                "load": 1.1,
                "dials": {"gpu_mix": "1:6,4:3,16:2,32:1", "memory_high": 16384},
                "features": "lsf-busy",
                "episode_jobs": 250,
                "reward": "mean-wait-hours",
            },
            "Jobs have 1, 4, 16 or 32 cores and up to 16 GiB, on 15 hosts at a load of 1.1. Those "
            "of `lsf` have up to 4 cores and fit everywhere: whichever host they get, no other "
            "job waits longer for it, so there is nothing to learn.",
            "The reward is minus the wait. The original's, minus the time that passes, says "
            "nothing about hosts while jobs keep coming.",
            "An episode has 250 jobs.",
        ),
    )
}


def register_preset(
    name: str,
    env: str,
    options: Mapping[str, Any],
    *,
    system: str = "",
    differences: Sequence[str] = (),
) -> Preset:
    """Add a preset, usable at once as the option `preset` and as `--preset`.

    A package can add one by an entry point in the group `berthline.presets`: a mapping with these
    parameters.

    Args:
        name: lower-case words joined by hyphens.
        env: the environment it is for: `Pick`, `Gate`, ...
        options: options of the environment, such as `{"load": 1.2, "window": 32}`.
        system: what it follows, in a line for lists.
        differences: what differs from that, in sentences.

    Raises:
        ConfigError: the name is taken or malformed, there is no such environment, or an option is
            wrong.

    Example:
        register_preset("small-and-busy", "Pick", {"load": 1.3, "window": 16})
    """
    from berthline.env.options import resolve_options
    from berthline.env.registration import seat_of

    seat = seat_of(env)
    resolve_options(seat, {"preset": None, **dict(options)}, are_complete=True)
    return PRESETS.add(name, Preset(name, seat, system, dict(options), tuple(differences)))


PRESETS = Registry[Preset](
    "a preset",
    "berthline.presets",
    _OWN,
    lambda name, value: register_preset(name, **keywords_of("a preset", value, register_preset)),
)
"""Every preset by its name."""
