"""Seeds of episodes: those of training, of VAL and of REPORT never meet.

An environment's episodes follow from its seed (`env/episodes_source.py`). The seeds below 2**31 are
cut into ranges:

    0 to 899,999,999          training runs with seeds 0 to 899, a million each
    from 900,000,000 on       VAL, the same for every run
    from 950,000,000 on       REPORT, the same for every run
    from 1,000,000,000 on     training runs with larger seeds, each at a random place

Two runs with larger seeds may share some episodes, which harms nothing; a training episode is never
one of VAL or REPORT. Nor is any episode of a batch that is reset with one seed, except those of its
first environment: the others have seeds from 2**31 on.
"""

from __future__ import annotations

from berthline.env.episodes_source import NEXT_ENVIRONMENT
from berthline.random_streams import stream_key

TRAIN_SEEDS, VAL_SEED, REPORT_SEED, LARGE_SEED = 1_000_000, 900_000_000, 950_000_000, 1_000_000_000
MOST_SEED = 2**32 - 1
"""The largest seed of a run."""


def training_seed(seed: int) -> int:
    """Return the seed of the first environment of a run; the others have the next ones.

    Example:
        >>> training_seed(3)
        3000000
        >>> training_seed(1234) >= LARGE_SEED
        True
    """
    if seed < VAL_SEED // TRAIN_SEEDS:
        return seed * TRAIN_SEEDS
    places = NEXT_ENVIRONMENT - TRAIN_SEEDS - LARGE_SEED
    return LARGE_SEED + stream_key(seed, "training") % places


def test_seed(seed: int) -> int:
    """Return the seed of the REPORT episode that a test seed names.

    Example:
        >>> test_seed(42)
        950000042
    """
    places = LARGE_SEED - REPORT_SEED
    return REPORT_SEED + (seed if seed < places else stream_key(seed, "test") % places)
