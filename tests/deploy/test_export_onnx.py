"""Exported policies: they give torch's scores, have a manifest, and run without torch."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.learn.made_policies import save_policy, save_shortest_first

import berthline as bl
from berthline.cli.main import main
from berthline.deploy import export_onnx
from berthline.errors import ConfigError, PolicyError
from berthline.learn.networks.networks import NetworkConfig
from berthline.policies.learned import Learned

pytest.importorskip("onnx", reason="the extra export is not installed")
pytest.importorskip("onnxruntime", reason="the extra deploy is not installed")
torch.set_num_threads(1)
CLUSTER = "uniform:4x8:V100"
OPTIONS = {"cluster": CLUSTER, "window": 12, "running_window": 6}


def _policy(path):
    found = Learned.find(str(path))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("seat", "kind"),
    [
        ("pick", "mlp"),
        ("pick", "kernel"),
        ("pick", "attention"),
        ("pick", "cross"),
        ("place", "hosts"),
        ("gate", "attention"),
        ("meta", "kernel"),
        ("preempt", "cross"),
    ],
)
def test_scores_are_those_of_torch(tmp_path, seat, kind):
    config = NetworkConfig(kind=kind, hidden=(16, 8), heads=2)
    network = save_policy(tmp_path / "run", seat, {**OPTIONS, "lookahead": "cdf"}, config)
    manifest = export_onnx.export_onnx(_policy(tmp_path / "run"), tmp_path / "p.onnx")
    assert manifest["checked"]["largest_difference"] < 1e-4
    from berthline.deploy.onnx_policy import OnnxPolicy

    policy = OnnxPolicy(tmp_path / "p.onnx")
    states = export_onnx.random_states(network.layout, 20, seed=5)
    with torch.no_grad():
        expected = network(torch.from_numpy(states))[0][..., 0].numpy()
    for state, scores in zip(states, expected, strict=True):
        np.testing.assert_allclose(policy.scores(state), scores, atol=1e-4)
        mask = np.arange(len(scores)) % 2 == 0
        assert policy.choose(state, mask) == np.where(mask, scores, -np.inf).argmax()


def test_the_manifest_says_what_it_is_and_is_json(tmp_path, capsys):
    network = save_policy(tmp_path / "run", "pick", OPTIONS, NetworkConfig(hidden=(8, 8)))
    assert main(["export", "onnx", str(tmp_path / "run")]) == 0
    assert "against torch on 256 random states" in capsys.readouterr().out
    manifest = json.loads((tmp_path / "run/policy.json").read_text())
    assert manifest["layout_sha256"] == network.layout.sha256
    assert manifest["layout"]["columns"]["jobs"] == list(network.layout.columns["jobs"])
    assert manifest["policy_sha256"] == _policy(tmp_path / "run").sha256
    assert manifest["config"]["network"]["kind"] == "kernel"
    # It exists now, and only --force replaces it.
    assert main(["export", "onnx", str(tmp_path / "run")]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["export", "onnx", str(tmp_path / "run"), "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["onnx_sha256"] == manifest["onnx_sha256"]


def test_what_is_no_policy_is_refused(tmp_path, capsys):
    assert main(["export", "onnx", str(tmp_path)]) == 2
    assert "not a learned policy" in capsys.readouterr().err
    assert main(["export", "swf", "synthetic"]) == 2
    assert "--out is missing" in capsys.readouterr().err


def test_nothing_is_written_that_does_not_answer_as_torch_does(tmp_path, monkeypatch):
    save_policy(tmp_path / "run", "pick", OPTIONS, NetworkConfig(hidden=(8, 8)))
    real = export_onnx.to_onnx

    def spoilt(network, layout):
        with torch.no_grad():
            network.head[0].bias += 1.0
            made = real(network, layout)
            network.head[0].bias -= 1.0
        return made

    monkeypatch.setattr(export_onnx, "to_onnx", spoilt)
    with pytest.raises(ConfigError, match="differs from torch's by"):
        export_onnx.export_onnx(_policy(tmp_path / "run"), tmp_path / "p.onnx")
    assert not (tmp_path / "p.onnx").exists()


def test_a_file_of_another_manifest_is_refused(tmp_path):
    save_shortest_first(tmp_path / "run", OPTIONS)
    out = tmp_path / "p.onnx"
    export_onnx.export_onnx(_policy(tmp_path / "run"), out)
    workload = bl.generate("synthetic", cluster=bl.Cluster.parse(CLUSTER), jobs=10, load=1, seed=1)
    bl.simulate(workload, CLUSTER, str(out))
    with pytest.raises(ConfigError, match="fixed size"):
        bl.simulate(workload, "uniform:5x8:V100", str(out))
    out.write_bytes(out.read_bytes() + b" ")
    with pytest.raises(PolicyError, match="describes another file"):
        bl.simulate(workload, CLUSTER, str(out))
    (tmp_path / "p.json").unlink()
    with pytest.raises(PolicyError, match="cannot read the policy"):
        bl.simulate(workload, CLUSTER, str(out))


_WITHOUT = """
import sys
sys.modules["torch"] = None
import numpy as np
from berthline.deploy.onnx_policy import OnnxPolicy
policy = OnnxPolicy(sys.argv[1])
layout = policy.manifest["layout"]
size = policy.manifest["input"]["shape"][1]
assert 0 <= policy.choose(np.ones(size, np.float32), np.ones(layout["actions"], bool))
assert not any(name.startswith("berthline.learn") for name in sys.modules)
import berthline as bl
cluster = bl.Cluster.parse("uniform:4x8:V100")
workload = bl.generate("synthetic", cluster=cluster, jobs=60, load=1.2, seed=3)
print(bl.simulate(workload, cluster, sys.argv[1]).metrics().log_sha256)
"""


def test_it_runs_without_torch_and_gives_the_same_log(tmp_path):
    options = {"features": {"jobs": ["estimate / 100000"]}, "window": 64, "cluster": CLUSTER}
    save_shortest_first(tmp_path / "run", options)
    export_onnx.export_onnx(_policy(tmp_path / "run"), tmp_path / "p.onnx")
    command = [sys.executable, "-c", _WITHOUT, str(tmp_path / "p.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cluster = bl.Cluster.parse(CLUSTER)
    workload = bl.generate("synthetic", cluster=cluster, jobs=60, load=1.2, seed=3)
    rule = bl.simulate(workload, cluster, "sjf+skip@best-fit")
    assert done.stdout.strip() == rule.metrics().log_sha256
