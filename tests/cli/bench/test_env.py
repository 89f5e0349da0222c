"""What the speeds of environments are about."""

from __future__ import annotations

import gymnasium
import pytest

from berthline.cli.bench.env import CASES, EPISODE_JOBS, _make


def test_the_default_task_leads() -> None:
    """Users who type `gym.make` get this speed, not that of eight numbers for each job."""
    first, alone = CASES[:2]
    assert (first.env, first.options, first.envs) == ("Pick", {}, 256)
    assert (alone.env, alone.options, alone.envs) == ("Pick", {}, 1)
    plan = gymnasium.make("berthline/Pick-v0").unwrapped.plan  # type: ignore[attr-defined]
    assert plan.options.episode_jobs == EPISODE_JOBS


@pytest.mark.parametrize("case", [case for case in CASES if "narrow" in case.name])
def test_narrow_cases_do_not_follow_the_defaults(case) -> None:  # type: ignore[no-untyped-def]
    env = _make(case)
    options = env.unwrapped.plan.options
    jobs_or_nodes = (64, 8) if case.env == "Pick" else (64, 2)
    tables = {name: space.shape for name, space in env.single_observation_space.items()}
    assert jobs_or_nodes in tables.values(), tables
    assert (options.semantics, options.reward, options.load) == (
        "mask",
        "mean-jct-hours",
        case.options["load"],
    )
    env.close()


def test_a_case_and_its_narrow_one_differ_in_their_tables_alone() -> None:
    by_name = {case.name: case for case in CASES}
    pairs = [(case, by_name[case.narrow]) for case in CASES if case.narrow is not None]
    assert len(pairs) == 3
    for every, narrow in pairs:
        options = [
            {name: value for name, value in case.options.items() if name != "features"}
            for case in (every, narrow)
        ]
        assert options[0] == options[1]
        tables = [set(_make(case).single_observation_space.keys()) for case in (every, narrow)]
        assert tables[1] == {"jobs", "action_mask"} < tables[0]
