"""ReplayBuffer: transitions, probabilities and weights against a direct computation."""

import numpy as np
import pytest
import torch

from berthline.errors import ConfigError
from berthline.learn.training import checkpoint
from berthline.learn.training.replay_buffer import ReplayBuffer, SumTree


def _play(
    replay: ReplayBuffer, steps: int, seed: int = 0, *, num_regimes: int = 1
) -> list[list[dict]]:
    """Fill a replay with made-up steps; return them, by environment.

    A state is one unique number.
    """
    draws = np.random.default_rng(seed)
    num = replay.num_envs
    played: list[list[dict]] = [[] for _ in range(num)]
    count = 0.0
    for _ in range(steps):
        states = count + 1 + np.arange(num, dtype=np.float32)
        lasts = states + num
        count += 2 * num
        masks = draws.random((num, 3)) < 0.5
        last_masks = draws.random((num, 3)) < 0.5
        regimes = draws.integers(0, num_regimes, num) ** 2 // max(1, num_regimes - 1)
        actions, rewards = draws.integers(0, 3, num), draws.normal(size=num)
        end = draws.random(num)
        terminated, truncated = end < 0.1, (end >= 0.1) & (end < 0.25)
        replay.see(states[:, None], masks, regimes)
        cut = np.flatnonzero(truncated)
        # Steps have different durations, hence different discounts.
        discounts = draws.uniform(0.7, 1.0, num)
        replay.act(
            actions,
            rewards,
            discounts,
            terminated,
            truncated,
            lasts[cut, None],
            last_masks[cut],
        )
        for env in range(num):
            played[env].append(
                {
                    "state": states[env],
                    "mask": masks[env],
                    "regime": regimes[env],
                    "action": actions[env],
                    "reward": rewards[env],
                    "discount": discounts[env],
                    "terminated": terminated[env],
                    "last": (lasts[env], last_masks[env]) if truncated[env] else None,
                }
            )
    return played


def _expected(played: list[list[dict]], n_step: int) -> dict[float, tuple]:
    """Return (action, return, discount, last state, its mask) of completed transitions."""
    found = {}
    for steps in played:
        for begin, step in enumerate(steps):
            total, discount = 0.0, 1.0
            for k in range(n_step):
                if begin + k == len(steps):
                    break
                now = steps[begin + k]
                total += discount * now["reward"]
                discount *= now["discount"]
                if now["terminated"]:
                    found[step["state"]] = (step["action"], total, 0.0, None, None)
                    break
                if now["last"]:
                    found[step["state"]] = (step["action"], total, discount, *now["last"])
                    break
            else:
                if begin + n_step < len(steps):
                    after = steps[begin + n_step]
                    found[step["state"]] = (
                        step["action"],
                        total,
                        discount,
                        after["state"],
                        after["mask"],
                    )
    return found


@pytest.mark.parametrize("n_step", [1, 3, 5])
@pytest.mark.parametrize("capacity", [61, 400])
def test_transitions_are_those_of_the_definition(n_step, capacity):
    replay = ReplayBuffer(capacity, 4, size=1, actions=3, n_step=n_step)
    expected = _expected(_play(replay, 60), n_step)
    batch = replay.sample(3000, torch.Generator().manual_seed(0), importance=1.0)
    drawn = set()
    for i in range(3000):
        state = float(batch.observations[i, 0])
        action, total, discount, last, mask = expected[state]
        drawn.add(state)
        assert batch.actions[i] == action
        assert batch.returns[i] == pytest.approx(total, abs=1e-5)
        assert batch.discounts[i] == pytest.approx(discount)
        if last is not None:
            assert batch.following[i, 0] == last
            assert (batch.following_masks[i].numpy() == mask).all()
    assert len(drawn) == len(replay)
    if capacity == 400:
        assert drawn == set(expected)
    else:
        # Only the oldest ones have been overwritten.
        assert min(drawn) > min(expected)
        assert drawn >= {state for state in expected if state > max(expected) - 40}


