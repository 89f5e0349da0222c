"""Networks in the native core: the same scores as torch, and runs without torch."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.learn.made_policies import save_policy

import berthline as bl
from berthline.deploy.export_onnx import random_states
from berthline.deploy.native_policy import TOLERANCE, NativePolicy, is_plain
from berthline.deploy.run_policy import load_policy
from berthline.deploy.torch_policy import TorchPolicy
from berthline.deploy.trained_policy import Trained, read_policy
from berthline.env.observation_layout import ObservationLayout
from berthline.learn.networks.networks import Network, NetworkConfig
from berthline.learn.training.environments import Environments
from berthline.policies.learned import Learned

torch.set_num_threads(1)
CLUSTER = "uniform:4x8:V100"
SEATS = ("pick", "place", "gate", "meta", "preempt", "backfill")


def _tensors(network):
    return {name: tensor.numpy() for name, tensor in network.state_dict().items()}


@pytest.mark.parametrize("seat", SEATS)
@pytest.mark.parametrize("kind", ["mlp", "kernel"])
@pytest.mark.parametrize("hidden", [(32, 16), (7,), (64, 20, 33)])
def test_scores_are_those_of_torch(seat, kind, hidden):
    options = {"cluster": CLUSTER, "window": 13, "running_window": 5, "lookahead": "cdf"}
    layout = Environments(seat, num=1, seed=0, options=options).layout
    torch.manual_seed(1)
    network = Network(layout, NetworkConfig(kind=kind, hidden=hidden), gain=1.0)
    policy = NativePolicy(kind, _tensors(network), layout)
    states = random_states(layout, 40)
    states[0] = 0.0
    with torch.no_grad():
        expected = network(torch.from_numpy(states))[0][..., 0].numpy()
    limit = TOLERANCE * np.abs(expected).max()
    for state, scores in zip(states, expected, strict=True):
        found = policy.scores(state)
        assert np.abs(found - scores).max() < limit
        mask = np.arange(len(scores)) % 3 != 1
        chosen = policy.choose(state, mask)
        assert mask[chosen]
        assert found[chosen] == found[mask].max()


@pytest.mark.parametrize("kind", ["mlp", "kernel"])
@pytest.mark.parametrize("hidden", [(32, 16), (7,)])
def test_regimes_are_those_of_torch(kind, hidden):
    layout = Environments("meta", num=1, seed=0, options={"cluster": CLUSTER, "window": 5}).layout
    torch.manual_seed(2)
    network = Network(layout, NetworkConfig(kind=kind, hidden=hidden), gain=1.0, num_regimes=3)
    with torch.no_grad():
        network.regimes.embedding.weight.normal_()
        network.regimes.mean.normal_()
        network.regimes.deviation.uniform_(0.5, 2.0)
    tensors = _tensors(network)
    assert is_plain(kind, tensors)
    policy = NativePolicy(kind, tensors, layout)
    plain = NativePolicy(
        kind, {k: v for k, v in tensors.items() if not k.startswith("regimes.")}, layout
    )
    states = random_states(layout, 40)
    with torch.no_grad():
        expected = network(torch.from_numpy(states))[0][..., 0].numpy()
    limit = TOLERANCE * np.abs(expected).max()
    for state, scores in zip(states, expected, strict=True):
        assert np.abs(policy.scores(state) - scores).max() < limit
    pairs = list(zip(states, expected, strict=True))
    assert any(np.abs(plain.scores(s) - e).max() > limit for s, e in pairs)
    with pytest.raises(ValueError, match="regimes do not fit"):
        NativePolicy(kind, {**tensors, "regimes.mean": np.zeros(1, np.float32)}, layout)


def test_scores_do_not_depend_on_what_was_asked_before():
    layout = Environments("pick", num=1, seed=0, options={"cluster": CLUSTER}).layout
    network = Network(layout, NetworkConfig(kind="kernel"), gain=1.0)
    policy = NativePolicy("kernel", _tensors(network), layout)
    states = random_states(layout, 8)
    first = [policy.scores(state) for state in states]
    again = [policy.scores(state) for state in states[::-1]][::-1]
    np.testing.assert_array_equal(first, again)


def test_networks_that_do_not_fit_are_refused():
    layout = Environments("pick", num=1, seed=0, options={"cluster": CLUSTER}).layout
    network = Network(layout, NetworkConfig(kind="kernel"), gain=1.0)
    tensors = _tensors(network)
    with pytest.raises(ValueError, match="layers do not fit"):
        NativePolicy("kernel", {**tensors, "head.0.weight": np.ones((16, 31), np.float32)}, layout)
    with pytest.raises(ValueError, match="differ in size"):
        NativePolicy("kernel", tensors, layout).scores(np.zeros(3, np.float32))
    assert not is_plain("attention", tensors)
    assert not is_plain("kernel", {**tensors, "support": np.ones(3)})


def _in_torch(policy: Trained, layout: ObservationLayout) -> TorchPolicy:
    return TorchPolicy(policy.network, policy.tensors, layout)


@pytest.mark.parametrize("kind", ["mlp", "kernel"])
def test_it_decides_as_torch_does(tmp_path, kind, monkeypatch):
    save_policy(tmp_path / "run", "pick", {"cluster": CLUSTER}, NetworkConfig(kind=kind))
    workload = bl.generate(
        "synthetic", cluster=bl.Cluster.parse(CLUSTER), jobs=80, load=1.5, seed=1
    )
    native = bl.simulate(workload, CLUSTER, str(tmp_path / "run"))
    learned = Learned.find(str(tmp_path / "run"))
    assert learned is not None
    assert isinstance(load_policy(learned, read_policy(learned).layout), NativePolicy)
    monkeypatch.setattr(
        "berthline.deploy.run_policy.load_policy",
        lambda learned, layout: _in_torch(read_policy(learned), layout),
    )
    assert native.metrics() == bl.simulate(workload, CLUSTER, str(tmp_path / "run")).metrics()


_WITHOUT = """
import sys
sys.modules["torch"] = None
import berthline as bl
cluster = bl.Cluster.parse("uniform:4x8:V100")
workload = bl.generate("synthetic", cluster=cluster, jobs=60, load=1.2, seed=3)
print(bl.simulate(workload, cluster, sys.argv[1]).metrics().log_sha256)
"""


@pytest.mark.parametrize("kind", ["mlp", "kernel", "attention"])
def test_plain_networks_run_without_torch_and_others_say_what_is_missing(tmp_path, kind):
    save_policy(tmp_path / "run", "pick", {"cluster": CLUSTER}, NetworkConfig(kind=kind))
    command = [sys.executable, "-c", _WITHOUT, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if kind == "attention":
        assert "needs the package 'torch'" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    cluster = bl.Cluster.parse(CLUSTER)
    workload = bl.generate("synthetic", cluster=cluster, jobs=60, load=1.2, seed=3)
    again = bl.simulate(workload, cluster, str(tmp_path / "run"))
    assert done.stdout.strip() == again.metrics().log_sha256
