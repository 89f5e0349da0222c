"""Shipped networks: policies that were trained on the frozen tasks, each with a card.

A network is a folder `shipped/networks/NAME`: a checkpoint without its optimiser, and `card.json`.
Its name can be used wherever a scheduler can, and it runs in the native core, without torch. Like a
task it never changes: a better one gets another name.
"""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec

from berthline.errors import PolicyError

FOLDER = Path(__file__).parent / "shipped" / "networks"
CARD = "card.json"


class NetworkCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A network that was trained on a task.

    Attributes:
        name: its name as a scheduler.
        task: what it was trained on.
        meaning: what it decides.
        algorithm: that trained it.
        data: the jobs it was trained on.
        steps: of training.
        seeds: of all training runs.
        kept_seed: the one with the best return on VAL.
        val_returns: of each run, in the order of the seeds.
        episodes: that it was evaluated on, once.
        score: its mean return on them.
        against: the best rule in hindsight on the same episodes.
        gain: how much better than it, as a share of its return.
        gain_low: lower end of the 95 % interval.
        gain_high: upper end.
        loses: where it should not be used.
        command: that trains it again.
    """

    name: str
    task: str
    meaning: str
    algorithm: str
    data: str
    steps: int
    seeds: list[int]
    kept_seed: int
    val_returns: list[float]
    episodes: int
    score: float
    against: str
    gain: float
    gain_low: float
    gain_high: float
    loses: list[str]
    command: str


@functools.cache
def shipped_networks() -> dict[str, NetworkCard]:
    """Return the cards of the shipped networks, by name.

    Raises:
        PolicyError: a card cannot be read.
    """
    found = {}
    for file in sorted(FOLDER.glob(f"*/{CARD}")):
        try:
            card = msgspec.json.decode(file.read_bytes(), type=NetworkCard)
        except (OSError, msgspec.MsgspecError) as error:
            raise PolicyError(
                f"cannot read the card of a policy: {error}", where=str(file)
            ) from None
        found[card.name] = card
    return found


def place_of(text: str) -> Path:
    """Return the path of a policy that is written as a path, or as the name of a shipped one."""
    return FOLDER / text if text in shipped_networks() else Path(text)
