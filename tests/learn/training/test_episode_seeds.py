"""Seeds of episodes: any 32-bit number, and no training episode is one of VAL or REPORT."""

import numpy as np
import pytest

from berthline.env.episodes_source import MOST_SLOTS, slot_of
from berthline.learn.training.episode_seeds import (
    LARGE_SEED,
    MOST_SEED,
    REPORT_SEED,
    TRAIN_SEEDS,
    VAL_SEED,
    test_seed,
    training_seed,
)

test_seed.__test__ = False


@pytest.mark.parametrize("seed", [0, 1, 42, 899, 900, 1234, 65_536, 2**31, MOST_SEED])
def test_training_stays_out_of_the_held_out_seeds(seed):
    first = training_seed(seed)
    last = first + TRAIN_SEEDS - 1
    assert last < VAL_SEED or first >= LARGE_SEED
    assert last < MOST_SLOTS
    assert slot_of(last) == last, "seeds this large would be spread over all slots"


def test_small_seeds_keep_their_episodes():
    assert [training_seed(seed) for seed in (0, 1, 899)] == [0, 1_000_000, 899_000_000]


def test_runs_with_large_seeds_rarely_share_episodes():
    firsts = np.sort([training_seed(seed) for seed in range(900, 1900)])
    assert (np.diff(firsts) > 256).mean() > 0.99


@pytest.mark.parametrize("seed", [0, 42, 49_999_999, 50_000_000, MOST_SEED])
def test_test_seeds_are_seeds_of_report(seed):
    assert REPORT_SEED <= test_seed(seed) < LARGE_SEED
