"""`--config-file`: the config.toml of an earlier run becomes options of the command line.

The words that the file stands for come before those of the user. An option that the user gives
replaces the file's; of options with keys (`--set`, `--config`, `--condition`), the same keys.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import msgspec

FLAG = "--config-file"
_WITH_KEYS = ("--set", "--config", "--condition")
_REPEATED = ("--param",)
_NOT_TAKEN = (
    *("json", "out", "force", "resume", "workers", "engine", "address", "config_file", "check"),
    *("order", "gate"),
)
"""How results are printed and kept is not part of a configuration; an order and a gate are already
parts of the scheduler that a run writes."""
_POSITIONAL = ("workload", "run", "algorithm")


def with_config_file(
    kind: type[msgspec.Struct], argv: Sequence[str], *, verb: str
) -> Sequence[str]:
    """Return the words of a command line, with those of its config file before them.

    Args:
        kind: the options of the verb.
        argv: what follows the verb.
        verb: the verb.

    Raises:
        ConfigError: the file cannot be read, or is of another verb.
    """
    if "config_file" not in kind.__struct_fields__:
        return argv
    path, rest = _taken_out(argv)
    if path is None:
        return argv
    table = _read(path)
    if verb == "train":
        table = _options_of_training(table, path)
    elif verb == "train es":
        table = _options_of_search(table, path)
    known = set(kind.__struct_fields__)
    required = [name for name in _POSITIONAL if name in known and _is_required(kind, name)]
    if not all(name in table for name in required):
        raise ConfigError(
            f"the file has no {' and no '.join(n for n in required if n not in table)}",
            where=path,
            expected=f"the config.toml of a run of berthline {verb}",
        )
    has_place = bool(rest) and not rest[0].startswith("-")
    places = [] if has_place else [word for name in required for word in _texts(table[name])]
    given = _given(rest)
    words: list[str] = []
    for name, value in _with_conditions(table).items():
        if name in known and name not in _NOT_TAKEN and name not in required:
            words += _words(f"--{name.rstrip('_').replace('_', '-')}", value, given)
    # Positional arguments are read before the options that take several words.
    own = [rest[0]] if has_place else []
    return [*places, *own, *words, *rest[len(own) :], FLAG, path]


def _taken_out(argv: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the file that an option names, and the other words."""
    path, rest, words = None, [], list(argv)
    while words:
        word = words.pop(0)
        if word == FLAG and words:
            path = words.pop(0)
        elif word.startswith(f"{FLAG}="):
            path = word.partition("=")[2]
        else:
            rest.append(word)
    return path, rest


def _read(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"cannot read the config file: {reason}",
            where=path,
            expected="the config.toml of a run directory",
        ) from None


def _is_required(kind: type[msgspec.Struct], name: str) -> bool:
    import msgspec

    return any(field.name == name and field.required for field in msgspec.structs.fields(kind))


def _with_conditions(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table with `conditions`, which a run writes resolved, as the option."""
    return {("condition" if name == "conditions" else name): v for name, v in table.items()}


def _given(words: Sequence[str]) -> set[str]:
    """Return the options that a user gives: `--load`, and `--set users` of those with keys."""
    found: set[str] = set()
    flag = ""
    for word in words:
        if word.startswith("--"):
            flag, _, value = word.partition("=")
            found.add(flag)
            found.add(f"{flag} {value.partition('=')[0]}")
        elif flag in _WITH_KEYS:
            found.add(f"{flag} {word.partition('=')[0]}")
    return found


def _words(flag: str, value: Any, given: set[str]) -> list[str]:
    """Return the words of an option, unless the user gives it."""
    if flag in _WITH_KEYS:
        pairs = value.items() if isinstance(value, dict) else [v.split("=", 1) for v in value]
        return [
            word
            for key, entry in pairs
            if f"{flag} {key}" not in given
            for word in (flag, f"{key}={_text(entry)}")
        ]
    if flag in given or value is False or value in ("", []):
        return []
    if flag in _REPEATED:
        return [word for entry in value for word in (flag, _text(entry))]
    if value is True:
        return [flag]
    if isinstance(value, list):
        # Schedulers, groupings and seeds are lists with commas.
        return [flag, ",".join(map(_text, value))]
    return [flag, _text(value)]


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def _text(value: Any) -> str:
    """Return a value as one types it: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def _options_of_training(table: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the options of `berthline train` from the settings that a training run writes."""
    from berthline.env.registration import SEATS

    if table.get("algorithm") == "es":
        raise ConfigError("the file is of berthline train es", where=path)
    names = {seat: name for name, seat in SEATS.items()}
    network = table.get("network", {})
    found = {
        "algorithm": table.get("algorithm"),
        "env": names.get(str(table.get("seat"))),
        "set": table.get("options", {}),
        "config": table.get("settings", {}),
        "network": network.get("kind"),
        "hidden": network.get("hidden"),
        "envs": table.get("num_envs"),
        "episodes": table.get("val_episodes"),
        **{
            name: table.get(name)
            for name in (
                *("steps", "seed", "seeds", "validate_every", "patience", "least_gain", "threads"),
                *("metric", "save_every", "keep", "test_seeds", "against", "init_from"),
            )
        },
    }
    return {name: value for name, value in found.items() if value is not None}


def _options_of_search(table: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the options of `berthline train es` from the settings that a search writes."""
    if table.get("algorithm") != "es":
        raise ConfigError("the file is not of berthline train es", where=path)
    from berthline.learn.tuning.search_space import SPACES

    found = dict(table)
    named = SPACES.get(str(table.get("space")))
    if named is None or named.text != table.get("text"):
        found["scheduler"] = table.get("text")
        found["param"] = [
            f"{name}={low!r}:{high!r}{':log' if is_log else ''}:{start!r}"
            for name, (low, high, start, is_log) in table.get("parameters", {}).items()
        ]
    return found
