"""Learned policies as schedulers: the log they produce, what fits, and what is refused."""

import json
import shutil

import numpy as np
import pytest
import torch
from tests.learn.made_policies import save_constant, save_policy, save_shortest_first, write

import berthline as bl
from berthline.cli.main import main
from berthline.errors import ConfigError, PolicyError
from berthline.learn.networks.networks import NetworkConfig
from berthline.policies.learned import Learned
from berthline.policies.scheduler import Scheduler

torch.set_num_threads(1)
CLUSTER = "uniform:4x8:V100"
SHORTEST = {"features": {"jobs": ["estimate / 100000"]}, "window": 256, "cluster": CLUSTER}


def _workload(jobs=200, cluster=CLUSTER, seed=3):
    return bl.generate(
        "synthetic", cluster=bl.Cluster.parse(cluster), jobs=jobs, load=1.2, seed=seed
    )


def test_a_policy_that_imitates_a_heuristic_gives_its_log(tmp_path):
    save_shortest_first(tmp_path / "run", SHORTEST)
    learned = bl.simulate(_workload(), CLUSTER, str(tmp_path / "run"))
    rule = bl.simulate(_workload(), CLUSTER, "sjf+skip@best-fit")
    assert learned.metrics().log_sha256 == rule.metrics().log_sha256
    assert learned.metrics() == rule.metrics()
    assert np.isinf(learned.log.horizon)


def test_with_failures_refusals_and_a_seed_too(tmp_path):
    save_shortest_first(tmp_path / "run", SHORTEST)
    conditions = {"mtbf": 40000, "mttr": 3000, "refusal_rate": 0.05, "restart": 20}
    for seed in (0, 7, 123456):
        runs = [
            bl.simulate(_workload(), CLUSTER, text, seed=seed, conditions=conditions)
            for text in (str(tmp_path / "run"), "sjf+skip@best-fit")
        ]
        assert runs[0].metrics() == runs[1].metrics()
        assert (runs[0].log.kind == runs[1].log.kind).all()


@pytest.mark.parametrize("kind", ["mlp", "kernel", "attention"])
def test_a_gate_that_is_always_open_gives_the_log_of_the_base_scheduler(tmp_path, kind):
    options = {"order": "sjf", "discipline": "easy", "cluster": CLUSTER, "episode_jobs": 32}
    save_constant(tmp_path / "run", "gate", options, 1, kind)
    runs = [
        bl.simulate(_workload(), CLUSTER, text)
        for text in (str(tmp_path / "run"), "sjf+easy@best-fit")
    ]
    assert runs[0].metrics() == runs[1].metrics()


def test_a_meta_policy_that_always_chooses_one_scheduler_is_that_one(tmp_path):
    options = {"schedulers": ["sjf+easy", "fcfs+easy"], "cluster": CLUSTER}
    save_constant(tmp_path / "run", "meta", options, 0, "mlp")
    runs = [bl.simulate(_workload(), CLUSTER, text) for text in (str(tmp_path / "run"), "sjf+easy")]
    assert runs[0].metrics().jct == runs[1].metrics().jct


@pytest.mark.parametrize("kind", ["kernel", "attention", "cross", "hosts"])
def test_networks_of_rows_run_on_clusters_with_other_numbers_of_nodes(tmp_path, kind):
    save_policy(tmp_path / "run", "place", {}, NetworkConfig(kind=kind, hidden=(8, 8), heads=2))
    for cluster in ("uniform:2x8:V100", "uniform:11x4:V100"):
        jobs = _workload(40, cluster)
        assert bl.simulate(jobs, cluster, str(tmp_path / "run")).metrics().jobs.completed == 40


def test_a_network_of_fixed_size_is_refused_on_another_cluster(tmp_path):
    options = {"cluster": CLUSTER}
    save_policy(tmp_path / "run", "pick", options, NetworkConfig(kind="mlp", hidden=(8,)))
    bl.simulate(_workload(20), CLUSTER, str(tmp_path / "run"))
    with pytest.raises(ConfigError, match=r"fixed size.*\n?.*") as caught:
        bl.simulate(_workload(20), "uniform:5x8:V100", str(tmp_path / "run"))
    assert "shapes.nodes: (4, 3) against (5, 3)" in caught.value.expected
    assert "other than mlp" in caught.value.hint


def test_other_knowledge_is_refused(tmp_path):
    save_policy(tmp_path / "run", "pick", {}, NetworkConfig(hidden=(8,)))
    with pytest.raises(PolicyError, match="trained with knowledge 'estimate', not 'exact'"):
        bl.simulate(_workload(20), CLUSTER, str(tmp_path / "run"), knowledge="exact")
    assert Scheduler.parse(str(tmp_path / "run")).needs_run_times


def test_no_other_simulator_or_order(tmp_path):
    save_policy(tmp_path / "run", "pick", {}, NetworkConfig(hidden=(8,)))
    run = str(tmp_path / "run")
    with pytest.raises(ConfigError, match="native simulator"):
        bl.simulate(_workload(20), CLUSTER, run, simulator="reference")
    with pytest.raises(PolicyError, match="with a learned policy"):
        Scheduler.parse(run, gate="free_gpus")


