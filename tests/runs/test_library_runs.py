"""The library writes the run directories that the command line writes."""

from __future__ import annotations

import json

import pytest

import berthline as bl
from berthline.cli.main import main
from berthline.errors import ConfigError

TIMED = {"wall_seconds", "decision_latency"}
LOG = """; MaxProcs: 8
; UnixStartTime: 1709510400
"""


@pytest.fixture
def log(tmp_path):
    """A log of a week with recorded waits, in Standard Workload Format."""
    rows = [
        f"{job} {job * 900} {job % 7 * 300} {600 + job % 11 * 900} {1 + job % 8} -1 -1"
        f" {1 + job % 8} 14400 -1 1 {job % 5} -1 -1 -1 -1 -1 -1"
        for job in range(1, 600)
    ]
    path = tmp_path / "week.swf"
    path.write_text(LOG + "\n".join(rows) + "\n")
    return path


def same_runs(ours, theirs):
    names = sorted(path.name for path in theirs.iterdir())
    assert sorted(path.name for path in ours.iterdir()) == names
    for name in names:
        if name.endswith((".parquet", "cluster.toml")):
            assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
    summaries = [json.loads((path / "summary.json").read_text()) for path in (ours, theirs)]
    for summary in summaries:
        for name in TIMED:
            summary.pop(name, None)
    assert summaries[0] == summaries[1]


def test_simulate_writes_what_sim_writes(log, tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    result = bl.simulate(
        log, None, "sjf+easy", jobs=300, load=0.8, seed=3, conditions={"restart": 30},
        by=["user"], measure=(86_400, 2 * 86_400), out=ours,
    )  # fmt: skip
    options = (
        "--jobs 300 --load 0.8 --seed 3 --condition restart=30 --by user --measure 86400:172800"
    )
    command = ["sim", str(log), "--scheduler", "sjf+easy", *options.split(), "--out", str(theirs)]
    assert main(command) == 0
    same_runs(ours, theirs)
    run = bl.open_run(ours)
    assert run.log.sha256() == result.log.sha256()
    settings = run.settings
    assert settings["scheduler"] == "sjf+easy@first-fit"
    assert settings["cluster"] == "uniform:1x8"
    assert main(["report", str(ours)]) == 0


def test_simulate_does_not_replace_a_run_unless_forced(log, tmp_path):
    bl.simulate(log, None, "fcfs", out=tmp_path / "run")
    with pytest.raises(ConfigError):
        bl.simulate(log, None, "fcfs", out=tmp_path / "run")
    bl.simulate(log, None, "fcfs", out=tmp_path / "run", force=True)
    with pytest.raises(ConfigError, match="`force` has no effect"):
        bl.simulate(log, None, "fcfs", force=True)


def test_whatif_writes_what_whatif_writes(log, tmp_path, capsys):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    found = bl.whatif(log, begin="3d", end="5d", schedulers=["fcfs+easy"], out=ours)
    options = ["--from", "3d", "--to", "5d", "--schedulers", "fcfs+easy", "--json"]
    assert main(["whatif", str(log), *options, "--out", str(theirs)]) == 0
    same_runs(ours, theirs)
    assert found.begin == 3 * 86_400
    assert json.loads(capsys.readouterr().out) == json.loads((ours / "summary.json").read_text())


def test_the_period_of_whatif_in_words(log):
    with pytest.raises(ConfigError, match="`last` is 'soon'"):
        bl.whatif(log, last="soon")
    with pytest.raises(ConfigError, match="the period is given twice"):
        bl.whatif(log, last="7d", week=1)
