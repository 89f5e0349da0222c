"""Checkpoints: complete, refused if damaged, and never lost."""

import json

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
    with pytest.raises(ConfigError, match="is damaged"):
        checkpoint.load(path)


def test_a_checkpoint_with_one_changed_byte_is_refused(tmp_path):
    facts = {"state": {"x": 1.5, "name": "a"}, "trainer": {"best": -1.25e-3}}
    path = checkpoint.save(tmp_path, "last", 5, {"policy.a": torch.arange(30.0)}, facts)
    expected = checkpoint.load(path).facts
    for name in ("tensors.safetensors", "checkpoint.json"):
        whole = (path / name).read_bytes()
        for place in range(len(whole)):
            changed = bytearray(whole)
            changed[place] ^= 1
            (path / name).write_bytes(changed)
            try:
                found = checkpoint.load(path).facts
            except ConfigError as error:
                assert "is damaged" in str(error)  # noqa: PT017 - a blank may have changed
            else:
                assert (name, found) == ("checkpoint.json", expected)
        (path / name).write_bytes(whole)


def test_a_checkpoint_that_lost_a_file_is_not_skipped(tmp_path):
    path = checkpoint.save(tmp_path, "last", 5, {"a": torch.zeros(1)}, {})
    (path / "checkpoint.json").unlink()
    assert checkpoint.find(tmp_path, "last") == path
    with pytest.raises(ConfigError, match="not a checkpoint"):
        checkpoint.load(path)


def test_a_checkpoint_of_the_format_without_checksums_is_read(tmp_path):
    path = checkpoint.save(tmp_path, "last", 5, {"a": torch.zeros(1)}, {"format": 1})
    facts = json.loads((path / "checkpoint.json").read_text())
    del facts["seal"], facts["tensors_sha256"]
    (path / "checkpoint.json").write_text(json.dumps(facts))
    assert checkpoint.load(path).facts["step"] == 5
    (path / "checkpoint.json").write_text(json.dumps({**facts, "format": 2}))
    with pytest.raises(ConfigError, match="no checksum"):
        checkpoint.load(path)


def test_another_format_is_refused(tmp_path):
    path = checkpoint.save(tmp_path, "last", 5, {"a": torch.zeros(1)}, {"format": 99})
    with pytest.raises(ConfigError, match="another format"):
        checkpoint.load(path)
