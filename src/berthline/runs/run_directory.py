"""Writing a run directory: all files, or none.

The files are written into a staging directory beside the target. It takes the target's name when
all files are complete, so a directory with a summary is a complete run. An existing directory is
replaced only with `force`, and only if it is a run of the same verb with no other file in it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
import os
import platform
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.atomic_write import PARTIAL, partial_name, replace_directory
from berthline.errors import ConfigError, OutputError
from berthline.package_version import package_version
from berthline.runs.run_layout import (
    BEFORE_THE_END,
    CONFIG,
    EVENTS,
    LOCK,
    META,
    METRICS,
    SHARES,
    SUMMARY,
    UNFINISHED,
    files_of,
)
from berthline.write_frame import write_frame

if TYPE_CHECKING:
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload

FileWriter = Callable[[Path], object]
"""Writes a file of this path."""


class RunDirectory:
    """A run directory that is written once.

    Args:
        path: the directory; it and its parents need not exist.
        verb: the verb that writes it.
        force: replace an earlier run of this verb.
        resume: resume an unfinished run of this verb, if there is one.
        grows: the run writes files there before its end, which stay.

    Raises:
        ConfigError: something is there that must not be replaced. It is raised before the run, so
            that no result is computed that could not be kept.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        verb: str,
        force: bool = False,
        resume: bool = False,
        grows: bool = False,
    ) -> None:
        if not str(path):
            raise ConfigError("`out` is empty", expected="the name of a directory")
        self.path, self.verb, self.force, self.resume = Path(path), verb, force, resume
        self.grows = grows
        self._was_there = self.path.exists()
        self._check()

    @property
    def unfinished(self) -> Path:
        """The file of the finished runs of an unfinished comparison."""
        return self.path / UNFINISHED

    def clear(self) -> None:
        """Remove an earlier run that `force` replaces, but for the lock of this one.

        Raises:
            OutputError: it cannot be removed.
        """
        try:
            for entry in list(self.path.iterdir()) if self.path.is_dir() else []:
                if entry.name == LOCK:
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
        except OSError as error:
            raise OutputError(
                f"cannot remove the earlier run: {error.strerror}", where=str(self.path)
            ) from None

    def forget_unfinished(self) -> None:
        """Remove that file, and the directory if it was created for it."""
        with contextlib.suppress(NotADirectoryError):  # reported when a run is kept
            self.unfinished.unlink(missing_ok=True)
        if not self._was_there:
            with contextlib.suppress(OSError):
                self.path.rmdir()

    def write(
        self,
        *,
        command: str,
        config: Mapping[str, Any],
        seed: int,
        summary: object,
        metrics: Iterable[object],
        log: Schedule | None = None,
        workload: Workload | None = None,
        files: Mapping[str, FileWriter] | None = None,
    ) -> None:
        """Write all files, or none.

        Args:
            command: the command line.
            config: the resolved settings.
            seed: the seed.
            summary: what `--json` prints.
            metrics: one row for each run.
            log: the schedule log of a single run.
            workload: for its name and provenance.
            files: names of further files, and their writers (`table_writers`).

        Raises:
            OutputError: the disk is full, or the directory cannot be written.
        """
        staging = self._staging()
        try:
            staging.mkdir(parents=True)
            text = to_toml(config)
            (staging / CONFIG).write_text(text, encoding="utf-8", errors="replace")
            (staging / META).write_bytes(_pretty(meta_of(self.verb, command, seed, workload)))
            lines = b"".join(msgspec.json.encode(row) + b"\n" for row in metrics)
            (staging / METRICS).write_bytes(lines)
            (staging / SUMMARY).write_bytes(_pretty(summary))
            if log is not None:
                write_frame(log.frame(), staging / EVENTS)
            for name, write_file in (files or {}).items():
                write_file(staging / name)
        except OSError as error:
            shutil.rmtree(staging, ignore_errors=True)
            raise OutputError(
                f"cannot write the results: {error.strerror or error}",
                where=str(self.path),
                expected="a directory that can be written to",
            ) from None
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        try:
            self._put_in_place(staging)
        except (OSError, ConfigError) as error:
            raise OutputError(
                f"the results could not be given their name: {error}",
                where=str(self.path),
                hint=f"they are complete and kept in {staging}",
            ) from None

    def _check(self) -> None:
        """Raise if the target is neither free, nor empty, nor a run that may be replaced."""
        path = self.path
        if path.exists() and not path.is_dir():
            raise ConfigError(
                "the output directory is an existing file", where=str(path), expected="a directory"
            )
        try:
            present = sorted(entry.name for entry in path.iterdir()) if path.exists() else []
        except OSError as error:
            raise ConfigError(
                f"cannot read the output directory: {error.strerror}", where=str(path)
            ) from None
        has_begun = LOCK in present or SHARES in present
        is_unfinished = UNFINISHED in present or (has_begun and SUMMARY not in present)
        if is_unfinished and not (self.force or self.resume):
            raise ConfigError(
                "the output directory holds an unfinished run",
                where=str(path),
                expected="`resume` to continue it, or `force` to start again",
            )
        present = [name for name in present if not (is_unfinished and _is_unfinished_part(name))]
        if not present:
            return
        if self.resume and not is_unfinished and verb_of(path) == self.verb:
            raise ConfigError(
                "there is nothing to resume: the run is complete",
                where=str(path),
                hint="start again with `force`, or choose another directory",
            )
        # An unfinished run over an earlier one was started with force.
        if not self.force and not (self.resume and is_unfinished):
            raise ConfigError(
                "the output directory exists and is not empty",
                where=str(path),
                expected="a new or an empty directory",
                hint="choose another, or replace the earlier run with `force`",
            )
        if verb_of(path) != self.verb:
            raise ConfigError(
                f"the output directory holds something other than results of berthline {self.verb}",
                where=str(path),
                expected="a new or an empty directory, or one that such a run has written",
                hint="choose another directory",
            )
        foreign = [name for name in present if name not in files_of(self.verb)]
        if foreign:
            raise ConfigError(
                f"the output directory holds {foreign[0]!r}, which is not part of the earlier run",
                where=str(path),
                expected="nothing that replacing the run would delete",
                hint="move it away, or choose another directory",
            )

    def _staging(self) -> Path:
        path = self.path.resolve()
        if self.grows:
            return path / f"{PARTIAL}{os.getpid()}"
        if path.is_dir() and all(_is_unfinished_part(entry.name) for entry in path.iterdir()):
            return path / f"{PARTIAL}{os.getpid()}"
        return partial_name(path)

    def _put_in_place(self, staging: Path) -> None:
        path = self.path.resolve()
        if staging.parent == path:
            # An empty directory is filled, not replaced: it may be a mount point.
            for file in sorted(staging.iterdir(), key=lambda file: file.name == META):
                file.rename(path / file.name)
            staging.rmdir()
            if not self.grows:
                self.unfinished.unlink(missing_ok=True)
            for left_over in path.glob(f"{PARTIAL}*"):  # of a run that was killed while it wrote
                shutil.rmtree(left_over, ignore_errors=True)
            return
        self._check()  # again: something may have been put there during the run
        replace_directory(staging, path)


