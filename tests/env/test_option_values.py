"""Every option accepts its documented values and refuses others with an error, not a traceback."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import math
import re
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import pytest
from tests.env.agents import SEATS, SMALL, first_allowed, options_of

import berthline as bl
from berthline.env import options as option_module
from berthline.env import registration
from berthline.env.make_plan import make_plan
from berthline.env.options import MOST_ROWS, ONLY_OF, Options, resolve_options
from berthline.env.registration import env_id
from berthline.env.single import SchedulingEnv
from berthline.errors import BerthlineError, ConfigError
from berthline.traces.formats.swf_writer import write_swf

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [field.name for field in dataclasses.fields(Options)]
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    2**33,
    2**40,
    10**400,
    math.nan,
    math.inf,
    "x",
    "",
    [],
    ["x"],
    [5],
    (0.5,),
    {},
    {"a": 3},
    {"jobs": None},
    {5: 5},
    {"jct": "x"},
    {"restart": "a"},
    {"a": (3, 4)},
    object(),
    np.int64(3),
    np.float32(0.5),
    np.array([0.5, 1.0]),
]


@pytest.mark.parametrize("name", NAMES)
def test_odd_values__work_or_are_refused_in_words(name: str) -> None:
    for seat in SEATS:
        for value in ODD:
            with contextlib.suppress(BerthlineError):
                make_plan(seat, resolve_options(seat, {**SMALL, name: value}))


@pytest.mark.parametrize("name", NAMES)
def test_odd_values__gymnasium_makes_it_or_says_why_not(name: str) -> None:
    seats = {seat: env_id(env) for env, seat in registration.SEATS.items()}
    seat = ONLY_OF.get(name, ("backfill",))[0]
    for value in ODD:
        with contextlib.suppress(BerthlineError):
            env = gymnasium.make(seats[seat], **{**SMALL, name: value})
            _, info = env.reset(seed=0)
            env.step(first_allowed(info["action_mask"], seat))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window", None),
        ("window", True),
        ("window", "8"),
        ("window", MOST_ROWS + 1),
        ("running_window", 2**31 - 1),
        ("lookahead_size", 2**31 - 1),
        ("load", (0.5,)),
        ("load", (0.5, "x")),
        ("knowledge", None),
        ("cluster", None),
        ("workload", 5),
        ("features", 5),
        ("features", {"jobs": None}),
        ("features", {5: ["wait"]}),
        ("reward", ["jct"]),
        ("reward", {"a": 3}),
        ("reward", {"a": ("second", 3)}),
        ("reward_weights", {"jct": "x"}),
        ("horizon_factor", "x"),
        ("horizon_factor", math.inf),
        ("lookahead_seconds", None),
        ("conditions", {"restart": "a"}),
        ("dials", None),
        ("running_order", 4),
        ("preset", ["rltune"]),
        ("every_events", 2**33),
        ("protect_head", "no"),
        ("schedulers", "fcfs"),
        ("experts", [None]),
    ],
)
def test_values_of_the_wrong_kind__are_refused_with_the_option(name: str, value: Any) -> None:
    seat = ONLY_OF.get(name, ("pick",))[0]
    with pytest.raises(ConfigError) as caught:
        SchedulingEnv(seat, **{**options_of(seat), name: value})
    assert name in str(caught.value)
    assert caught.value.expected


def test_numbers_of_numpy__are_numbers() -> None:
    given = {
        "episode_jobs": np.int32(16),
        "window": np.int64(5),
        "load": (np.float32(0.5), np.int64(1)),
        "horizon_factor": np.float32(2),
        "max_steps": np.uint8(9),
        "reward_weights": {"wait": np.float64(2)},
        "conditions": {"restart": np.int64(30)},
    }
    options = resolve_options("pick", given)
    assert (options.window, options.load, options.horizon_factor) == (5, (0.5, 1.0), 2.0)
    assert type(options.window) is int
    assert type(options.horizon_factor) is float
    env = SchedulingEnv("pick", **{**SMALL, **given})
    assert env.reset(seed=1)[0]["jobs"].shape[0] == 5
    assert resolve_options("backfill", {"protect_head": np.False_}).protect_head is False


def test_load__a_list_of_two_is_a_range() -> None:
    assert resolve_options("pick", {"load": [0.5, 1]}).load == (0.5, 1.0)


def test_every_option_has_a_type() -> None:
    assert {*option_module._TYPES} == {*NAMES} - {"features", "reward"}


def test_options_of_one_seat__are_those_that_say_so() -> None:
    text = Options.__doc__ or ""
    said = {
        name: tuple(re.findall(r"\w+", seats.lower().replace(" and ", " ")))
        for name, seats in re.findall(r"(\w+): ([\w, ]+) only:", text)
    }
    assert said == ONLY_OF


OTHERS: dict[str, Any] = {
    "semantics": "wait",
    "rerank": True,
    "no_op": "never",
    "schedulers": ["nope"],
    "every_events": 2,
    "every_seconds": 1.0,
    "placements": ["x"],
    "protect_head": False,
    "max_holds": 3,
    "hold_seconds": 1.0,
    "recheck": 1.0,
    "min_run": 1.0,
    "max_restarts": 3,
}


@pytest.mark.parametrize("seat", SEATS)
@pytest.mark.parametrize("name", ONLY_OF)
def test_options_of_another_seat__are_refused_unless_they_are_the_default(
    seat: str, name: str
) -> None:
    default = getattr(Options(), name)
    assert getattr(resolve_options(seat, {name: default}), name) == default
    if seat not in ONLY_OF[name]:
        with pytest.raises(ConfigError, match="only in the environment"):
            resolve_options(seat, {name: OTHERS[name]})


def test_unknown_seat__is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown seat 'pik'"):
        SchedulingEnv("pik")


def test_paths__are_taken_as_texts(tmp_path: Path) -> None:
    cluster = tmp_path / "lab.toml"
    cluster.write_text("[[nodes]]\ncount = 2\ngpus = 4\n")
    jobs = bl.generate("synthetic", cluster=cluster, jobs=40, seed=1)
    write_swf(jobs, tmp_path / "trace.swf")
    given = {"workload": tmp_path / "trace.swf", "cluster": cluster, "episode_jobs": 10}
    given["start"] = "empty"
    env: Any = gymnasium.make("berthline/Pick-v0", **given).unwrapped
    env.reset(seed=1)
    assert (len(env.workload()), env.plan.cluster.total_gpus) == (10, 8)
    assert env.plan.options.workload == str(tmp_path / "trace.swf")


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("conditions", "restart"),
        ("reward_weights", "jct"),
        ("window_formulas", "-wait"),
        ("schedulers", "sjf+easy"),
        ("placements", "best-fit"),
        ("experts", "sjf"),
    ],
)
def test_lists_and_mappings__the_example_is_one_of_the_option(name: str, example: str) -> None:
    seat = ONLY_OF.get(name, ("pick",))[0]
    with pytest.raises(ConfigError, match=name) as caught:
        resolve_options(seat, {name: 5})
    text = re.search("such as ([^;]*)", caught.value.expected)
    assert text is not None
    assert example in text[1]
    SchedulingEnv(seat, **{**options_of(seat), name: ast.literal_eval(text[1])})


def test_split_gap__without_a_split_is_refused() -> None:
    default = Options().split_gap
    SchedulingEnv("pick", **SMALL, split_gap=default)
    jobs = bl.generate("synthetic", cluster="uniform:2x4", jobs=40, seed=1)
    for workload in ("synthetic", jobs):
        options = {**SMALL, "load": None, "workload": workload, "split_gap": 5}
        with pytest.raises(ConfigError, match="split_gap is 5"):
            SchedulingEnv("pick", **options)
