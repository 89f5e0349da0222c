"""`berthline.tune` finds what `berthline train es` prints, and its run directories are runs."""

import json

import pytest

import berthline as bl
from berthline.cli.train.es import main
from berthline.errors import BerthlineError, ConfigError
from berthline.evaluate.compare.run_argument import read_run_argument

SMALL = {
    "cluster": "uniform:2x4:V100",
    "load": 1.5,
    "window_jobs": 60,
    "windows": 3,
    "train_windows": 5,
    "evaluations": 16,
}
TIMES = ("seconds", "simulations_per_second")


def same(summary):
    return {name: value for name, value in summary.items() if name not in TIMES}


def options(parameters):
    named = [(f"--{name.replace('_', '-')}", str(value)) for name, value in parameters.items()]
    return [word for pair in named for word in pair]


def test_equals_the_command_line(tmp_path, capsys):
    found = bl.tune(**SMALL, out=tmp_path / "library")
    assert main([*options(SMALL), "--workers", "1", "--json", "--out", str(tmp_path / "cli")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert same(found.summary) == same(printed)
    assert found.searches == [found.summary]
    ours, theirs = (bl.open_run(tmp_path / name) for name in ("library", "cli"))
    assert (ours.kind, theirs.kind) == ("search", "search")
    differing = ("gap",)  # a text of the option
    for name, value in theirs.settings.items():
        assert name in differing or ours.settings[name] == value, name
    assert found.directory == tmp_path / "library"


def test_takes_objects_and_both_searches(tmp_path):
    cluster = bl.Cluster.uniform(nodes=2, gpus_per_node=4)
    jobs = bl.generate("synthetic", cluster=cluster, jobs=600, load=1.2)
    found = bl.tune(
        workload=jobs, cluster=cluster, space="lane", search="both", evaluations=8, windows=3,
        train_windows=4, gap_seconds=0, against=["fcfs", "sjf+easy"], out=tmp_path / "run",
    )  # fmt: skip
    assert [one["search"] for one in found.searches] == ["cma", "random"]
    assert found.summary["scheduler"] in [one["scheduler"] for one in found.searches]
    run = bl.open_run(tmp_path / "run")
    assert run.settings["workload"] == jobs.name
    assert list(run.parts) == ["cma", "random"]


def test_stopped_and_resumed_ends_the_same(tmp_path):
    whole = bl.tune(**SMALL).summary
    stopped = bl.tune(**SMALL, out=tmp_path / "run", must_stop=lambda: True)
    assert stopped.summary is None
    assert stopped.searches == []
    resumed = bl.tune(**SMALL, out=tmp_path / "run", resume=True).summary
    for name in ("scheduler", "val", "report", "evaluations"):
        assert resumed[name] == whole[name]


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"goal": "x"}, "unknown goal 'x'"),
        ({"search": "x"}, "unknown search 'x'"),
        ({"knowledge": "x"}, "unknown knowledge 'x'"),
        ({"space": "x"}, "unknown search space 'x'"),
        ({"cluster": 3}, "3"),
        ({"scheduler": "[estimate * {p}]+easy"}, "no range for p"),
        ({"scheduler": "[estimate * {p}]+easy", "params": ["p=2:1"]}, "cannot read"),
        ({"scheduler": "[estimate * {p}]+easy", "params": ["p=1:2", "p=1:2"]}, "given twice"),
        ({"resume": True}, "`resume` has no effect without `out`"),
    ],
)
def test_errors__speak_of_parameters(wrong, what):
    with pytest.raises(BerthlineError, match=what) as caught:
        bl.tune(**{**SMALL, **wrong})
    assert "--" not in str(caught.value)


def test_train_es__names_tune(tmp_path):
    with pytest.raises(ConfigError, match=r"berthline\.tune"):
        bl.train("es", out=tmp_path / "run")


def test_conditions_of_the_run_hold_when_it_is_evaluated(tmp_path):
    bl.tune(**SMALL, conditions={"restart": 77.0}, out=tmp_path / "run")
    settings = read_run_argument(str(tmp_path / "run")).settings
    assert settings["conditions"] == {"restart": 77.0}