def test_the_tree_finds_what_adding_up_finds():
    draws = np.random.default_rng(3)
    tree, weights = SumTree(37), np.zeros(37)
    for _ in range(20):
        slots = draws.choice(37, 9, replace=False)
        values = draws.random(9) * (draws.random(9) < 0.7)
        tree.set(slots, values)
        weights[slots] = values
        assert tree.total == pytest.approx(weights.sum())
        assert (tree.get(np.arange(37)) == weights).all()
        targets = draws.random(50) * tree.total
        assert (tree.find(targets) == np.searchsorted(np.cumsum(weights), targets, "right")).all()
    # At the very end, rounding must not lead to a slot without weight.
    assert (weights[tree.find(np.full(3, tree.total))] > 0).all()


def test_chances_are_as_errors_ask_and_weights_make_up_for_them():
    replay = ReplayBuffer(80, 4, size=1, actions=3, exponent=0.5)
    _play(replay, 10)
    slots = np.flatnonzero(replay.tensors()["priorities"].numpy())
    errors = np.random.default_rng(1).normal(size=len(slots)) * 3
    replay.set_errors(slots, errors)
    chances = (np.abs(errors) + 1e-3) ** 0.5
    chances /= chances.sum()
    batch = replay.sample(40_000, torch.Generator().manual_seed(1), importance=0.4)
    seen = np.bincount(batch.slots, minlength=80)[slots] / 40_000
    assert seen == pytest.approx(chances, abs=0.006)
    weights = dict(zip(slots, (len(slots) * chances) ** -0.4, strict=True))
    expected = np.array([weights[slot] for slot in batch.slots])
    assert batch.weights.numpy() == pytest.approx(expected / expected.max(), rel=1e-5)


def test_regimes_are_drawn_from_alike():
    replay = ReplayBuffer(2000, 4, size=1, actions=3, num_regimes=4)
    played = _play(replay, 200, num_regimes=4)
    regime_of = {step["state"]: step["regime"] for steps in played for step in steps}
    present = sorted(set(regime_of.values()))
    assert present == [0, 1, 3]  # one of four has none
    assert replay.counts[0] > 1.5 * replay.counts[1]
    batch = replay.sample(9000, torch.Generator().manual_seed(1), importance=0.4)
    drawn = [regime_of[float(state)] for state in batch.observations[:, 0]]
    assert np.bincount(drawn, minlength=4) / 9000 == pytest.approx(
        [1 / 3, 1 / 3, 0, 1 / 3], abs=0.02
    )
    assert (batch.weights == 1).all()


def test_a_saved_replay_goes_on_with_the_same_bits(tmp_path):
    def fresh() -> ReplayBuffer:
        return ReplayBuffer(70, 4, size=1, actions=3, n_step=3, exponent=0.6, num_regimes=3)

    def go_on(replay: ReplayBuffer, seed: int) -> torch.Tensor:
        _play(replay, 11, seed, num_regimes=3)
        generator = torch.Generator().manual_seed(seed)
        batch = replay.sample(64, generator, importance=0.5)
        replay.set_errors(batch.slots, batch.returns.numpy())
        return torch.cat((batch.observations[:, 0], batch.returns, batch.weights))

    replay = fresh()
    for seed in range(3):
        go_on(replay, seed)
        tensors = {f"replay.{name}": tensor for name, tensor in replay.tensors().items()}
        path = checkpoint.save(tmp_path, "last", seed, tensors, {"state": replay.state()})
    loaded = checkpoint.load(path)
    again = fresh()
    again.restore(loaded, "replay", loaded.facts["state"])
    for seed in range(5, 9):
        assert torch.equal(go_on(again, seed), go_on(replay, seed))


def test_too_small_a_replay_is_refused():
    with pytest.raises(ConfigError, match="a replay of 47 states"):
        ReplayBuffer(47, 4, size=1, actions=2, n_step=5)
