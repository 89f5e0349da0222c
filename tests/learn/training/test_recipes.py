"""Presets bring settings of algorithms, rivals and a busier variant; warnings say what is amiss."""

import json

import pytest

from berthline.cli.main import main
from berthline.env.options import resolve_options
from berthline.env.presets import PRESETS
from berthline.learn.algorithms.algorithm_table import ALGORITHMS, config_of
from berthline.learn.training.environments import Environments
from berthline.learn.training.recipes import RECIPES, pays_at_the_end
from berthline.learn.training.train import train, train_config
from berthline.learn.training.trainer import horizon_warnings
from berthline.learn.training.validation import EpisodeSet, rivals_of


@pytest.mark.parametrize(("preset", "algorithm"), RECIPES)
def test_a_recipe_is_what_train_uses(preset, algorithm):
    recipe = RECIPES[preset, algorithm]
    config = train_config(algorithm, preset=preset)
    assert {name: config.settings[name] for name in recipe.settings} == dict(recipe.settings)
    assert (config.network.kind, config.network.hidden) == (recipe.network, recipe.hidden)
    assert (config.num_envs, config.steps) == (recipe.envs, recipe.steps)


def test_what_is_given_beside_a_preset_wins():
    config = train_config(
        "ppo",
        preset="lookahead",
        config={"horizon": 500.0},
        network="mlp",
        hidden=(8,),
        envs=4,
        steps=64,
    )
    assert config.settings["horizon"] == 500.0
    assert config.settings["trace_horizon"] is None
    assert (config.network.kind, config.network.hidden) == ("mlp", (8,))
    assert (config.num_envs, config.steps) == (4, 64)


@pytest.mark.parametrize(("preset", "algorithm"), RECIPES)
def test_the_replay_of_a_recipe_holds_more_than_an_episode(preset, algorithm):
    recipe = RECIPES[preset, algorithm]
    options = resolve_options(PRESETS[preset].seat, {"preset": preset})
    capacity = getattr(config_of(algorithm, recipe.settings), "capacity", None)
    if capacity is not None:
        assert capacity // recipe.envs > 2 * options.episode_jobs


@pytest.mark.parametrize(
    ("algorithm", "env_options", "credit"),
    [
        ("ppo", {}, "sjf"),
        ("d3qn", {}, "sjf"),
        ("sac", {"credit": "fcfs"}, "fcfs"),
        ("ppo", {"credit": None}, None),
        ("ppo", {"preset": "rltune"}, None),
        ("ppo", {"semantics": "wait", "no_op": "always"}, None),
        ("ppo", {"knowledge": "none"}, None),
        ("ppo", {"episode_jobs": 513}, None),
        ("ppo", {"reward": "relative-utilization"}, None),
        ("bc", {}, None),
    ],
)
def test_credit_is_usual_where_it_helps__and_then_no_later_reward_counts(
    algorithm, env_options, credit
):
    config = train_config(algorithm, env="Pick", env_options=env_options)
    assert resolve_options("pick", config.options).credit == credit
    if algorithm != "bc":
        assert (config.settings["discount"] == 0.0) == (credit is not None)


def test_val_is_played_without_credit():
    episodes = EpisodeSet("pick", {"credit": "sjf"}, part="val", episodes=2)
    assert episodes._environments().plan.credit is None


def test_rewards_at_the_end_do_not_fade():
    for reward, fades in (("relative-jct", False), ("mean-wait-hours", True)):
        config = train_config("ppo", env="Pick", env_options={"reward": reward, "credit": None})
        assert (config.settings["horizon"] is not None) == fades
    assert train_config("sac", env_options={"reward": "relative-jct"}).settings["horizon"] is None
    assert not pays_at_the_end("multi-objective", {"overdue": 0, "fairness": 0})
    assert pays_at_the_end("multi-objective", {"overdue": 0})


def test_a_horizon_much_shorter_than_the_episode_is_warned_about():
    assert not horizon_warnings(None, seconds=1e6, at_the_end=True)
    assert not horizon_warnings(6e5, seconds=1e6, at_the_end=True)
    (text,) = horizon_warnings(7200.0, seconds=1e6, at_the_end=True)
    assert "rewards fade within 7,200 s" in text
    assert not horizon_warnings(7200.0, seconds=2e5, at_the_end=False)
    assert horizon_warnings(7200.0, seconds=1e6, at_the_end=False)


