"""`berthline train es`: a scheduler in plain text, run directories, and being stopped."""

import json
import signal
import subprocess
import sys
import time
import tomllib

import pytest

from berthline.cli.train import command as train
from berthline.cli.train.es import main
from berthline.cli.train.es_show import lines
from berthline.errors import ConfigError
from berthline.evaluate.compare.run_argument import read_run_argument
from berthline.learn.tuning.search import SearchProgress
from berthline.policies.scheduler import Scheduler

SMALL = [
    *("--cluster", "uniform:2x4:V100", "--load", "1.5", "--window-jobs", "60"),
    *("--windows", "3", "--train-windows", "5", "--workers", "1"),
]


def _run(capsys, *argv):
    assert main([*SMALL, *argv]) == 0
    return capsys.readouterr().out


def test_the_result_is_a_scheduler_that_can_be_judged(tmp_path, capsys):
    path = tmp_path / "run"
    found = json.loads(_run(capsys, "--evaluations", "16", "--json", "--out", str(path)))
    Scheduler.parse(found["scheduler"])
    assert found["evaluations"] == 16
    assert json.loads((path / "summary.json").read_text()) == found
    config = tomllib.loads((path / "config.toml").read_text())
    assert (config["algorithm"], config["space"], config["load"]) == ("es", "gate", 1.5)
    assert set(config["parameters"]) == set(found["parameters"])
    assert json.loads((path / "meta.json").read_text())["verb"] == "train"
    judged = read_run_argument(str(path))
    assert judged.scheduler == found["scheduler"]
    assert judged.settings["cluster"] == "uniform:2x4:V100"


def test_it_tells_the_scheduler_and_reads_slowdown_and_jct_together(capsys):
    out = _run(
        capsys, "--scheduler", "[estimate * gpus ** {p}]+easy", "--param", "p=0:2",
        "--evaluations", "8", "--against", "fcfs,sjf+easy",
    )  # fmt: skip
    assert "[estimate * gpus ** " in out
    assert "against the rival (" in out
    assert "against the lane (smallest-area+easy?express-lane" in out
    assert "limits of JCT" in out or "a trade: " in out


def test_both_searches_side_by_side(tmp_path, capsys):
    path = tmp_path / "run"
    out = _run(
        capsys, "--space", "lane", "--search", "both", "--evaluations", "16", "--out", str(path)
    )
    assert "rival on REPORT" in out
    summary = json.loads((path / "summary.json").read_text())
    losses = {how: one["val"]["loss"] for how, one in summary["searches"].items()}
    assert set(losses) == {"cma", "random"}
    best = summary["searches"][summary["best_search"]]
    assert best["val"]["loss"] == min(losses.values())
    assert summary["scheduler"] == best["scheduler"]
    assert [one["evaluations"] for one in summary["searches"].values()] == [16, 16]


def test_nothing_known_of_run_times(capsys):
    found = json.loads(
        _run(capsys, "--space", "preempt", "--knowledge", "none", "--evaluations", "8", "--json")
    )
    assert found["lane"] is None
    assert "!index:" in found["scheduler"]


def test_wrong_options_are_told(tmp_path, capsys):
    for argv, what in (
        (["--goal", "x"], "--goal"),
        (["--search", "x"], "--search"),
        (["--space", "x"], "unknown search space"),
        (["--resume"], "`resume` has no effect without `out`"),
        (["--resume", "--out", str(tmp_path / "none")], "no training run to resume"),
    ):
        with pytest.raises(ConfigError, match=what):
            main([*SMALL, *argv])
    path = tmp_path / "run"
    _run(capsys, "--evaluations", "8", "--out", str(path))
    with pytest.raises(ConfigError, match="a complete training run"):
        main([*SMALL, "--evaluations", "8", "--out", str(path)])
    with pytest.raises(ConfigError, match="other settings"):
        main([*SMALL, "--evaluations", "9", "--out", str(path), "--resume"])


def test_ctrl_c_saves_and_resume_goes_on(tmp_path, capsys):
    whole = json.loads(_run(capsys, "--evaluations", "160", "--json"))
    path = tmp_path / "run"
    argv = [*SMALL, "--evaluations", "160", "--json", "--out", str(path)]
    code = "import sys; from berthline.cli.train.es import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen([sys.executable, "-c", code, *argv], stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (path / "state.json").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("it was over before the signal came")
    assert process.returncode == 130
    assert out == b""
    assert not (path / "summary.json").exists()
    state = (path / "state.json").read_bytes()
    (path / "state.json").write_bytes(state.replace(b"0.", b"1.", 1))
    with pytest.raises(ConfigError, match="the state of the search is damaged"):
        main([*argv, "--resume"])
    (path / "state.json").write_bytes(state)
    found = json.loads(_run(capsys, *argv[len(SMALL) :], "--resume"))
    for name in ("scheduler", "val", "report", "evaluations"):
        assert found[name] == whole[name]


def test_it_is_a_form_of_train(capsys):
    assert train.main(["es", *SMALL, "--evaluations", "8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["algorithm"] == "es"


def test_progress_is_a_line_every_five_seconds(capsys):
    tell = lines("tuning")
    for seconds in (0.5, 2.0, 5.6, 7.0):
        tell(
            SearchProgress(
                generation=1, evaluations=8, seconds=seconds, train_loss=-0.1, val_loss=-0.1,
                rival="sjf+easy", rival_loss=0.0, scheduler="fcfs",
            )
        )  # fmt: skip
    printed = capsys.readouterr().err.splitlines()
    assert [line.split(" s, ")[0] for line in printed] == ["tuning: 0", "tuning: 6"]
