"""Defaults of seats: one table, the same wherever an environment is made."""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium
import pytest
from tests.env.agents import SEATS

import berthline as bl
from berthline.deploy.given_policy import seat_and_options
from berthline.env.options import Options, resolve_options
from berthline.env.presets import PRESETS
from berthline.env.registration import SEATS as NAMES
from berthline.env.registration import env_id
from berthline.env.seat_defaults import SEAT_DEFAULTS, with_defaults

IDS = {seat: env_id(name) for name, seat in NAMES.items()}
PLAIN = Options()


def test_every_seat_has_a_row_of_options() -> None:
    assert tuple(SEAT_DEFAULTS) == SEATS
    for seat, row in SEAT_DEFAULTS.items():
        differs = {name: value for name, value in row.items() if getattr(PLAIN, name) != value}
        assert differs == row, f"a default of {seat} is the plain one"


@pytest.mark.parametrize("seat", SEATS)
def test_one_environment_and_a_batch_have_them(seat: str) -> None:
    env: Any = gymnasium.make(IDS[seat]).unwrapped
    envs: Any = gymnasium.make_vec(IDS[seat], num_envs=2)
    assert env.plan.options == envs.plan.options == resolve_options(seat, {})
    shown = dataclasses.asdict(env.plan.options)
    left_out = {"no_op"} if shown["semantics"] == "rank" else set()
    for name, value in SEAT_DEFAULTS[seat].items():
        assert shown[name] == value or name in left_out


@pytest.mark.parametrize("seat", SEATS)
def test_training_has_them(seat: str) -> None:
    pytest.importorskip("torch")
    from berthline.learn.training.train import train_config

    algorithm = "ppo" if seat == "pickplace" else "d3qn"
    config = train_config(algorithm, env=seat)
    # How training rewards decisions does not change the task.
    options = {**config.options, "credit": None}
    assert resolve_options(seat, options) == resolve_options(seat, {})


@pytest.mark.parametrize("seat", SEATS)
def test_stored_options__stay_as_they_are_whatever_the_defaults(seat: str) -> None:
    stored = with_defaults(seat, {"window": 7})
    assert resolve_options(seat, stored, are_complete=True) == resolve_options(seat, {"window": 7})
    assert with_defaults(seat, stored) == stored


def test_another_workload_keeps_its_own_load_and_a_trace_its_cluster() -> None:
    drawn = resolve_options("pick", {"workload": "bursty"})
    assert (drawn.load, drawn.dials) == (None, {})
    assert drawn.cluster == SEAT_DEFAULTS["pick"]["cluster"]
    jobs = bl.generate("synthetic", cluster="uniform:2x8", jobs=40)
    logged = resolve_options("pick", {"workload": jobs})
    assert (logged.load, logged.dials, logged.cluster) == (None, {}, PLAIN.cluster)


def test_without_run_times__no_default_needs_them() -> None:
    for seat in SEATS:
        schedulers = {"schedulers": ["fcfs", "smallest-first"]} if seat == "meta" else {}
        env: Any = gymnasium.make(IDS[seat], knowledge="none", **schedulers)
        env.reset(seed=1)


@pytest.mark.parametrize(
    ("seat", "given"),
    [
        ("pick", {}),
        ("pick", {"window": 64, "load": None, "semantics": "mask", "no_op": "always"}),
        ("pick", {"preset": "lookahead"}),
        ("gate", {"window": 3, "features": None}),
    ],
)
def test_options_of_a_made_environment__are_those_it_was_made_with(
    seat: str, given: dict[str, Any]
) -> None:
    made: Any = gymnasium.make(IDS[seat], **given)
    found, options = seat_and_options(made, {})
    again = dataclasses.replace(resolve_options(found, options), preset=given.get("preset"))
    assert (found, again) == (seat, made.unwrapped.plan.options)


def test_presets__begin_with_plain_options() -> None:
    for name, preset in PRESETS.items():
        options = resolve_options(preset.seat, {"preset": name})
        for option, plain in dataclasses.asdict(PLAIN).items():
            if option not in preset.options and option != "preset":
                assert getattr(options, option) == plain, (name, option)