def test_the_text_has_the_hash_and_a_changed_policy_is_noticed(tmp_path):
    run = tmp_path / "run"
    network = save_policy(run, "pick", {}, NetworkConfig(hidden=(8,)))
    text = str(Scheduler.parse(str(run)))
    path, _, digits = text.partition("#")
    learned = Learned.find(text)
    assert (path, len(digits)) == (str(run), 12)
    assert learned is not None
    assert learned.sha256.startswith(digits)
    assert str(Scheduler.parse(text)) == str(Scheduler.parse(f"{run}/")) == text
    with torch.no_grad():
        network.head[0].bias += 1.0
    write(run, network, {}, step=2)
    assert str(Scheduler.parse(str(run))) != text
    with pytest.raises(PolicyError, match="the policy has the hash"):
        Scheduler.parse(text)


def test_a_checkpoint_is_a_scheduler_and_an_unfinished_or_broken_run_says_so(tmp_path):
    run = tmp_path / "run"
    save_policy(run, "pick", {}, NetworkConfig(hidden=(8,)))
    [inner] = (run / "checkpoints").iterdir()
    one, other = (bl.simulate(_workload(20), CLUSTER, str(path)) for path in (run, inner))
    assert one.metrics() == other.metrics()
    (inner / "checkpoint.json").write_text("{}")
    with pytest.raises(ConfigError, match="no checksum"):
        Scheduler.parse(str(run))
    shutil.rmtree(inner)
    with pytest.raises(PolicyError, match="no checkpoint yet"):
        Scheduler.parse(str(run))
    assert Learned.find(str(tmp_path)) is None


def test_sim_and_compare_take_a_run_in_processes_and_again(tmp_path, capsys):
    run = tmp_path / "run"
    save_shortest_first(run, SHORTEST)
    common = ["synthetic", "--jobs", "120", "--load", "1.2", "--cluster", CLUSTER, "--json"]
    assert main(["sim", *common, "--scheduler", str(run)]) == 0
    assert json.loads(capsys.readouterr().out)["scheduler"].startswith(f"{run}#")
    out = ["--out", str(tmp_path / "compared"), "--workers", "2", "--windows", "4"]
    schedulers = f"fcfs,sjf+skip@best-fit,{run}"
    assert main(["compare", *common, *out, "--schedulers", schedulers]) == 0
    found = json.loads(capsys.readouterr().out)
    means = {s["scheduler"]: s["metrics"]["jct"]["mean"] for s in found["schedulers"]}
    assert means[str(run)] == means["sjf+skip@best-fit"]


def test_eval_judges_a_run_on_what_it_was_trained_on(tmp_path, capsys):
    run = tmp_path / "run"
    save_shortest_first(run, {**SHORTEST, "episode_jobs": 40, "load": 1.5})
    arguments = ["--against", "fcfs+skip", "--windows", "4", "--workers", "1", "--json"]
    assert main(["eval", str(run), *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["run"] == str(Scheduler.parse(str(run)))
    cell = found["cells"][0]
    assert (cell["cluster"], cell["load"], cell["window_jobs"][0]) == (CLUSTER, 1.5, 40)


def test_a_policy_that_is_never_asked_lets_the_base_scheduler_run(tmp_path):
    save_constant(tmp_path / "run", "gate", {"cluster": CLUSTER}, 0, "mlp")
    alone = _workload(1)
    runs = [bl.simulate(alone, CLUSTER, text) for text in (str(tmp_path / "run"), "fcfs@best-fit")]
    assert runs[0].metrics() == runs[1].metrics()


def test_the_path_of_a_run_is_a_scheduler(tmp_path):
    run = tmp_path / "run"
    save_policy(run, "pick", {}, NetworkConfig(hidden=(8,)))
    one, other = (bl.simulate(_workload(20), CLUSTER, given) for given in (run, str(run)))
    assert one.metrics() == other.metrics()
    compared = bl.compare(_workload(20), CLUSTER, ["fcfs", run])
    assert [found.scheduler for found in compared.schedulers] == ["fcfs", str(run)]


def test_a_run_of_several_seeds_names_the_runs_inside(tmp_path, capsys):
    run = tmp_path / "s2"
    for seed in (4, 5):
        save_policy(run / f"seed-{seed}", "pick", {}, NetworkConfig(hidden=(8,)))
    (run / "meta.json").write_text('{"verb": "train"}')
    (run / "config.toml").write_text("")
    (run / "summary.json").write_text('{"seeds": [4, 5]}')
    with pytest.raises(PolicyError, match="several seeds") as caught:
        Scheduler.parse(run)
    assert f"{run}/seed-4, {run}/seed-5" in caught.value.expected
    for words in (["eval", str(run)], ["sim", "synthetic", "--scheduler", str(run)]):
        assert main(words) == 2
        assert str(run / "seed-4") in capsys.readouterr().err
    assert Scheduler.parse(run / "seed-4").learned is not None
