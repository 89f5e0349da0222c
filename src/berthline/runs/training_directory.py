"""Run directories of training: created before the first step, resumed with the same settings.

With several seeds each has its own directory, `seed-S`.
"""

from __future__ import annotations

import contextlib
import shutil
import tomllib
from typing import TYPE_CHECKING, Any

from berthline.atomic_write import complete_file
from berthline.errors import BerthlineError, ConfigError, OutputError
from berthline.runs.growing_files import write_json
from berthline.runs.run_directory import RunDirectory, meta_of, to_toml, verb_of
from berthline.runs.run_layout import CONFIG, META, SUMMARY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SHOWN_DIFFERENCES = 5


def open_training(
    path: Path, config: dict[str, Any], *, command: str, seed: int, resume: bool
) -> None:
    """Make the directory of a new run, or check that it holds one with the same settings.

    A run may be resumed with more steps, also a complete one: it goes on from its last checkpoint,
    with its optimiser.

    Raises:
        ConfigError: something else is there; or, with `resume`, nothing, a run with other settings,
            or a complete run without more steps.
    """
    if not resume:
        if (path / CONFIG).is_file() and verb_of(path) == "train":
            done = (path / SUMMARY).is_file()
            raise ConfigError(
                "the output directory holds "
                f"{'a complete' if done else 'an unfinished'} training run",
                where=str(path),
                expected="a new or an empty directory",
                hint="choose another" if done else "`resume` continues it",
            )
        RunDirectory(path, verb="train")
        begin_run(path, config, command=command, seed=seed)
        return
    if not (path / CONFIG).is_file() or verb_of(path) != "train":
        raise ConfigError(
            "there is no training run to resume",
            where=str(path),
            hint="omit `resume` to begin one",
        )
    if extend(path, config):
        return
    check_same_settings(path, config)
    if (path / SUMMARY).is_file():
        raise ConfigError(
            "there is nothing to resume: the run is complete",
            where=str(path),
            hint="to train longer, raise `steps`",
        )


def extend(path: Path, config: dict[str, Any]) -> bool:
    """Let a run go on for more steps, and return whether it was asked to.

    Raises:
        ConfigError: the settings differ in something else.
        OutputError: the new settings cannot be written.
    """
    there = _settings(path)
    steps, more = there.get("steps"), config.get("steps")
    if not isinstance(steps, int) or not isinstance(more, int) or more <= steps:
        return False
    # Validations are a share of all steps unless set.
    free = ("steps", "validate_every")
    check_same_settings(path, {**config, **{key: there[key] for key in free if key in there}})
    with complete_file(path / CONFIG) as partial:
        partial.write_text(to_toml(config), encoding="utf-8")
    (path / SUMMARY).unlink(missing_ok=True)
    return True


@contextlib.contextmanager
def undone_if_refused(path: Path, *, begins: bool) -> Iterator[None]:
    """Remove the directory of a run that is refused before its first checkpoint."""
    was_empty = begins and not (path.is_dir() and any(path.iterdir()))
    try:
        yield
    except BerthlineError:
        if was_empty and path.is_dir() and not any(path.rglob("checkpoints/*")):
            shutil.rmtree(path)
        raise


def begin_run(path: Path, config: dict[str, Any], *, command: str, seed: int) -> None:
    """Make the directory, with the settings of the run.

    Raises:
        OutputError: it cannot be written.
    """
    meta = meta_of("train", command, seed)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the output directory: {error.strerror}",
            where=str(path),
            expected="a directory that can be written to",
        ) from None
    with complete_file(path / CONFIG) as partial:
        partial.write_text(to_toml(config), encoding="utf-8")
    # Written last: it marks the directory as a run.
    write_json(path / META, meta)


def check_same_settings(path: Path, config: dict[str, Any]) -> None:
    """Raise unless a run was started with these settings.

    Raises:
        ConfigError: it was not; the message names the differences.
    """
    there = _flat(_settings(path))
    here = _flat(tomllib.loads(to_toml(config)))
    changed = [
        f"{name} was {there.get(name, 'not given')}, now {here.get(name, 'not given')}"
        for name in sorted({*there, *here})
        if there.get(name) != here.get(name)
    ]
    if changed:
        more = len(changed) - _SHOWN_DIFFERENCES
        shown = "; ".join(changed[:_SHOWN_DIFFERENCES]) + (f"; {more} more" if more > 0 else "")
        raise ConfigError(
            "the run was begun with other settings",
            where=str(path),
            expected=f"the same ones: {shown}",
            hint="repeat the command it was begun with, which is in meta.json",
        )


def _settings(path: Path) -> dict[str, Any]:
    """Return the settings that a run was started with.

    Raises:
        ConfigError: they cannot be read.
    """
    try:
        return tomllib.loads((path / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the settings: {error}", where=str(path / CONFIG)) from None


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found