def meta_of(verb: str, command: str, seed: int, workload: Workload | None = None) -> dict[str, Any]:
    """Return the content of meta.json.

    Args:
        verb: the verb that writes it.
        command: the command line.
        seed: the seed.
        workload: for its name and provenance.
    """
    meta: dict[str, Any] = {
        "berthline": package_version(),
        "verb": verb,
        "command": command,
        "seed": seed,
        "written": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": {
            "system": platform.platform(),
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
        },
    }
    if workload is not None:
        provenance = json.loads(json.dumps(dict(workload.provenance), default=str))
        meta["workload"] = {
            "name": workload.name,
            "jobs": len(workload),
            "provenance": provenance,
        }
    return meta


def open_directory(
    path: str | None, *, verb: str, force: bool, resume: bool = False
) -> RunDirectory | None:
    """Return the run directory to write; None = nothing is to be written.

    Args:
        path: the directory.
        verb: the verb that writes it.
        force: replace an earlier run.
        resume: resume an unfinished run.

    Raises:
        ConfigError: the directory cannot be written; force or resume is given without a directory,
            or both are given.
    """
    if force and resume:
        raise ConfigError(
            "`force` starts again and `resume` continues", expected="one of them", where=path or ""
        )
    if path is not None:
        return RunDirectory(path, verb=verb, force=force, resume=resume)
    for name, is_given in (("force", force), ("resume", resume)):
        if is_given:
            raise ConfigError(
                f"`{name}` has no effect without `out`", hint="name a directory: `out=DIR`"
            )
    return None


def _is_unfinished_part(name: str) -> bool:
    own = name.removeprefix(".").partition(PARTIAL)[0]  # of a file that is being written
    return name in BEFORE_THE_END or name.startswith(PARTIAL) or own in BEFORE_THE_END


def to_toml(table: Mapping[str, Any], prefix: str = "") -> str:
    """Return a mapping as TOML: scalars and lists of them first, then nested tables.

    A list of mappings becomes an array of tables.

    None is omitted: TOML has no such value.

    Example:
        >>> print(to_toml({"jobs": 3, "set": {"users": "2"}}), end="")
        jobs = 3
        <BLANKLINE>
        [set]
        users = "2"
    """
    given = {key: value for key, value in table.items() if value is not None}
    tables = {key: value for key, value in given.items() if _holds_tables(value)}
    lines = [f"{_key(k)} = {_toml_value(v)}\n" for k, v in given.items() if k not in tables]
    for key, value in tables.items():
        name = f"{prefix}{_key(key)}"
        if isinstance(value, Mapping):
            lines.append(f"\n[{name}]\n{to_toml(value, f'{name}.')}")
        else:
            lines += [f"\n[[{name}]]\n{to_toml(one, f'{name}.')}" for one in value]
    return "".join(lines)


def _holds_tables(value: object) -> bool:
    is_list = isinstance(value, list | tuple) and len(value) > 0
    return isinstance(value, Mapping) or (
        is_list and all(isinstance(one, Mapping) for one in value)  # type: ignore[attr-defined]
    )


def _key(text: str) -> str:
    is_bare = text.isascii() and text.replace("-", "").replace("_", "").isalnum()
    return text if is_bare else _toml_value(text)


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)  # inf and nan are TOML too
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    # A JSON string is a TOML string, except for the one control character that JSON does not
    # escape.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def verb_of(path: Path) -> str | None:
    """Return which verb wrote a run directory; None if it is not one."""
    try:
        meta = json.loads((path / META).read_bytes())
    except (OSError, ValueError):
        return None
    return meta.get("verb") if isinstance(meta, dict) and "berthline" in meta else None
