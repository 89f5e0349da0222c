"""Networks written as policies: for the native core where it can, as ONNX otherwise."""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import DQN, PPO
from torch import nn

import berthline as bl
from berthline.deploy.run_policy import environment_of, load_policy
from berthline.env.observation_layout import ObservationLayout
from berthline.errors import ConfigError
from berthline.learn.networks.networks import Network, NetworkConfig
from berthline.policies.learned import Learned

CLUSTER = "uniform:4x4:V100"
SMALL = {"cluster": CLUSTER, "load": 1.3, "episode_jobs": 50, "window": 8, "observation": "flat"}


@pytest.fixture(scope="module")
def env():
    return gym.make("berthline/Pick-v0", **SMALL)


def sizes(env):
    return env.observation_space.shape[0], int(env.action_space.n)


def sequence(env, *, activation=nn.ReLU, seed=0):
    torch.manual_seed(seed)
    size, actions = sizes(env)
    return nn.Sequential(
        nn.Sequential(nn.Flatten(), nn.Linear(size, 16), activation(), nn.Dropout(0.5)),
        nn.Linear(16, 12),
        activation(),
        nn.Linear(12, actions),
    )


def episode(env, module, seed=5):
    """Play an episode with a module; return its jobs and its log."""
    module.eval()
    observation, info = env.reset(seed=seed)
    over = False
    while not over:
        with torch.no_grad():
            scores = module(torch.from_numpy(observation)[None])
        scores = scores[0][..., 0] if isinstance(scores, tuple) else scores
        best = np.where(np.asarray(info["action_mask"], bool), scores[0].numpy(), -np.inf).argmax()
        observation, _, terminated, truncated, info = env.step(int(best))
        over = terminated or truncated
    return env.unwrapped.workload(), env.unwrapped.log()


def target_of(path, cluster=CLUSTER):
    """Return what runs an exported policy: the class."""
    learned = Learned.find(str(path))
    layout = environment_of(learned, bl.resolve_cluster(cluster), "estimate").layout
    return type(load_policy(learned, layout)).__name__


def networks(env):
    layout = ObservationLayout.of(env.unwrapped.plan)
    torch.manual_seed(3)
    yield "native core", "NativePolicy", sequence(env)
    for kind in ("kernel", "mlp"):
        config = NetworkConfig(kind=kind, hidden=(8, 8))
        yield "native core", "NativePolicy", Network(layout, config, gain=1.0)
    yield "onnxruntime", "OnnxPolicy", sequence(env, activation=nn.Tanh)
    yield "onnxruntime", "OnnxPolicy", Network(layout, NetworkConfig(kind="attention"), gain=1.0)


def test_an_exported_policy_takes_the_actions_of_its_network(env, tmp_path):
    for number, (runs_in, target, module) in enumerate(networks(env)):
        module.train()
        found = bl.export_policy(module, env, tmp_path / str(number))
        assert module.training
        assert found.runs_in == runs_in
        assert (found.path.suffix == ".onnx") == (runs_in == "onnxruntime")
        assert target_of(found.path) == target
        workload, log = episode(env, module)
        assert bl.simulate(workload, CLUSTER, found.path).log.sha256() == log.sha256()
        assert bl.simulate(workload, CLUSTER, bl.Policy(module, env)).log.sha256() == log.sha256()


def test_the_statement_says_what_was_written(env, tmp_path):
    native = bl.export_policy(sequence(env), env, tmp_path / "a").statement
    assert native.startswith("a policy for the native core, without torch: mlp with layers 16,12;")
    other = bl.export_policy(sequence(env, activation=nn.Tanh), env, tmp_path / "b").statement
    assert "because the native core runs linear layers with ReLU between them, not Tanh" in other
    assert "berthline[deploy]" in other
    asked = bl.export_policy(sequence(env), env, tmp_path / "c.onnx")
    assert asked.path == tmp_path / "c.onnx"
    assert asked.statement.startswith("an ONNX file, as asked")


def test_it_is_evaluated_and_compared_like_any_scheduler(env, tmp_path):
    path = bl.export_policy(sequence(env), env, tmp_path / "mine").path
    found = bl.evaluate(path, windows=2, against=["fcfs"])
    assert found.evaluation.report.cluster == CLUSTER
    assert found.evaluation.report.window_jobs == [50, 50]
    both = bl.compare("synthetic", CLUSTER, ["fcfs", path], jobs=40)
    assert len(both.schedulers) == 2


def test_models_of_stable_baselines_with_flat_observations(tmp_path):
    env = gym.make("berthline/Pick-v0", **SMALL)
    relu = {"activation_fn": nn.ReLU, "net_arch": [16]}
    ppo = PPO("MlpPolicy", env, policy_kwargs=relu, seed=1)
    dqn = DQN("MlpPolicy", env, policy_kwargs={"net_arch": [16]}, buffer_size=10, seed=1)
    jobs = bl.generate("synthetic", cluster=CLUSTER, jobs=60, load=1.3, seed=2)
    for name, model in (("ppo", ppo), ("dqn", dqn)):
        found = bl.export_policy(model, env, tmp_path / name)
        assert found.runs_in == "native core"
        exported = bl.simulate(jobs, CLUSTER, found.path)
        # The model brings the environment that it was trained in.
        asked = bl.simulate(jobs, CLUSTER, model)
        assert exported.log.sha256() == asked.log.sha256()
        assert asked.policy is not None
        assert "a model of Stable-Baselines3" in asked.policy


def test_options_of_the_environment_go_with_it(tmp_path):
    options = {"semantics": "wait", "discipline": "easy", "features": {"jobs": ["wait / 3600"]}}
    env = gym.make("berthline/Pick-v0", **SMALL, **options)
    path = bl.export_policy(sequence(env), env, tmp_path / "mine").path
    facts = json.loads((path / "checkpoint.json").read_text())
    assert facts["config"]["options"]["semantics"] == "wait"
    assert facts["environment"]["features"]["jobs"] == ["wait / 3600"]
    jobs = bl.generate("synthetic", cluster=CLUSTER, jobs=30, load=1.3, seed=2)
    own = gym.make(
        "berthline/Pick-v0", workload=jobs, **{**SMALL, "load": None, "episode_jobs": 30}, **options
    )
    with_objects = bl.export_policy(sequence(own), own, tmp_path / "objects").path
    assert bl.simulate(jobs, CLUSTER, with_objects).metrics().jobs.completed == 30


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda env: print, "a function cannot be written"),
        (lambda env: nn.Linear(3, 4), "the module failed: RuntimeError"),
        (lambda env: nn.Linear(sizes(env)[0], 4), r"scores have shape \(2, 4\)"),
    ],
)
def test_what_cannot_be_exported(env, tmp_path, given, message):
    with pytest.raises(ConfigError, match=message):
        bl.export_policy(given(env), env, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_nothing_is_replaced_unless_asked(env, tmp_path):
    bl.export_policy(sequence(env), env, tmp_path / "mine")
    with pytest.raises(ConfigError, match="already exists"):
        bl.export_policy(sequence(env, seed=1), env, tmp_path / "mine")
    bl.export_policy(sequence(env, seed=1), env, tmp_path / "mine", force=True)


def test_a_model_with_tables_is_not_a_file(tmp_path):
    env = gym.make("berthline/Pick-v0", **{**SMALL, "observation": "dict"})
    with pytest.raises(ConfigError, match='observation="flat"'):
        bl.export_policy(PPO("MultiInputPolicy", env), env, tmp_path / "mine")
