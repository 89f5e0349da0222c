"""Packed observations: networks give the same scores as for whole windows."""

import numpy as np
import pytest
import torch

from berthline.learn.networks.networks import Network, NetworkConfig
from berthline.learn.networks.packed_rows import join
from berthline.learn.training.environments import Environments

OPTIONS = {"episode_jobs": 40, "load": 2.0, "window": 12, "running_window": 8}


def _observed(seat):
    envs = Environments(seat, num=9, seed=2, options={**OPTIONS, "lookahead": "sorted"})
    envs.scatter(seed=3)
    torch.manual_seed(4)
    network = Network(envs.layout, NetworkConfig(hidden=(8, 8)), gain=1.0)
    return network, torch.from_numpy(envs.observations.copy())


@pytest.mark.parametrize("seat", ["pick", "place", "gate", "backfill", "preempt", "meta"])
def test_packed_rows_give_the_scores_of_whole_windows(seat):
    network, flat = _observed(seat)
    scores, summary = network(network.observed(flat))
    network.body.packs = False
    dense_scores, dense_summary = network(flat)
    torch.testing.assert_close(scores, dense_scores)
    torch.testing.assert_close(summary, dense_summary)


def test_some_observations_may_be_chosen():
    network, flat = _observed("pick")
    chosen = torch.tensor([5, 3, 3, 8])
    scores, _ = network(network.observed(flat).select(chosen))
    torch.testing.assert_close(scores, network(flat[chosen])[0])


def test_environments_are_scattered_and_say_how_much_time_passes():
    envs = Environments("pick", num=32, seed=2, options={**OPTIONS, "reward": "mean-jct-hours"})
    envs.scatter(seed=3)
    assert len({len(entry["actions"]) for entry in envs.position()}) > 8
    left, clocks, asked = np.ones(32, bool), np.zeros(32), 0
    for entry in envs.position():
        assert entry["episode"] == 0
    fresh = Environments("pick", num=32, seed=2, options={**OPTIONS, "reward": "mean-jct-hours"})
    while left.any():
        _, terminated, truncated = fresh.step(fresh.masks.argmax(axis=1))
        clocks[left] += fresh.seconds[left]
        over = np.flatnonzero((terminated | truncated) & left)
        if over.size:
            scores = fresh.scores(over)
            # Time before the first question belongs to no step.
            assert (clocks[over] <= scores["makespan"] + 1e-6).all()
            had_questions = scores["length"] > 1
            assert (clocks[over] > 0.5 * scores["makespan"])[had_questions].all()
            asked += had_questions.sum()
            np.testing.assert_allclose(-3600 * scores["return"], scores["mean_jct"], rtol=0.02)
            left[over] = False
    assert asked > 16


@pytest.mark.parametrize("seat", ["pick", "place", "meta"])
def test_joined_observations_are_those_of_all_parts(seat):
    network, flat = _observed(seat)
    parts = [network.observed(flat[begin : begin + 3]) for begin in (0, 3, 6)]
    whole, joined = network.observed(flat), join(parts)
    for name, table in whole.tables.items():
        for field in ("rows", "owner", "place", "counts"):
            assert torch.equal(getattr(table, field), getattr(joined.tables[name], field))
    torch.testing.assert_close(network(joined)[0], network(flat)[0])


@pytest.mark.parametrize("kind", ["mlp", "kernel"])
def test_observed_copies_do_not_change_with_the_environments(kind):
    envs = Environments("pick", num=4, seed=2, options=OPTIONS)
    network = Network(envs.layout, NetworkConfig(kind=kind, hidden=(8, 8)), gain=1.0)
    before = torch.from_numpy(envs.observations.copy())
    seen = network.observed(torch.from_numpy(envs.observations), copy=True)
    envs.step(envs.masks.argmax(axis=1))
    torch.testing.assert_close(network(seen)[0], network(before)[0])
