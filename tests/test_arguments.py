"""CLUSTER and WORKLOAD arguments: every form means the same at every entry point."""

from __future__ import annotations

import gzip
import itertools
import json
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import pytest

import berthline as bl
from berthline.cli.main import main
from berthline.traces.formats.parquet import write_parquet
from berthline.traces.formats.swf_writer import write_swf
from berthline.traces.generators.fitted.fit import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"n{number},64000,262144,{gpus},V100M32\n" for number, gpus in enumerate((2, 2, 8))
)
MACHINES = "0,1,0,platform,0.5,0.5\n0,2,0,platform,1,1\n"
TOML = "[[nodes]]\ncount = 3\ngpus = 4\n"
JOBS = bl.generate("synthetic", cluster="uniform:3x4:V100", jobs=40, seed=1)


def _file(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _gzip(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()))
    return path


def _json(capsys: Any, *argv: str) -> Any:
    assert main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def _pairs(forms: Iterable[str], doors: Collection[str]) -> list[tuple[str, str]]:
    """Return every form with every entry point; commands take texts only."""
    pairs = itertools.product(forms, doors)
    return [(form, door) for form, door in pairs if form != "object" or "berthline" not in door]


CLUSTERS: dict[str, tuple[Callable[[Path], Any], int]] = {
    "object": (lambda _: bl.Cluster.uniform(nodes=3, gpus_per_node=4), 12),
    "preset": (lambda _: "drl-scheduler", 56),
    "shape": (lambda _: "uniform:3x4:V100", 12),
    "TOML text": (lambda folder: str(_file(folder / "lab.toml", TOML)), 12),
    "TOML path": (lambda folder: _file(folder / "lab.toml", TOML), 12),
    "node list text": (lambda folder: str(_file(folder / "nodes.csv", NODES)), 12),
    "node list path": (lambda folder: _file(folder / "nodes.csv", NODES), 12),
    "node list gzip": (lambda folder: _gzip(folder / "nodes.csv.gz", NODES), 12),
    "directory": (lambda folder: _file(folder / "machine_events.csv", MACHINES).parent, 12),
}
"""Every form of a CLUSTER argument, and its GPUs."""


def _compared(cluster: Any, _: Any) -> str:
    return bl.compare(JOBS, cluster, ["fcfs"]).cluster


def _generated(cluster: Any, _: Any) -> int:
    drawn = bl.generate("poisson", cluster=cluster, jobs=50, load=1.0, seed=3)
    unit = bl.generate("poisson", cluster="uniform:1x1", jobs=50, load=1.0, seed=3)
    return round(float(unit.submit[-1] / drawn.submit[-1]))  # the GPUs that the load refers to


def _env(cluster: Any, _: Any) -> int:
    env = gym.make("berthline/Pick-v0", cluster=cluster, episode_jobs=9)
    return int(env.unwrapped.plan.cluster.total_gpus)  # type: ignore[attr-defined]


def _vec(cluster: Any, _: Any) -> int:
    envs = gym.make_vec("berthline/Pick-v0", num_envs=2, cluster=cluster, episode_jobs=9)
    return int(envs.unwrapped.plan.cluster.total_gpus)  # type: ignore[attr-defined]


def _sim(cluster: Any, capsys: Any) -> str:
    return str(_json(capsys, "sim", "synthetic", "--jobs=5", f"--cluster={cluster}")["cluster"])


def _compare(cluster: Any, capsys: Any) -> str:
    given = ("synthetic", "--jobs=5", f"--cluster={cluster}", "--schedulers=fcfs")
    return str(_json(capsys, "compare", *given)["cluster"])


CLUSTER_DOORS: dict[str, Callable[[Any, Any], int | str]] = {
    "resolve_cluster": lambda cluster, _: bl.resolve_cluster(cluster).total_gpus,
    "simulate": lambda cluster, _: bl.simulate(JOBS, cluster, "fcfs").cluster.total_gpus,
    "compare": _compared,
    "generate": _generated,
    "trace_card": lambda cluster, _: bl.trace_card(JOBS, cluster).cluster.gpus,  # type: ignore[union-attr]
    "gym.make": _env,
    "gym.make_vec": _vec,
    "berthline sim": _sim,
    "berthline compare": _compare,
}
"""Entry points that take a CLUSTER argument; each returns its name or its GPUs."""


