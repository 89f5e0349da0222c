"""The configuration of a controller: a TOML file with `schema = 1`. Each setting has a default."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.errors import ConfigError, misfit, unknown_name

if TYPE_CHECKING:
    import os

SCHEMA = 1


class RuleSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits outside any model. Times are seconds on the system's clock.

    Attributes:
        max_wait: a job that waits longer makes the oldest job go first (fcfs+easy).
        actions_per_minute: most actions in a minute.
        actions_per_job_minute: most actions on one job in a minute.
        preemptions_per_job_hour: most preemptions of one job in an hour.
        max_gpus: GPUs that our jobs may hold at once; infinity = no limit beside the quotas.
        reserved_gpus: GPUs that stay free on each node.
        decision_deadline: seconds of the machine's clock for a decision; then the fallback decides.
        max_look_age: an older look is not acted on.
        faults_to_shadow: after this number of faults in a row the mode drops to shadow.
        confirm_after: an action whose effect no look shows after this time is repeated.
        max_repeats: an action is repeated so often, then taken back.
    """

    max_wait: float = 7 * 86400.0
    actions_per_minute: int = 120
    actions_per_job_minute: int = 4
    preemptions_per_job_hour: int = 2
    max_gpus: float = math.inf
    reserved_gpus: int = 0
    decision_deadline: float = 10.0
    max_look_age: float = 120.0
    faults_to_shadow: int = 5
    confirm_after: float = 30.0
    max_repeats: int = 3


class GuardSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The watch over the controller. Times are seconds of the machine's clock.

    Attributes:
        heartbeat: without a sign of life for 1.5 times as long, the other process takes over.
        stall: a cycle that takes longer than this ends the signs of life.
    """

    heartbeat: float = 5.0
    stall: float = 120.0


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings.

    Attributes:
        schema: of the file.
        fallback: the rule that decides when the scheduler is late, fails or is out of its depth.
        seed: of random draws of schedulers.
        rules: limits outside any model.
        guard: the watch over the controller.
    """

    schema: int
    fallback: str = "fcfs+easy"
    seed: int = 0
    rules: RuleSettings = RuleSettings()
    guard: GuardSettings = GuardSettings()


_TABLES: dict[str, type[msgspec.Struct]] = {"rules": RuleSettings, "guard": GuardSettings}


def read_settings_file(path: str | os.PathLike[str] | None) -> Settings:
    """Return the settings of a file; None = the defaults.

    Raises:
        ConfigError: the file cannot be read, a key is unknown, or a value is out of range.
    """
    if path is None:
        return Settings(schema=SCHEMA)
    where = str(path)
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"the configuration cannot be read: {error.strerror}", where=where
        ) from None
    except ValueError as error:
        what, place, expected = misfit(error, {})
        raise ConfigError(what, where=f"{where}, {place}", expected=expected) from None
    _check_keys(table, Settings, where)
    for name, kind in _TABLES.items():
        if isinstance(table.get(name), dict):
            _check_keys(table[name], kind, f"{where}, [{name}]")
    if table.get("schema") != SCHEMA:
        raise ConfigError(
            f"schema is {table['schema']!r}" if "schema" in table else "schema is missing",
            where=where,
            expected=f"schema = {SCHEMA}",
        )
    try:
        settings = msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        what, place, expected = misfit(error, {})
        raise ConfigError(what, where=f"{where}, {place}", expected=expected) from None
    check_settings(settings, where)
    return settings


def _check_keys(table: dict[str, Any], kind: type[msgspec.Struct], where: str) -> None:
    known = kind.__struct_fields__
    for key in table:
        if key not in known:
            what, expected, hint = unknown_name("key", key, known)
            raise ConfigError(what, where=where, expected=expected, hint=hint)


def check_settings(settings: Settings, where: str) -> None:
    """Raise if a value is out of range.

    Raises:
        ConfigError: it is.
    """
    for group in (settings.rules, settings.guard):
        for name in group.__struct_fields__:
            value = getattr(group, name)
            low = 0 if name in ("reserved_gpus", "max_repeats") else 1e-3
            if not value >= low:
                raise ConfigError(
                    f"{name} is {value:g}",
                    where=where,
                    expected="more than 0" if low else "0 or more",
                )
