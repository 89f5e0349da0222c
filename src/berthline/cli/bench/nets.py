"""`berthline bench nets`: wall-clock time of one decision of a policy.

Python asks for one decision after another, in one thread; every row of every table is filled, which
is the worst case. Of several rounds, the one with the lowest median counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from berthline.cli.output import new_table, print_table

CALLS, QUICK_CALLS = 4000, 50
ROUNDS, QUICK_ROUNDS = 7, 1
SEED = 1
WIDTHS = ((16,), (32, 16), (64, 32), (64, 64), (128, 128), (256, 256))


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    seat: str
    network: str
    runtime: str
    hidden: tuple[int, ...] = (32, 16)
    options: dict[str, Any] = {}
    target: float | None = None


_JOBS_128 = {"window": 128}
CASES = (
    _Case(name="Meta, mlp", seat="meta", network="mlp", runtime="native", target=5.0),
    _Case(
        name="Pick, kernel, 128 jobs",
        seat="pick",
        network="kernel",
        runtime="native",
        options=_JOBS_128,
        target=25.0,
    ),
    _Case(
        name="Pick, attention, 64 jobs",
        seat="pick",
        network="attention",
        runtime="onnxruntime",
        target=150.0,
    ),
    _Case(name="Pick, kernel, 64 jobs", seat="pick", network="kernel", runtime="onnxruntime"),
    _Case(name="Pick, kernel, 64 jobs", seat="pick", network="kernel", runtime="torch"),
    _Case(name="Place, hosts, 8 nodes", seat="place", network="hosts", runtime="onnxruntime"),
    *(
        _Case(name=name, seat=seat, network=network, runtime="native", hidden=hidden)
        for name, seat, network in (
            ("Meta, mlp", "meta", "mlp"),
            ("Pick, kernel, 64 jobs", "pick", "kernel"),
        )
        for hidden in WIDTHS
    ),
)


class NetSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """How long one decision of a network takes."""

    case: str
    network: str
    hidden: tuple[int, ...]
    runtime: str
    numbers: int
    """Numbers in an observation."""
    actions: int
    parameters: int
    p50_us: float
    p99_us: float
    target_us: float | None
    """Target of the median."""
    meets_target: bool | None
    """None = there is no target, or too few calls to tell."""


def measure_nets(
    *, quick: bool, report: Callable[[int, int, str], None] = lambda *_: None
) -> Iterator[NetSpeed]:
    """Yield how long decisions take, case by case.

    Raises:
        MissingExtraError: torch, onnx or onnxruntime is not installed.
    """
    from berthline.errors import MissingExtraError

    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", "train", "berthline bench nets") from None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for number, case in enumerate(CASES):
            report(number, len(CASES), f"{case.name}, {case.runtime}")
            yield _measure(case, quick=quick)
    finally:
        torch.set_num_threads(threads)


def _measure(case: _Case, *, quick: bool) -> NetSpeed:
    import torch

    from berthline.learn.networks.networks import Network, NetworkConfig
    from berthline.learn.training.environments import Environments

    layout = Environments(case.seat, num=1, seed=SEED, options=case.options).layout
    torch.manual_seed(SEED)
    network = Network(layout, NetworkConfig(kind=case.network, hidden=case.hidden), gain=1.0)
    draws = np.random.Generator(np.random.Philox(SEED))
    states = draws.standard_normal((64, layout.size)).astype(np.float32)
    mask = np.ones(layout.actions, np.bool_)
    choose = _chooser(case.runtime, network, layout)
    found = []
    for _ in range(QUICK_ROUNDS if quick else ROUNDS):
        took = np.empty(QUICK_CALLS if quick else CALLS)
        for call in range(len(took)):
            state = states[call % len(states)]
            begin = time.perf_counter_ns()
            choose(state, mask)
            took[call] = time.perf_counter_ns() - begin
        found.append(np.percentile(took, (50, 99)) / 1e3)
    p50, p99 = min(found, key=lambda round_: float(round_[0])).tolist()
    is_judged = case.target is not None and not quick
    return NetSpeed(
        case=case.name,
        network=case.network,
        hidden=case.hidden,
        runtime=case.runtime,
        numbers=layout.size,
        actions=layout.actions,
        parameters=sum(tensor.numel() for tensor in network.parameters()),
        p50_us=p50,
        p99_us=p99,
        target_us=case.target,
        meets_target=p50 <= case.target if is_judged and case.target is not None else None,
    )


def _chooser(runtime: str, network: Any, layout: Any) -> Callable[[Any, Any], int]:
    """Return the function that makes a decision, as a run would call it."""
    if runtime == "native":
        from berthline.deploy.native_policy import NativePolicy

        tensors = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
        return NativePolicy(network.config.kind, tensors, layout).choose
    if runtime == "onnxruntime":
        from berthline.deploy.export_onnx import to_onnx
        from berthline.deploy.onnx_policy import choose_by, open_session

        session = open_session(to_onnx(network, layout), where=network.config.kind)
        return lambda state, mask: choose_by(session, state, mask)
    from berthline.deploy.torch_policy import best_by

    return lambda state, mask: best_by(network, state, mask)


def show_nets(speeds: list[NetSpeed]) -> None:
    """Print the speeds as text."""
    print("\nmicroseconds per decision, called from Python, one thread, all rows filled:\n")
    table = new_table("policy", "runs in", "hidden", "parameters", "p50", "p99", "target p50")
    for speed in speeds:
        target = "" if speed.target_us is None else f"{speed.target_us:g}"
        if speed.meets_target is not None:
            target += " met" if speed.meets_target else " missed"
        table.add_row(
            speed.case,
            speed.runtime,
            ", ".join(map(str, speed.hidden)),
            f"{speed.parameters:,}",
            f"{speed.p50_us:.1f}",
            f"{speed.p99_us:.1f}",
            target,
        )
    print_table(table)
