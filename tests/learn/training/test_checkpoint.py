"""Checkpoints: complete, refused if damaged, and never lost."""

import pytest
import torch

from berthline.errors import ConfigError
from berthline.learn.training import checkpoint


def test_what_is_saved_is_read_back(tmp_path):
    tensors = {"policy.a": torch.arange(6.0).view(2, 3), "policy.b": torch.tensor(3)}
    path = checkpoint.save(tmp_path, "last", 7, tensors, {"state": {"x": 1.5}})
    found = checkpoint.load(path)
    assert found.facts["step"] == 7
    assert found.facts["state"] == {"x": 1.5}
    assert torch.equal(found.part("policy")["a"], tensors["policy.a"])


def test_the_newest_of_a_kind_stays(tmp_path):
    for step in (5, 1000, 20):
        checkpoint.save(tmp_path, "last", step, {"a": torch.zeros(1)}, {})
        found = checkpoint.find(tmp_path, "last")
        assert found is not None
        assert found.name == f"last-{step:012d}"
    checkpoint.save(tmp_path, "best", 3, {"a": torch.zeros(1)}, {})
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "best-000000000003",
        "last-000000000020",
    ]


def test_what_was_interrupted_does_not_count(tmp_path):
    checkpoint.save(tmp_path, "last", 5, {"a": torch.zeros(1)}, {})
    partial = tmp_path / ".last-000000000009.partial-1"
    partial.mkdir()
    (partial / "tensors.safetensors").write_bytes(b"half")
    found = checkpoint.find(tmp_path, "last")
    assert found is not None
    assert found.name == "last-000000000005"


@pytest.mark.parametrize("damaged", ["tensors.safetensors", "checkpoint.json"])
def test_a_damaged_checkpoint_is_refused(tmp_path, damaged):
    path = checkpoint.save(tmp_path, "last", 5, {"a": torch.zeros(100)}, {})
    whole = (path / damaged).read_bytes()
    (path / damaged).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match="not a checkpoint"):
        checkpoint.load(path)


def test_another_format_is_refused(tmp_path):
    path = checkpoint.save(tmp_path, "last", 5, {"a": torch.zeros(1)}, {"format": 99})
    with pytest.raises(ConfigError, match="another format"):
        checkpoint.load(path)
