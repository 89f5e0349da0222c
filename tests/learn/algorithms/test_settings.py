"""Settings of algorithms: which values are refused, and with which errors."""

from __future__ import annotations

import functools

import msgspec
import pytest

from berthline.cli.train.command import Train, parameters
from berthline.errors import ConfigError
from berthline.learn.algorithms.algorithm_table import ALGORITHMS, config_of
from berthline.learn.algorithms.settings import SETTINGS, setting_rows
from berthline.learn.training.defaults import default_settings
from berthline.learn.training.train import train_config


def config_of_command(algorithm, **options):
    return train_config(algorithm, **parameters(Train(algorithm=algorithm, **options)))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_defaults_are_taken(algorithm):
    for seat in ("pick", "gate"):
        made = config_of(algorithm, default_settings(algorithm, seat))
        again = config_of(algorithm, msgspec.to_builtins(made))
        assert again == made, "every setting has a type that accepts its default"


@pytest.mark.parametrize(
    ("algorithm", "setting", "expected"),
    [
        ("ppo", "learning_rate=-1", "more than 0, at most 1"),
        ("ppo", "learning_rate=0", "more than 0, at most 1"),
        ("ppo", "learning_rate=NaN", "more than 0, at most 1"),
        ("ppo", "learning_rate=1e40", "more than 0, at most 1"),
        ("ppo", "learning_rate=fast", "a number"),
        ("ppo", "learning_rate=true", "a number"),
        ("ppo", "minibatches=0", "a whole number from 1"),
        ("ppo", "minibatches=-1", "a whole number from 1"),
        ("ppo", "minibatches=2.5", "a whole number from 1"),
        ("ppo", "minibatches=100000", "an iteration has 4,096"),
        ("ppo", "rollout=0", "a whole number from 1"),
        ("ppo", "epochs=0", "a whole number from 1"),
        ("ppo", "horizon=0", "more than 0"),
        ("ppo", "horizon=-5", "or null"),
        ("ppo", "horizon=None", "or null"),
        ("ppo", "discount=2", "0 or more, at most 1"),
        ("ppo", "clip=-1", "more than 0"),
        ("ppo", "trace=5", "0 or more, at most 1"),
        ("ppo", "max_gradient=-1", "more than 0"),
        ("ppo", "target_kl=-1", "more than 0"),
        ("ppo", "entropy_schedule=never", "one of constant, linear"),
        ("d3qn", "learning_rate=-1", "more than 0"),
        ("d3qn", "batch=0", "a whole number from 1"),
        ("d3qn", "epsilon=7", "0 or more, at most 1"),
        ("d3qn", "gap=-5", "0 or more"),
        ("d3qn", "dueling=perhaps", "True or False"),
        ("sac", "temperature=0", "more than 0"),
        ("meta-dqn", "regimes=0", "a whole number from 1"),
        ("bc", "epochs=0", "a whole number from 1"),
        ("bc", "learning_rate=-1", "more than 0"),
        ("bc", "own_share=[1]", "0 or more, at most 1"),
    ],
)
def test_senseless_values_are_refused(algorithm, setting, expected):
    with pytest.raises(ConfigError) as raised:
        config_of_command(algorithm, config=(setting,))
    key = setting.partition("=")[0]
    assert raised.value.what.startswith(f"{key} of {algorithm} is ")
    assert expected in raised.value.expected


def test_values_as_text_and_null_are_taken():
    found = config_of("ppo", {"horizon": "null", "epochs": "3", "trace": 1, "target_kl": None})
    assert (found.horizon, found.epochs, found.trace, found.target_kl) == (None, 3, 1.0, None)
    assert isinstance(found.trace, float)


def test_returns_that_have_a_chance_are_in_order():
    with pytest.raises(ConfigError, match="least_return of d3qn is 5"):
        config_of("d3qn", {"distributional": True, "least_return": 5})


@pytest.mark.parametrize(
    ("given", "what", "expected"),
    [
        ({"hidden": "99999999,99999999"}, "hidden is 99999999,99999999", "1 to 4,096"),
        ({"hidden": "0"}, "hidden is 0", "1 to 4,096"),
        ({"least_gain": float("nan")}, "least_gain is nan", "0 or more"),
        ({"threads": 50_000}, "threads is 50000", "1 to 1,024"),
        ({"seed": 2**32}, "the seed is 4294967296", "0 to 4,294,967,295"),
        ({"seed": 2**32 - 1, "seeds": 2}, "the seeds are 4294967295 to 4294967296", "0 to"),
    ],
)
def test_senseless_options_are_refused(given, what, expected):
    with pytest.raises(ConfigError) as raised:
        config_of_command("ppo", **given)
    assert raised.value.what == what
    assert expected in raised.value.expected


def test_the_last_seeds_and_many_threads_are_taken():
    assert config_of_command("ppo", seed=2**32 - 5, seeds=5, threads=1024).seed == 2**32 - 5


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_setting_has_a_range_and_a_meaning(algorithm):
    rows = setting_rows(algorithm, ALGORITHMS[algorithm].config)
    assert [row.name for row in rows] == list(ALGORITHMS[algorithm].config.__struct_fields__)
    for row in rows:
        assert row.default
        assert row.values
        assert row.meaning
        default = "" if row.default == "empty" else row.default
        plain = functools.partial(config_of_command, algorithm, set=("credit=null",))
        typed = plain(config=(f"{row.name}={default}",)) if default else None
        assert typed is None or typed.settings == plain().settings


def test_no_setting_is_without_an_algorithm():
    fields = {name for entry in ALGORITHMS.values() for name in entry.config.__struct_fields__}
    assert fields == set(SETTINGS)


def test_an_algorithm_with_one_seat_takes_it():
    assert config_of_command("meta-dqn").seat == "meta"
    chosen = config_of_command("meta-dqn", set=('schedulers=["fcfs+easy", "sjf+easy"]',))
    assert chosen.options["schedulers"] == ("fcfs+easy", "sjf+easy")
    assert config_of_command("meta-dqn", preset="lookahead").seat == "pick"
    assert config_of_command("ppo").seat == "pick"