def test_train_prints_the_warnings_and_the_returns_of_rivals(tmp_path, capsys):
    small = ["--steps", "64", "--envs", "4", "--episodes", "2", "--set", "episode_jobs=24"]
    small += ["--config", "rollout=8", "--config", "minibatches=1", "--config", "horizon=100"]
    out = tmp_path / "run"
    argv = ["train", "ppo", "--preset", "lookahead", *small, "--out", str(out)]
    assert main([*argv, "--against", "fcfs+skip,sjf+easy"]) == 0
    assert "rewards fade within 100 s" in capsys.readouterr().err
    summary = json.loads((out / "summary.json").read_text())
    report = summary["report"]
    assert list(report["against"]) == ["random action", "fcfs+skip", "sjf+easy"]
    # An agent that starts jobs one by one can do what the first does, and the log decides.
    assert report["return"]["fcfs+skip"] == pytest.approx(
        sum(report["return_of_episodes"]["fcfs+skip"]) / report["episodes"]
    )
    assert len(report["return_of_episodes"]["policy"]) == report["episodes"]


def test_the_return_of_a_rival_is_that_of_its_log():
    options = {"preset": "lookahead", "episode_jobs": 40, "reward": "jct"}
    episodes = EpisodeSet("pick", options, part="report", episodes=3)
    (scores,) = episodes.heuristics(["sjf+skip"])
    assert scores.episode_return == []
    returns = episodes.with_return(scores).episode_return
    totals = [-40 * jct for jct in scores.metrics["mean_jct"]]
    assert returns == pytest.approx(totals)


def test_in_a_small_window_the_return_of_a_rival_is_that_of_an_agent_that_sees_no_more():
    returns = {}
    for window in (2, 200):
        options = {"preset": "drl-scheduler-busy", "episode_jobs": 200, "window": window}
        episodes = EpisodeSet("pick", {**options, "reward": "jct"}, part="report", episodes=2)
        (scores,) = episodes.heuristics(["sjf+skip"])
        found = episodes.with_return(scores)
        returns[window] = sum(found.episode_return)
        assert found.metrics == scores.metrics
    assert returns[200] == pytest.approx(-200 * sum(scores.metrics["mean_jct"]))
    assert returns[2] < 1.01 * returns[200]


def test_a_rival_that_cannot_be_asked_has_no_return():
    options = {"episode_jobs": 16, "load": 1.5, "max_restarts": 1}
    episodes = EpisodeSet("preempt", options, part="report", episodes=2)
    (scores,) = episodes.heuristics(["sjf"])
    assert episodes.with_return(scores).episode_return == []


@pytest.mark.parametrize("preset", [name for name, one in PRESETS.items() if one.rivals])
def test_rivals_fit_the_preset(preset):
    seat = PRESETS[preset].seat
    plan = Environments(seat, num=1, seed=0, options={"preset": preset}).plan
    rivals = rivals_of(plan)
    assert set(rivals) <= set(PRESETS[preset].rivals)
    assert len(rivals) >= 5


def test_without_run_times_no_rival_needs_them():
    blind = Environments("pick", num=1, seed=0, options={"preset": "rltune"}).plan
    knowing = {"preset": "rltune", "knowledge": "exact", "features": {"jobs": ["gpus"]}}
    assert "sjf" not in rivals_of(blind)
    assert "sjf" in rivals_of(Environments("pick", num=1, seed=0, options=knowing).plan)


def test_a_busier_preset_has_more_to_decide():
    """The spread of mean waits over rules, in both variants of the two presets that have them."""
    for name, rules in (
        ("drl-scheduler", ("fcfs+skip", "sjf+skip")),
        ("lsf", ("fcfs+skip@best-fit", "fcfs+skip@worst-fit")),
    ):
        spread = {}
        for preset in (name, PRESETS[name].busy):
            options = {"preset": preset, "episode_jobs": 250}
            episodes = EpisodeSet(PRESETS[name].seat, options, part="report", episodes=4)
            waits = [scores.mean("mean_jct") for scores in episodes.heuristics(rules)]
            spread[preset] = abs(waits[0] / waits[1] - 1)
        assert spread[name] < 0.02
        assert spread[PRESETS[name].busy] > 0.05


def test_a_replay_that_holds_less_than_an_episode_is_warned_about(tmp_path):
    said = []
    train(
        "d3qn",
        env="Pick",
        env_options={"episode_jobs": 64, "cluster": "uniform:1x4"},
        config={"capacity": 200, "warmup": 10, "rollout": 2, "batch": 8, "n_step": 2},
        steps=16,
        envs=8,
        episodes=2,
        out=tmp_path / "run",
        remark=said.append,
    )
    assert any("the replay holds 25 steps of each environment" in text for text in said)


def test_every_algorithm_of_a_recipe_exists():
    for preset, algorithm in RECIPES:
        assert preset in PRESETS
        assert algorithm in ALGORITHMS
