"""The catalog of public traces: what each is, where its publisher keeps it, and what it lacks.

Berthline contains no traces; `fetch.py` downloads the files from the publisher. The entries are in
`catalog.toml`.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

import msgspec

from berthline.errors import ConfigError, unknown_name


class TraceFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of a trace."""

    address: str
    """The path relative to the trace's `base`, and to the folder it is fetched into."""
    sha256: str = ""
    """The checksum; empty = not known."""
    unpacked: bool = False
    """Whether the checksum is that of the unpacked content, since compression may differ."""
    num_bytes: int | None = None
    """The approximate size; None = not known."""


class PublicTrace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One public trace, as its publisher offers it."""

    name: str
    """The name for `berthline traces fetch`."""
    title: str
    publisher: str
    page: str
    """The page that describes it, for manual downloads."""
    licence: str
    cite: str
    jobs: int
    """Rows, including those that use no GPU."""
    gpus: int | None = None
    """GPUs of the cluster (processors of an old machine); None = not published."""
    days: float | None = None
    """From the first to the last submission; None = not published."""
    lost: str
    """What the trace does not contain, or what cannot be used."""
    format: str
    """The format that reads it."""
    load: str
    """The file to load after fetching and unpacking; `.` = the whole folder."""
    unpack: str = ""
    """The command that unpacks the fetched files; empty = nothing to unpack."""
    base: str
    """The base address of its files."""
    files: tuple[TraceFile, ...]

    @property
    def num_bytes(self) -> int | None:
        """The approximate size of all files; None = not all sizes are known."""
        sizes = [file.num_bytes for file in self.files]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def address_of(self, file: TraceFile) -> str:
        """Return the full address of a file."""
        return f"{self.base}/{file.address}"


@cache
def catalog() -> dict[str, PublicTrace]:
    """Return every public trace, by name."""
    text = resources.files("berthline.traces").joinpath("catalog.toml").read_text(encoding="utf-8")
    return {
        name: msgspec.convert({"name": name, **entry}, PublicTrace)
        for name, entry in tomllib.loads(text).items()
    }


def public_trace(name: str) -> PublicTrace:
    """Return the trace of that name.

    Raises:
        ConfigError: the catalog has no such trace.
    """
    if name not in catalog():
        what, expected, hint = unknown_name(
            "trace", name, catalog(), list_command="berthline traces list"
        )
        raise ConfigError(what, expected=expected, hint=hint)
    return catalog()[name]
