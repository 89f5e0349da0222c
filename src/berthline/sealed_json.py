"""Sealed JSON: objects with a checksum of themselves, and checksums of files beside them.

    seal(facts)      adds `seal`, the SHA-256 of all other keys and values
    unseal(content)  reads an object, and raises if its seal is wrong

JSON and safetensors detect a file that is cut off, not one with a changed byte: it would be read as
other numbers. Line breaks and the order of keys may change.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from pathlib import Path

SEAL = "seal"
_HINT = "restore it from a backup, or begin again"


def seal(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain data with its seal.

    Example:
        >>> sorted(seal({"step": 7}))
        ['seal', 'step']
    """
    # As it will be read: JSON has no tuples, and its keys are texts.
    read = json.loads(json.dumps(dict(facts)))
    return {**read, SEAL: _digest(read)}


def unseal(
    content: bytes,
    *,
    where: str,
    what: str = "the file",
    hint: str = _HINT,
    unsealed: Container[object] = (),
) -> dict[str, Any]:
    """Return sealed data, without the seal.

    Args:
        content: the JSON text of an object.
        where: the file, for errors.
        what: how an error names the file.
        hint: what to do if it is damaged.
        unsealed: values of the key `format` with which earlier versions wrote files without a seal.

    Raises:
        ConfigError: it is not an object, or differs from what was sealed.
    """
    try:
        facts = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(what, f"not JSON: {error}", where=where, hint=hint) from None
    if not isinstance(facts, dict):
        raise damaged(what, "not a JSON object", where=where, hint=hint)
    found = facts.pop(SEAL, None)
    if found is None and facts.get("format") in unsealed:
        return facts
    if found != _digest(facts):
        reason = "it has no checksum" if found is None else "its checksum is wrong"
        raise damaged(what, reason, where=where, hint=hint)
    return facts


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damaged(what: str, reason: str, *, where: str, hint: str = _HINT) -> ConfigError:
    """Return the error about a file that is not what was written."""
    return ConfigError(
        f"{what} is damaged ({reason})",
        where=where,
        expected="the bytes that were written",
        hint=hint,
    )


def _digest(facts: Mapping[str, Any]) -> str:
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
