"""`berthline.train` trains what `berthline train` does, in a run directory that is a scheduler."""

import json

import pytest

import berthline as bl
from berthline.cli.main import main
from berthline.errors import BerthlineError

pytest.importorskip("torch")

TINY = {"env_options": {"episode_jobs": 20}, "steps": 600, "envs": 4, "episodes": 4, "seed": 3}
OPTIONS = [
    *("--set", "episode_jobs=20", "--steps", "600", "--envs", "4", "--episodes", "4", "--seed", "3")
]


def without_times(value):
    if not isinstance(value, dict):
        return value
    left_out = ("wall_seconds", "seconds", "steps_per_second")
    return {name: without_times(one) for name, one in value.items() if name not in left_out}


def test_equals_the_command_line(tmp_path, capsys):
    found = bl.train("ppo", **TINY, out=tmp_path / "library")
    assert main(["train", "ppo", *OPTIONS, "--json", "--out", str(tmp_path / "cli")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert without_times(json.loads(json.dumps(found.summary))) == without_times(printed)
    ours, theirs = (bl.open_run(tmp_path / name) for name in ("library", "cli"))
    assert ours.kind == theirs.kind == "train"
    assert ours.settings == theirs.settings
    assert list(ours.checkpoints) == list(theirs.checkpoints)
    assert ours.curve.drop("seconds", strict=False).equals(
        theirs.curve.drop("seconds", strict=False)
    )
    for name, checkpoint in ours.checkpoints.items():
        weights = checkpoint / "tensors.safetensors"
        other = theirs.checkpoints[name] / "tensors.safetensors"
        assert weights.read_bytes() == other.read_bytes()


def test_run_is_a_scheduler(tmp_path):
    found = bl.train("bc", **TINY, expert="sjf", out=tmp_path / "run")
    jobs = bl.generate("synthetic", cluster="uniform:2x4:V100", jobs=30)
    result = bl.simulate(jobs, "uniform:2x4:V100", found.directory)
    assert result.metrics().jobs.completed == 30


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"algorithm": "pop"}, "unknown algorithm 'pop'"),
        ({"env": "Pck"}, "unknown environment 'Pck'"),
        ({"preset": "rltun"}, "unknown preset 'rltun'"),
        ({"network": "deep"}, "unknown network 'deep'"),
        ({"expert": "sjf"}, "ppo does not learn from an expert"),
        ({"env_options": {"loads": 1}}, "unknown option 'loads'"),
        ({"config": {"learning_rat": 1}}, "learning_rat"),
        ({"init_from": "nowhere"}, "nowhere"),
        ({"resume": True}, "there is no training run to resume"),
        ({"out": None}, "`out` is missing"),
        ({"seeds": 0}, "seeds"),
        ({"steps": -5}, "steps"),
    ],
)
def test_errors__speak_of_parameters(wrong, what, tmp_path):
    given = {"algorithm": "ppo", **TINY, "out": tmp_path / "run", **wrong}
    with pytest.raises(BerthlineError, match=what) as caught:
        bl.train(**given)
    assert "--" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_training_on_a_log_says_how_run_times_are_scaled(tmp_path):
    """The note is made before training; the environments are those of `train`."""
    from berthline.learn.training.defaults import fit_to_trace

    days = [f"2024-03-{1 + i // 24:02}T{i % 24:02}" for i in range(600)]
    rows = [
        f"{i}|{day}:00:00|{day}:00:00|{day}:30:00|gres/gpu:a100=2|g1" for i, day in enumerate(days)
    ]
    log = tmp_path / "log.txt"
    log.write_text("\n".join(["JobID|Submit|Start|End|AllocTRES|NodeList", *rows]) + "\n")
    options = {"workload": str(log), "episode_jobs": 20}
    _, told = fit_to_trace("pick", {**options, "cluster": "uniform:1x8:V100"}, {})
    assert told[-1] == "log: run times x 1.76: recorded on A100-80, run on V100-32"
    _, told = fit_to_trace("pick", options, {})
    assert not any("run times" in one for one in told)