@pytest.mark.parametrize(("form", "door"), _pairs(CLUSTERS, CLUSTER_DOORS))
def test_cluster(form: str, door: str, tmp_path: Path, capsys: Any) -> None:
    make, gpus = CLUSTERS[form]
    cluster = make(tmp_path)
    found = CLUSTER_DOORS[door](cluster, capsys)
    assert found == (gpus if isinstance(found, int) else bl.resolve_cluster(cluster).name)


@pytest.mark.parametrize("door", CLUSTER_DOORS)
def test_cluster__an_unknown_name_is_refused(door: str, capsys: Any) -> None:
    if door.startswith("berthline "):
        verb = door.removeprefix("berthline ")
        assert main([verb, "synthetic", "--cluster", "nonesuch"]) == 2
        assert "unknown cluster 'nonesuch'" in capsys.readouterr().err
        return
    with pytest.raises(bl.BerthlineError, match="unknown cluster 'nonesuch'"):
        CLUSTER_DOORS[door]("nonesuch", capsys)


def _trace(folder: Path, write: Callable[[bl.Workload, Path], object], name: str) -> Path:
    write(JOBS, folder / name)
    return folder / name


def _fitted(folder: Path) -> Path:
    jobs = bl.generate("synthetic", cluster="uniform:3x4:V100", jobs=400, seed=1)
    fit(jobs).save(folder / "jobs.fit.json")
    return folder / "jobs.fit.json"


WORKLOADS: dict[str, tuple[Callable[[Path], Any], int]] = {
    "object": (lambda _: JOBS, 40),
    "generator": (lambda _: "poisson", 1000),
    "SWF text": (lambda folder: str(_trace(folder, write_swf, "jobs.swf")), 40),
    "SWF path": (lambda folder: _trace(folder, write_swf, "jobs.swf"), 40),
    "parquet": (lambda folder: _trace(folder, write_parquet, "jobs.parquet"), 40),
    "fitted generator": (_fitted, 400),
}
"""Every form of a WORKLOAD argument, and its jobs."""


def _env_jobs(workload: Any, jobs: int) -> int:
    env = gym.make("berthline/Pick-v0", workload=workload, episode_jobs=min(jobs, 40), load=None)
    env.reset(seed=1)
    drawn = len(env.unwrapped.workload())  # type: ignore[attr-defined]
    return jobs if drawn == min(jobs, 40) else drawn


def _vec_jobs(workload: Any, jobs: int) -> int:
    envs = gym.make_vec(
        "berthline/Pick-v0", num_envs=2, workload=workload, episode_jobs=min(jobs, 40), load=None
    )
    envs.reset(seed=1)
    drawn = len(envs.unwrapped.workload(1))  # type: ignore[attr-defined]
    return jobs if drawn == min(jobs, 40) else drawn


WORKLOAD_DOORS: dict[str, Callable[[Any, int], int]] = {
    "resolve_workload": lambda given, _: len(bl.resolve_workload(given, cluster="uniform:3x4")),
    "simulate": lambda given, _: len(bl.simulate(given, "uniform:3x4", "fcfs").workload),
    "compare": lambda given, _: bl.compare(given, "uniform:3x4", ["fcfs"]).window_jobs[0],
    "gym.make": _env_jobs,
    "gym.make_vec": _vec_jobs,
}
"""Entry points that take a WORKLOAD argument; each returns its jobs."""


@pytest.mark.parametrize(
    ("form", "door"), _pairs(WORKLOADS, [*WORKLOAD_DOORS, "berthline sim", "berthline compare"])
)
def test_workload(form: str, door: str, tmp_path: Path, capsys: Any) -> None:
    make, jobs = WORKLOADS[form]
    given = make(tmp_path)
    if door in WORKLOAD_DOORS:
        assert WORKLOAD_DOORS[door](given, jobs) == jobs
    elif door == "berthline sim":
        assert _json(capsys, "sim", str(given))["jobs"]["submitted"] == jobs
    else:
        assert _json(capsys, "compare", str(given), "--schedulers=fcfs")["window_jobs"] == [jobs]
