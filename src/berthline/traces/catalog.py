"""The catalog of public traces: what each is, where its publisher keeps it, and what it lacks.

No trace comes with Berthline; `fetch.py` gets the files from the publisher's own address. The
entries are data, in `catalog.toml`.
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
    """Where it is below the trace's `base`, and below the folder it is fetched into."""
    sha256: str = ""
    """Its checksum; empty = not known."""
    unpacked: bool = False
    """The checksum is that of the content: archives pack the same content in other bytes."""
    num_bytes: int | None = None
    """About how large it is; None = not known."""


class PublicTrace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One public trace, as its publisher offers it."""

    name: str
    """What `berthline traces fetch` calls it."""
    title: str
    publisher: str
    page: str
    """Where to read about it, and to get it by hand."""
    licence: str
    cite: str
    jobs: int
    """Rows, with those that use no GPU."""
    gpus: int | None = None
    """GPUs of the cluster (processors of an old machine); None = not published."""
    days: float | None = None
    """From the first to the last submission; None = not published."""
    lost: str
    """What the trace does not tell, or what cannot be used."""
    format: str
    """The format that reads it."""
    load: str
    """The file to load, once all are fetched and unpacked; `.` = all of the folder."""
    unpack: str = ""
    """The command that unpacks what was fetched; empty = nothing to unpack."""
    base: str
    """The address its files share."""
    files: tuple[TraceFile, ...]

    @property
    def num_bytes(self) -> int | None:
        """About how much there is to fetch; None = not all sizes are known."""
        sizes = [file.num_bytes for file in self.files]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def address_of(self, file: TraceFile) -> str:
        """Return the whole address of a file."""
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
        ConfigError: the catalog has none.
    """
    if name not in catalog():
        what, expected, hint = unknown_name(
            "trace", name, catalog(), list_command="berthline traces list"
        )
        raise ConfigError(what, expected=expected, hint=hint)
    return catalog()[name]
