"""RunOutput: where a run is written, and what its files say about how it was made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.text_or_path import TextOrPath


class RunOutput(NamedTuple):
    """Where a run is written, and what its files say about how it was made.

    Attributes:
        path: the run directory.
        command: the command that made the run, for meta.json.
        config: the requested settings, for config.toml; None = the parameters of the call.
    """

    path: TextOrPath
    command: str = ""
    config: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, out: TextOrPath | RunOutput | None, call: str) -> RunOutput | None:
        """Return what an `out` parameter means.

        Args:
            out: the parameter.
            call: the function that makes the run; it is the command unless one is named.
        """
        if out is None or isinstance(out, RunOutput):
            return out
        return cls(os.fspath(out), command=call)


def argument_name(given: Any) -> str:
    """Return what config.toml calls an argument that may be an object; of a list, its first."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    if isinstance(given, Sequence):
        return argument_name(given[0]) if given else ""
    return str(getattr(given, "name", "given"))
