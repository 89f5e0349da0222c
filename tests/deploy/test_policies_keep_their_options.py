"""What a policy was trained with goes with it, into every verb that runs policies."""

import json
from pathlib import Path

import pytest

import berthline as bl
from berthline.cli.main import main
from berthline.learn.training.train import train
from berthline.runs.run_layout import CHECKPOINTS

DIALS = {"run_times": "uniform", "run_low": 500, "run_high": 2000, "longest": 10_000}
SET = [word for key, value in DIALS.items() for word in ("--set", f"{key}={value}")]
JOBS = ["--knowledge", "exact", "--seed", "1"]
CLUSTER = ["--cluster", "uniform:1x8:V100"]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """Return a policy whose columns were divided by a dial's 3,000 s, instead of 10,000."""
    out = tmp_path_factory.mktemp("dials") / "run"
    options = {"dials": DIALS | {"longest": 3000}, "episode_jobs": 8, "window": 8}
    small = {"rollout": 4, "minibatches": 1, "epochs": 1}
    train(
        "ppo",
        preset="lookahead",
        env_options=options,
        config=small,
        steps=8,
        envs=2,
        episodes=2,
        out=out,
    )
    return str(out)


def test_the_columns_of_its_training_are_stored(policy):
    (facts,) = (Path(policy) / CHECKPOINTS).glob("best-*/*.json")
    stored = json.loads(facts.read_bytes())["environment"]
    assert stored["features"]["jobs"][0] == "estimate / 3000"
    assert stored["lookahead_seconds"] == 3000
    assert stored["window"] == 8
    assert not {"preset", "workload", "cluster", "dials"} & set(stored)


@pytest.mark.parametrize(
    "argv",
    [
        ["sim", "heavy-tailed", *CLUSTER, *SET, "--jobs", "40", "--scheduler", "POLICY", *JOBS],
        ["sim", "synthetic", *CLUSTER, "--jobs", "40", "--scheduler", "POLICY", *JOBS],
        [
            *("compare", "heavy-tailed", *CLUSTER, *SET, "--jobs", "20", "--windows", "2", *JOBS),
            *("--schedulers", "POLICY,sjf+skip"),
        ],
        ["eval", "POLICY", "--against", "sjf+skip", "--window-jobs", "20", "--windows", "2"],
        [
            *("explain", "longest", "heavy-tailed", *CLUSTER, *SET, "--jobs", "40", *JOBS),
            *("--scheduler", "POLICY"),
        ],
    ],
    ids=["sim", "sim of other jobs", "compare", "eval", "explain"],
)
def test_every_verb_runs_it(policy, argv):
    assert main([word.replace("POLICY", policy) for word in argv]) == 0


def test_it_decides_on_snapshots_and_goes_on_from_them(policy):
    cluster = bl.Cluster.parse(CLUSTER[1])
    jobs = bl.generate("heavy-tailed", cluster=cluster, jobs=30, load=1e6, seed=2, **DIALS)
    whole = bl.simulate(jobs, cluster, policy, knowledge="exact")
    snapshot = whole.snapshot(4000.0)
    bl.decide(snapshot)
    resumed = bl.resume(snapshot)
    rows = resumed.log.time > 4000.0
    assert resumed.log.time[rows].tolist() == whole.log.time[whole.log.time > 4000.0].tolist()


def test_an_exported_policy_takes_them_along(policy, tmp_path):
    exported = tmp_path / "policy.onnx"
    assert main(["export", "onnx", policy, "--out", str(exported)]) == 0
    cluster = bl.Cluster.parse(CLUSTER[1])
    jobs = bl.generate("heavy-tailed", cluster=cluster, jobs=30, seed=2, **DIALS)
    logs = [
        bl.simulate(jobs, cluster, text, knowledge="exact").metrics().log_sha256
        for text in (policy, str(exported))
    ]
    assert logs[0] == logs[1]
