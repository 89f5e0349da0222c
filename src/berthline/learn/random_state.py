"""States of random number generators as text, for checkpoints."""

from __future__ import annotations

import torch


def generator_state(generator: torch.Generator) -> str:
    """Return the state of a generator in hexadecimal."""
    return bytes(generator.get_state().tolist()).hex()


def restore_generator(generator: torch.Generator, state: str) -> None:
    """Let a generator go on from a state."""
    generator.set_state(torch.tensor(list(bytes.fromhex(state)), dtype=torch.uint8))
