"""`--config-file`: a run's config.toml makes the same run again; options replace parts of it."""

import json
import tomllib

import pytest

RUNS = {
    "sim": (
        "sim", "synthetic", "--jobs", "60", "--scheduler", "sjf+easy", "--order", "estimate * gpus",
        "--set", "users=3", "--set", "estimate_error=0.5", "--condition", "restart=30", "--by",
        "user,size", "--load", "1.3", "--seed", "4294967295",
    ),
    "compare": (
        "compare", "synthetic", "bursty", "--cluster", "uniform:1x8:V100", "--schedulers",
        "fcfs,sjf+easy@best-fit?[free_gpus - gpus]",
        "--jobs", "40", "--windows", "2", "--loads", "0.8,1.1", "--seed", "3",
    ),
    "eval": (
        "eval", "sjf+easy", "--against", "fcfs,fcfs+easy", "--windows", "2", "--window-jobs", "30",
        "--knowledge", "predicted", "--seed", "7", "--set", "users=2", "--metric", "wait_mean",
    ),
    "train es": (
        "train", "es", "--scheduler",
        "[estimate * gpus ** {p}]+easy?[where(estimate > {T}, -1, 0)]",
        "--param", "p=0:2:0.3", "--param", "T=60:86400:log", "--evaluations", "8", "--workers", "1",
        "--window-jobs", "30", "--train-windows", "2", "--windows", "2", "--set", "users=2",
    ),
    "whatif": (
        "whatif", "{log}", "--from", "2d", "--to", "4d", "--schedulers", "fcfs+easy,sjf+easy",
        "--cluster", "uniform:1x8", "--seed", "3",
    ),
}  # fmt: skip


@pytest.fixture
def log(tmp_path):
    """A log with recorded waits, in Standard Workload Format."""
    rows = [
        f"{job} {job * 900} {job % 7 * 300} {600 + job % 11 * 900} {1 + job % 8} -1 -1"
        f" {1 + job % 8} 14400 -1 1 {job % 5} -1 -1 -1 -1 -1 -1"
        for job in range(1, 500)
    ]
    path = tmp_path / "week.swf"
    path.write_text("\n".join(["; MaxProcs: 8", *rows]) + "\n")
    return path


def timeless(value):
    """Return a summary without what differs from run to run."""
    if isinstance(value, dict):
        left_out = ("wall_seconds", "decision_latency", "seconds", "cpu_seconds")
        return {key: timeless(one) for key, one in value.items() if key not in left_out}
    return [timeless(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("verb", RUNS)
def test_the_file_makes_the_same_run_again(verb, run, tmp_path, log):
    first, again = tmp_path / "first", tmp_path / "again"
    words = [word.replace("{log}", str(log)) for word in RUNS[verb]]
    assert run(*words, "--out", str(first)).code == 0
    outcome = run(*verb.split(), "--config-file", str(first / "config.toml"), "--out", str(again))
    assert outcome.code == 0, outcome.err
    files = [json.loads((path / "summary.json").read_text()) for path in (first, again)]
    assert timeless(files[1]) == timeless(files[0])


def test_options_beside_the_file_replace_its_own(run, tmp_path):
    out = tmp_path / "first"
    assert run(*RUNS["sim"], "--out", str(out)).code == 0
    file = str(out / "config.toml")
    other = run(
        "sim", "bursty", "--config-file", file, "--seed", "5", "--set", "users=4",
        "--out", str(tmp_path / "other"),
    )  # fmt: skip
    assert other.code == 0, other.err
    was, now = (
        tomllib.loads((path / "config.toml").read_text()) for path in (out, tmp_path / "other")
    )
    assert (now["workload"], now["seed"]) == ("bursty", 5)
    assert now["set"] == {"users": "4", "estimate_error": "0.5"}
    assert now["scheduler"] == was["scheduler"]
    assert now["conditions"] == was["conditions"]


def test_training_is_repeated_with_every_setting(run, tmp_path):
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    words = (
        "train", "ppo", "--preset", "rltune",
        "--set", "load=null", "episode_jobs=64", "window=4", "cluster=uniform:1x8:V100",
        "--config", "rollout=4", "minibatches=1", "horizon=null", "--steps", "16", "--envs", "4",
        "--episodes", "8", "--hidden", "8,8", "--network", "mlp", "--test-seeds", "42,43",
    )  # fmt: skip
    first, again = tmp_path / "first", tmp_path / "again"
    assert run(*words, "--out", str(first)).code == 0
    file = str(first / "config.toml")
    outcome = run("train", "--config-file", file, "--out", str(again))
    assert outcome.code == 0, outcome.err
    assert (again / "config.toml").read_text() == (first / "config.toml").read_text()
    assert (again / "summary.json").read_text() == (first / "summary.json").read_text()
    settings = tomllib.loads((again / "config.toml").read_text())
    assert settings["options"]["load"] == "null"
    assert settings["settings"]["horizon"] == "null"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "cannot read the config file"),
        ("not [ toml", "cannot read the config file"),
        ("seed = 1\n", "the file has no workload"),
    ],
)
def test_a_file_that_is_none_is_refused(text, told, run, tmp_path):
    path = tmp_path / "config.toml"
    if text is not None:
        path.write_text(text)
    outcome = run("sim", "--config-file", str(path))
    assert outcome.code == 2
    assert told in outcome.err
    assert "Traceback" not in outcome.err
