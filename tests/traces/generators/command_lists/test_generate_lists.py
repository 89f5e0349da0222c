"""Generated lists of commands, and the program that they run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from berthline.errors import ConfigError
from berthline.traces.formats.command_list import arguments_of, read_commands
from berthline.traces.generators.command_lists.generate_lists import (
    CLASSES,
    SCRIPT,
    ListSettings,
    write_command_lists,
)

PATIENCE = 60.0


def test_ten_lists_of_fifty_jobs(tmp_path):
    lists = write_command_lists(tmp_path / "lists", ListSettings())
    assert [path.name for path in lists] == [f"node-{number:02d}.csv" for number in range(10)]
    names, load = set(), []
    for path in lists:
        found = read_commands(path)
        workload = found.workload
        assert len(workload) == 50
        assert workload.run.min() >= 1
        assert workload.run.max() <= 30
        assert workload.gpus.max() <= 2
        relative = (workload.deadline - workload.submit) / workload.run
        assert relative.min() >= 1.19
        assert relative.max() <= 2.01
        assert set(workload.priority.tolist()) == {0, 1, 2, 3}
        names |= {str(name).rpartition("-")[0] for name in workload.names}
        load.append(workload.work / workload.submit[-1] / 4)
        for command, run in zip(found.commands, workload.run, strict=True):
            arguments = arguments_of(command, shell=False)
            assert arguments[:3] == ["python3", SCRIPT, "--runtime"]
            assert float(arguments[3]) == run
    assert names == set(CLASSES)
    assert sum(kind.share for kind in CLASSES.values()) == pytest.approx(1)
    assert 0.8 < sum(load) / len(load) < 1.05
    assert len({path.read_text() for path in lists}) == 10


def test_the_seed_decides_everything(tmp_path):
    settings = ListSettings(files=2, jobs=20, slots=1, cpu=0.5)
    one, two = (write_command_lists(tmp_path / name, settings) for name in "ab")
    other = write_command_lists(tmp_path / "c", settings._replace(seed=1))
    assert [path.read_text() for path in one] == [path.read_text() for path in two]
    assert one[0].read_text() != other[0].read_text()
    assert read_commands(one[0]).workload.gpus.max() == 1, "a gang of two does not fit one slot"
    assert "--cpu 0.5" in one[0].read_text()


@pytest.mark.parametrize("wrong", [{"files": 0}, {"jobs": 0}, {"load": 0}, {"cpu": 2}])
def test_numbers_out_of_range(tmp_path, wrong):
    with pytest.raises(ConfigError, match=f"`{next(iter(wrong))}` is"):
        write_command_lists(tmp_path / "lists", ListSettings()._replace(**wrong))
    assert not (tmp_path / "lists").exists()


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(ConfigError, match="not empty"):
        write_command_lists(tmp_path, ListSettings())


def test_the_program_saves_its_progress_and_resumes(tmp_path):
    (lists,) = write_command_lists(tmp_path / "lists", ListSettings(files=1))
    program = [sys.executable, "-S", str(lists.with_name(SCRIPT)), "--cpu", "0.2"]
    environment = {"BERTHLINE_JOB_DIR": str(tmp_path), "BERTHLINE_TIME_SCALE": "0.01"}
    file = tmp_path / "progress.json"

    job = subprocess.Popen([*program, "--runtime", "30000"], env=environment)
    while not file.exists():
        assert job.poll() is None
    job.send_signal(signal.SIGTERM)
    assert job.wait(PATIENCE) == 128 + signal.SIGTERM
    saved = json.loads(file.read_text())
    assert 0 < saved["seconds"] < saved["of"] == 300

    rest = str(100 * (saved["seconds"] + 0.1))
    again = subprocess.run([*program, "--runtime", rest], env=environment, timeout=PATIENCE)
    assert again.returncode == 0
    done = json.loads(file.read_text())
    assert done["seconds"] >= done["of"] == pytest.approx(saved["seconds"] + 0.1)
    assert done["rounds"] > saved["rounds"]


def test_gpu_load_without_a_gpu_says_so(tmp_path):
    (lists,) = write_command_lists(tmp_path / "lists", ListSettings(files=1, gpu_load=True))
    assert "--gpu-load" in lists.read_text()
    program = [sys.executable, "-S", str(lists.with_name(SCRIPT)), "--runtime", "1", "--gpu-load"]
    said = subprocess.run(program, capture_output=True, timeout=PATIENCE, cwd=tmp_path)
    assert said.returncode == 1
    assert b"needs torch" in said.stderr
