"""What a training run tells its callbacks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from berthline.errors import ConfigError


class TrainingEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened in a training run.

    Attributes:
        kind: `begin`, `progress` (after each iteration), `validation`, `checkpoint` or `end`.
        step: environment steps done.
        values: of `begin` the configuration; of `progress` and `validation` numbers by name, as in
            metrics.jsonl; of `end` the summary, empty if the run was stopped.
        path: the run directory; of `checkpoint`, the checkpoint, which is a scheduler.
    """

    kind: Literal["begin", "progress", "validation", "checkpoint", "end"]
    step: int
    values: dict[str, Any]
    path: Path


Callback = Callable[[TrainingEvent], bool | None]
"""Called with every event; False saves the run and stops it."""


def find_callback(text: str) -> Callback:
    """Return the function that a text `MODULE:NAME` means.

    Raises:
        ConfigError: there is none.
    """
    module, _, name = text.partition(":")
    expected = "MODULE:NAME, a function of a berthline.training.TrainingEvent"
    if not module or not name:
        raise ConfigError(f"the callback is {text!r}", expected=expected)
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"cannot find the callback {text!r}: {error}",
            expected=expected,
            hint="a module beside you is found with: PYTHONPATH=. berthline train ...",
        ) from None
    check_callback(found)
    callback: Callback = found
    return callback


def check_callback(given: object) -> None:
    """Raise unless something can be called with an event.

    Raises:
        ConfigError: it cannot.
    """
    if not callable(given):
        raise ConfigError(
            f"the callback is {given!r}",
            expected="a function of a TrainingEvent, or a list of them",
        )
