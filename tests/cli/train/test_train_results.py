"""`berthline train`: what it says about a run, by which metric, and against whom."""

import json

import pytest

from berthline.cli.main import main
from berthline.learn.training.train import train_config
from berthline.learn.training.validation import EpisodeSet

TINY = (
    "--set", "episode_jobs=16", "window=8", "running_window=4", "cluster=uniform:1x8",
    "--hidden", "8,8", "--envs", "4", "--episodes", "2",
)  # fmt: skip


def _train(capsys, *words):
    assert main(["train", *map(str, words), *TINY]) == 0
    return capsys.readouterr().out


def test_a_run_without_an_update_says_so_and_has_no_verdict(tmp_path, capsys):
    words = ("--steps", 8, "--set", "load=3", "--out", tmp_path / "run")
    told = _train(capsys, "d3qn", *words)
    assert "0 updates" in told
    assert "no update was made" in told
    assert "of the policy is" not in told
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["updates"] == 0
    assert summary["has_verdict"] is False
    assert summary["policy"] == "d3qn before the first step", (
        "an untrained network has no other name"
    )
    assert "d3qn before the first step" in told


def test_a_run_where_nobody_waits_is_refused(tmp_path, capsys):
    words = ("--steps", "8", "--set", "load=0.01", "--config", "rollout=2", "minibatches=1")
    assert main(["train", "ppo", *TINY, *words, "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert "all 8 rivals have the same mean JCT in all 2 VAL episodes" in told
    assert "no job waits: raise the load" in told
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("reward", "metric"),
    [
        ("mean-jct-hours", "jct_mean"),
        ("slowdown", "bounded_slowdown_mean"),
        ("relative-bounded-slowdown", "bounded_slowdown_mean"),
        ("relative-wait", "wait_mean"),
        ("relative-utilization", "utilization"),
        ({"own": ("finish", "-bounded_slowdown / num_jobs")}, "bounded_slowdown_mean"),
        ({"own": ("second", "-queue_len")}, "jct_mean"),
    ],
)
def test_the_metric_is_that_of_the_reward(reward, metric):
    assert train_config("ppo", env_options={"reward": reward}).metric == metric
    given = train_config("ppo", env_options={"reward": reward}, metric="makespan")
    assert given.metric == "makespan"


def test_rival_table_and_curve_follow_the_metric(tmp_path, capsys):
    words = ("--steps", 64, "--set", "load=3")
    words += ("--config", "rollout=8", "minibatches=1")
    told = _train(
        capsys, "ppo", *words, "--metric", "bounded_slowdown_mean", "--out", tmp_path / "run"
    )
    assert "bounded slowdown of the policy is" in told
    assert "--y mean_bounded_slowdown" in told
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    against = summary["report"]["against"]
    assert summary["metric"] == "bounded_slowdown_mean"
    own = summary["report"]["metric_of_episodes"]
    assert own["fcfs"] != summary["report"]["mean_jct_of_episodes"]["fcfs"]
    assert "mean_jct" in against["fcfs"], "JCT is beside every slowdown"
    assert summary["report"]["return"]["policy"] < 0
    val = EpisodeSet(
        "pick",
        json.loads((tmp_path / "run/checkpoints/last-000000000064/checkpoint.json").read_text())[
            "config"
        ]["options"],
        part="val",
        episodes=2,
    ).heuristics()
    best = min(val, key=lambda scores: scores.mean("mean_bounded_slowdown"))
    assert summary["best_heuristic"] == best.name


def test_an_unknown_metric_is_refused(tmp_path, capsys):
    words = ["train", "ppo", "--metric", "jct", "--out", str(tmp_path / "run")]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "jct_mean" in told
    assert not (tmp_path / "run").exists()


def test_meta_is_compared_with_its_own_schedulers():
    options = {"episode_jobs": 16, "load": 2.0, "schedulers": ("fcfs+easy", "sjf+skip@worst-fit")}
    found = EpisodeSet("meta", options, part="val", episodes=2).heuristics()
    assert [scores.name for scores in found] == ["fcfs+easy@first-fit", "sjf+skip@worst-fit"]


def test_place_is_compared_with_placements_behind_the_same_queue():
    options = {"episode_jobs": 16, "load": 2.0, "order": "sjf", "placement": "best-fit"}
    names = [s.name for s in EpisodeSet("place", options, part="val", episodes=2).heuristics()]
    assert names[0] == "sjf+easy@best-fit"
    assert {"sjf+easy@first-fit", "sjf+easy@worst-fit"} < set(names)
    assert {name.partition("@")[0] for name in names} == {"sjf+easy"}
    rules = {**options, "placements": ("worst-fit", "dot-product")}
    chosen = EpisodeSet("place", rules, part="val", episodes=2).heuristics()
    assert [s.name for s in chosen] == ["sjf+easy@worst-fit", "sjf+easy@dot-product"]


def test_test_seeds_are_the_report_episodes_of_every_run(tmp_path, capsys):
    words = ("--steps", 8, "--set", "load=3", "--config", "rollout=2", "minibatches=1")
    for seed in (0, 1234):
        _train(
            capsys, "ppo", *words, "--seed", seed, "--test-seeds", "42,43,44",
            "--out", tmp_path / str(seed),
        )  # fmt: skip
    reports = [
        json.loads((tmp_path / f"{seed}/summary.json").read_text())["report"] for seed in (0, 1234)
    ]
    assert [report["episodes"] for report in reports] == [3, 3]
    fcfs = [report["mean_jct_of_episodes"]["fcfs"] for report in reports]
    assert fcfs[0] == fcfs[1]
    assert main(["train", "ppo", "--test-seeds", "a", "--out", str(tmp_path / "x")]) == 2


def test_checkpoints_on_the_way_are_kept(tmp_path, capsys):
    words = ("--steps", 64, "--set", "load=3", "--config", "rollout=4", "minibatches=1")
    _train(capsys, "ppo", *words, "--save-every", 16, "--out", tmp_path / "all")
    names = sorted(path.name for path in (tmp_path / "all/checkpoints").glob("step-*"))
    assert names == [f"step-{step:012d}" for step in (16, 32, 48, 64)]
    _train(capsys, "ppo", *words, "--save-every", 16, "--keep", 2, "--out", tmp_path / "two")
    kept = sorted(path.name for path in (tmp_path / "two/checkpoints").glob("step-*"))
    assert kept == names[2:]
    policy = str(tmp_path / "all/checkpoints" / names[0])
    assert main(["sim", "synthetic", "--jobs", "20", "--scheduler", policy]) == 0


def test_a_complete_run_goes_on_with_more_steps_and_its_optimiser(tmp_path, capsys):
    words = (
        "--set", "load=3", "--validate-every", 32,
        "--config", "rollout=4", "minibatches=1", "learning_rate_schedule=constant",
        "entropy_schedule=constant",
    )  # fmt: skip
    once, twice = tmp_path / "once", tmp_path / "twice"
    _train(capsys, "ppo", *words, "--steps", 64, "--out", once)
    _train(capsys, "ppo", *words, "--steps", 32, "--out", twice)
    assert main(["train", "ppo", *map(str, words), "--steps", "32", *TINY, "--resume",
                 "--out", str(twice)]) == 2  # fmt: skip
    assert "raise `steps`" in capsys.readouterr().err
    assert main(["train", "ppo", *map(str, words), "--steps", "64", "--seed", "5", *TINY,
                 "--resume", "--out", str(twice)]) == 2  # fmt: skip
    assert "seed was 0, now 5" in capsys.readouterr().err
    _train(capsys, "ppo", *words, "--steps", 64, "--resume", "--out", twice)
    ends = [path / "checkpoints/last-000000000064/tensors.safetensors" for path in (once, twice)]
    assert ends[0].read_bytes() == ends[1].read_bytes()
    assert json.loads((twice / "summary.json").read_text())["steps"] == 64


def test_short_traces_get_other_defaults_which_are_said(tmp_path, capsys):
    path = tmp_path / "short.csv"
    rows = [f"{100 * n},{300 + n % 7 * 200},{1 + n % 8}" for n in range(240)]
    path.write_text("submit,run,gpus\n" + "\n".join(rows) + "\n")
    mapping = 'dials={"mapping": "submit=submit,run=run,gpus=gpus"}'
    words = ["train", "ppo", "--set", f"workload={path}", mapping, "cluster=uniform:1x8:V100"]
    words += ["--steps", "8", "--envs", "4", "--episodes", "2", "--hidden", "8,8"]
    words += ["--config", "rollout=2", "minibatches=1", "--out", str(tmp_path / "run")]
    assert main(words) == 0
    told = capsys.readouterr().err
    assert "split_gap=239 s instead of 86,400" in told
    assert "split_fractions=[0.5, 0.25, 0.25]" in told
    assert "episode_jobs=29 instead of 256" in told
    assert "knowledge=predicted" in told
