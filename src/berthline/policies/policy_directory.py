"""The directory of a policy: its numbers, and the facts about it with their SHA-256."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from berthline.atomic_write import complete_directory
from berthline.runs.run_layout import CHECKPOINT_FACTS, CHECKPOINT_TENSORS
from berthline.sealed_json import seal, sha256_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FORMAT = 2
"""Increased when the meaning of a checkpoint's contents changes."""


def write_policy(
    path: Path, save: Callable[[Path], object], *, step: int, facts: Mapping[str, Any]
) -> None:
    """Write the directory of a policy.

    Args:
        path: the directory, which is replaced if it exists.
        save: writes the numbers to a file.
        step: environment steps so far.
        facts: the rest, as JSON.

    Raises:
        OutputError: it cannot be written.
    """
    with complete_directory(path, what="a checkpoint") as partial:
        save(partial / CHECKPOINT_TENSORS)
        sha256 = sha256_of(partial / CHECKPOINT_TENSORS)
        sealed = seal({"format": FORMAT, "step": step, "tensors_sha256": sha256, **facts})
        text = json.dumps(sealed, indent=2) + "\n"
        (partial / CHECKPOINT_FACTS).write_text(text, encoding="utf-8")
