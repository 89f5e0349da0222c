"""Berthline: simulate, learn and run GPU-cluster scheduling.

The public names below load on first use, so that `import berthline` costs almost nothing and
never imports a dependency the program does not use.

Example:
    >>> import berthline as bl
    >>> cluster = bl.Cluster.uniform(nodes=8, gpus_per_node=8)
    >>> workload = bl.generate("synthetic", cluster=cluster, jobs=1000, load=0.9, seed=42)
    >>> result = bl.simulate(workload, cluster, "sjf+easy@best-fit", knowledge="estimate")
    >>> result.metrics().jobs.completed
    1000
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.when_imported import await_gymnasium, connect_policies

if TYPE_CHECKING:
    from berthline import environments as environments
    from berthline import statistics as statistics
    from berthline import testing as testing
    from berthline import training as training
    from berthline.deploy.export_policy import export_policy as export_policy
    from berthline.deploy.given_policy import Policy as Policy
    from berthline.deploy.onnx_policy import OnnxPolicy as OnnxPolicy
    from berthline.env.columns import register_columns as register_columns
    from berthline.env.presets import register_preset as register_preset
    from berthline.env.rewards import register_reward as register_reward
    from berthline.errors import BerthlineError as BerthlineError
    from berthline.evaluate.bounds import jct_lower_bound as jct_lower_bound
    from berthline.evaluate.compare.compare import compare as compare
    from berthline.evaluate.compare.evaluate import evaluate as evaluate
    from berthline.evaluate.explain.explain import explain as explain
    from berthline.evaluate.explain.unblock import unblock as unblock
    from berthline.evaluate.forecast.calibrate import calibrate as calibrate
    from berthline.evaluate.forecast.forecast import forecast as forecast
    from berthline.evaluate.metrics.energy import energy_cost as energy_cost
    from berthline.evaluate.metrics.energy_rate import EnergyRate as EnergyRate
    from berthline.evaluate.optimum import jct_optimum as jct_optimum
    from berthline.evaluate.trace_checks.card import trace_card as trace_card
    from berthline.evaluate.trace_checks.validate import validate_trace as validate_trace
    from berthline.evaluate.whatif.whatif import whatif as whatif
    from berthline.learn.algorithms.algorithm_table import register_algorithm as register_algorithm
    from berthline.learn.networks.networks import register_network as register_network
    from berthline.learn.training.train import train as train
    from berthline.learn.tuning.trials import sweep as sweep
    from berthline.learn.tuning.tune import tune as tune
    from berthline.model.cluster import Cluster as Cluster
    from berthline.model.cluster import NodeGroup as NodeGroup
    from berthline.model.limits import Outage as Outage
    from berthline.model.schedule import Schedule as Schedule
    from berthline.model.snapshot import Snapshot as Snapshot
    from berthline.model.workload import Workload as Workload
    from berthline.policies.orders import register_order as register_order
    from berthline.runs.open_run import open_run as open_run
    from berthline.runs.resume_run import resume as resume
    from berthline.runs.resume_run import write_snapshot as write_snapshot
    from berthline.runs.simulate_run import simulate as simulate
    from berthline.sim.simulate import Result as Result
    from berthline.sim.snapshots.decide import Decision as Decision
    from berthline.sim.snapshots.decide import decide as decide
    from berthline.sim.snapshots.live import RunningJob as RunningJob
    from berthline.sim.snapshots.live import snapshot_of as snapshot_of
    from berthline.traces.cluster_argument import resolve_cluster as resolve_cluster
    from berthline.traces.generators.synthetic import generate as generate
    from berthline.traces.load import load_trace as load_trace
    from berthline.traces.node_lists.read_cluster import read_cluster as read_cluster
    from berthline.traces.workload_argument import resolve_workload as resolve_workload

_HOME = {
    "BerthlineError": "berthline.errors",
    "Cluster": "berthline.model.cluster",
    "Decision": "berthline.sim.snapshots.decide",
    "EnergyRate": "berthline.evaluate.metrics.energy_rate",
    "NodeGroup": "berthline.model.cluster",
    "OnnxPolicy": "berthline.deploy.onnx_policy",
    "Outage": "berthline.model.limits",
    "Policy": "berthline.deploy.given_policy",
    "Result": "berthline.sim.simulate",
    "RunningJob": "berthline.sim.snapshots.live",
    "Schedule": "berthline.model.schedule",
    "Snapshot": "berthline.model.snapshot",
    "Workload": "berthline.model.workload",
    "compare": "berthline.evaluate.compare.compare",
    "decide": "berthline.sim.snapshots.decide",
    "energy_cost": "berthline.evaluate.metrics.energy",
    "calibrate": "berthline.evaluate.forecast.calibrate",
    "evaluate": "berthline.evaluate.compare.evaluate",
    "explain": "berthline.evaluate.explain.explain",
    "export_policy": "berthline.deploy.export_policy",
    "forecast": "berthline.evaluate.forecast.forecast",
    "generate": "berthline.traces.generators.synthetic",
    "jct_lower_bound": "berthline.evaluate.bounds",
    "jct_optimum": "berthline.evaluate.optimum",
    "load_trace": "berthline.traces.load",
    "open_run": "berthline.runs.open_run",
    "read_cluster": "berthline.traces.node_lists.read_cluster",
    "register_algorithm": "berthline.learn.algorithms.algorithm_table",
    "register_columns": "berthline.env.columns",
    "register_network": "berthline.learn.networks.networks",
    "register_order": "berthline.policies.orders",
    "register_preset": "berthline.env.presets",
    "register_reward": "berthline.env.rewards",
    "resolve_cluster": "berthline.traces.cluster_argument",
    "resolve_workload": "berthline.traces.workload_argument",
    "resume": "berthline.runs.resume_run",
    "simulate": "berthline.runs.simulate_run",
    "snapshot_of": "berthline.sim.snapshots.live",
    "sweep": "berthline.learn.tuning.trials",
    "trace_card": "berthline.evaluate.trace_checks.card",
    "train": "berthline.learn.training.train",
    "unblock": "berthline.evaluate.explain.unblock",
    "tune": "berthline.learn.tuning.tune",
    "validate_trace": "berthline.evaluate.trace_checks.validate",
    "write_snapshot": "berthline.runs.resume_run",
    "whatif": "berthline.evaluate.whatif.whatif",
}
_NAMESPACES = ("environments", "statistics", "testing", "training")
"""Public names that few programs need, by topic."""

__all__ = sorted([*_HOME, *_NAMESPACES])

await_gymnasium()
connect_policies()


def __getattr__(name: str) -> object:
    import importlib

    if name == "__version__":
        from importlib.metadata import version

        return version("berthline")
    if name == "evaluate":  # a callable package; its docstring says why
        return importlib.import_module("berthline.evaluate")
    if name in _NAMESPACES:
        return importlib.import_module(f"berthline.{name}")
    if name in _HOME:
        # Kept: programs that decide in a loop would look it up each time.
        found = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
        return found
    raise AttributeError(f"module 'berthline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
