"""Telemetry by a library with NVML's functions, by a program `nvidia-smi`, and by neither."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.deploy.systems.node.node_tools import PATIENCE, job, node_of, output, until

from berthline.deploy.systems.node.runner.nvidia_smi import NvidiaSmi, NvidiaSmiError
from berthline.deploy.systems.node.runner.telemetry import find_gpus, read_samples
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

# Two GPUs; the second does not tell its power. Values change from call to call.
NVML = r"""
#include <string.h>
typedef struct { unsigned gpu, memory; } use_t;
typedef struct { unsigned long long total, free, used; } memory_t;
static unsigned calls;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
  *handle = (void *)(unsigned long)(index + 1);
  return 0;
}
int nvmlDeviceGetName(void *gpu, char *name, unsigned size) {
  strncpy(name, gpu == (void *)1 ? "Test A100" : "Test V100", size);
  return 0;
}
int nvmlDeviceGetUUID(void *gpu, char *name, unsigned size) {
  strncpy(name, gpu == (void *)1 ? "GPU-1" : "GPU-2", size);
  return 0;
}
int nvmlDeviceGetUtilizationRates(void *gpu, use_t *use) {
  use->gpu = 40 + calls++ % 20;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void *gpu, memory_t *memory) {
  memory->total = 40ULL << 30;
  memory->used = 3ULL << 30;
  return 0;
}
int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatts) {
  *milliwatts = 123456;
  return gpu == (void *)1 ? 0 : 3;
}
"""

SMI = """#!/bin/sh
echo "$@" >> {directory}/asked
cat {directory}/state
"""
STATE = """1, GPU-b, NVIDIA A100, 80GB, 5, 100, 81920, 61.5, 40
0, GPU-a, NVIDIA A100, 80GB, 90, 2048, 81920, [N/A], [Not Supported]
"""
ASK = """
import json
from berthline.deploy.systems.node.runner.telemetry import find_gpus
source, gpus, why = find_gpus()
print(json.dumps([source, gpus and gpus.names(), gpus and gpus.sample(), why]))
"""


@pytest.fixture
def nvml(tmp_path) -> Path:
    """Return a directory with a library that has NVML's name and functions."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    directory = tmp_path / "library"
    directory.mkdir()
    (directory / "nvml.c").write_text(NVML)
    out, name = str(directory / "libnvidia-ml.so.1"), "-Wl,-soname,libnvidia-ml.so.1"
    build = [compiler, "-shared", "-fPIC", name, "-o", out, str(directory / "nvml.c")]
    subprocess.run(build, check=True, timeout=PATIENCE)
    return directory


@pytest.fixture
def smi(tmp_path, monkeypatch) -> Path:
    """Return a directory with a program `nvidia-smi`, which is first on the search path."""
    directory = tmp_path / "programs"
    directory.mkdir()
    (directory / "state").write_text(STATE)
    program = directory / "nvidia-smi"
    program.write_text(SMI.format(directory=directory))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    return directory


def ask(**environment: str) -> list:
    """Return what a process finds under another environment."""
    said = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    return json.loads(said.stdout)


def test_nvml(nvml):
    source, names, sample, _ = ask(LD_LIBRARY_PATH=str(nvml))
    assert source == "nvml"
    assert names == [["Test A100", "GPU-1"], ["Test V100", "GPU-2"]]
    assert sample[0] == {
        "utilization": 0.4,
        "memory_used_mib": 3072,
        "memory_total_mib": 40960,
        "power_w": 123.456,
        "temperature_c": None,  # the function is not in the library
    }
    assert sample[1]["power_w"] is None, "its call fails"


def test_an_nvml_that_lacks_what_is_needed_is_not_used(tmp_path, nvml):
    broken = (nvml / "nvml.c").read_text().replace("nvmlDeviceGetCount_v2", "other")
    (nvml / "nvml.c").write_text(broken)
    compiler = shutil.which("gcc") or shutil.which("cc")
    out = str(nvml / "libnvidia-ml.so.1")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", out, str(nvml / "nvml.c")], check=True, timeout=60
    )
    source, _, _, why = ask(LD_LIBRARY_PATH=str(nvml), PATH=str(tmp_path))
    assert source == "none"
    assert "nvmlDeviceGetCount_v2 is not in libnvidia-ml.so.1" in why


def test_nvidia_smi(smi):
    gpus = NvidiaSmi()
    assert gpus.names() == [("NVIDIA A100, 80GB", "GPU-a"), ("NVIDIA A100, 80GB", "GPU-b")]
    first, second = gpus.sample()
    assert first == {
        "utilization": 0.9,
        "memory_used_mib": 2048,
        "memory_total_mib": 81920,
        "power_w": None,
        "temperature_c": None,
    }
    assert second["power_w"] == 61.5
    assert "--query-gpu=index,uuid,name," in (smi / "asked").read_text()


@pytest.mark.parametrize(
    "answer", ["", "No devices were found\n", "0, GPU-a, A100\n", "\xff,,,,,,,"]
)
def test_an_answer_that_cannot_be_read_is_none(smi, answer):
    (smi / "state").write_text(answer, encoding="latin-1")
    with pytest.raises(NvidiaSmiError):
        NvidiaSmi()
    assert find_gpus("nvidia-smi")[0] == "none"


def test_none_is_a_normal_state(tmp_path):
    source, names, sample, why = ask(PATH=str(tmp_path), LD_LIBRARY_PATH="")
    if source == "nvml":
        pytest.skip("this machine has a GPU")
    assert (source, names, sample) == ("none", None, None)
    assert "libnvidia-ml.so.1" in why
    with node_of(tmp_path, [{"command": "true"}], telemetry="none") as node:
        until(lambda: node.is_over)
        assert "no telemetry" in node.words
        assert not (node.directory / "telemetry.jsonl").exists()


def test_without_gpus_slots_must_be_declared(tmp_path):
    with (
        pytest.raises(ConfigError, match="no GPUs") as error,
        node_of(tmp_path, [{"command": "true"}], slots=None, telemetry="none"),
    ):
        pass
    assert "`slots=4`" in error.value.hint
    assert not (tmp_path / "journal").exists()


def test_more_slots_than_gpus_are_refused(smi, tmp_path):
    assert smi.exists()
    with (
        pytest.raises(ConfigError, match="`slots` is 3"),
        node_of(tmp_path, [{"command": "true"}], slots=3, telemetry="nvidia-smi"),
    ):
        pass


def test_a_node_with_gpus_is_sampled_each_second(smi, tmp_path):
    rows = [{"command": ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES; sleep 1.3"], "gpus": 2}]
    with node_of(tmp_path, rows, slots=None, telemetry="nvidia-smi") as node:
        assert "2 GPUs (NVIDIA A100, 80GB)" in node.words
        until(lambda: node.is_over)
        assert output(node, 1) == "0,1\n"
        assert job(node, 1).words == "done"
        samples = until(lambda: read_samples(node.directory / "telemetry.jsonl")[1:], "samples")
    assert samples[0][1][1]["power_w"] == 61.5


def test_only_gpus_that_are_visible_here_are_given_away(smi, tmp_path, monkeypatch):
    assert smi.exists()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,-1,0")
    rows = [{"command": ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"]}]
    with node_of(tmp_path, rows, slots=None, telemetry="nvidia-smi") as node:
        until(lambda: node.is_over)
        assert node.look().nodes[0].gpus == 1
        assert output(node, 1) == "1\n"
