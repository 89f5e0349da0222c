"""What the verbs of `traces` share: the file they read, and the file they write."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, UseAppendAction, arg

from berthline.cli.options import read_settings
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from berthline.model.workload import Workload

TraceFile = Annotated[
    Positional[str],
    arg(
        metavar="FILE",
        help="A trace, plain or gzip'd; for a trace in parts, also the directory.",
    ),
]
Map = Annotated[
    str | None,
    arg(
        metavar="KEY=COLUMN,...",
        help="What the columns of your own CSV mean, such as submit=created,run=minutes*60,gpus=n.",
        help_behavior_hint="",
    ),
]
FormatOptions = Annotated[
    UseAppendAction[tuple[str, ...]],
    arg(
        metavar="KEY=VALUE",
        help="An option of the format, such as time_zone=Europe/Berlin: berthline traces list"
        " formats.",
        help_behavior_hint="(repeatable)",
    ),
]
ClusterOption = Annotated[
    str | None,
    arg(
        metavar="CLUSTER",
        help="Also compare with a cluster: a preset (berthline traces list clusters),"
        " uniform:NODESxGPUS[:TYPE], a TOML file or a node list.",
        help_behavior_hint="",
    ),
]
Replace = Annotated[bool, arg(help="Let --out replace existing files.", help_behavior_hint="")]


def format_options(column_map: str | None, settings: Iterable[str]) -> dict[str, str]:
    """Return the options of the format, from `--map` and `--set`.

    Raises:
        ConfigError: an option is invalid, or given twice.
    """
    options = read_settings(settings)
    if column_map is not None:
        if "mapping" in options:
            raise ConfigError("--map and --set mapping are both given", expected="one of them")
        options["mapping"] = column_map
    return options


def load_file(
    file: str, format_name: str | None, column_map: str | None, settings: Iterable[str]
) -> Workload:
    """Return the jobs of the FILE argument."""
    from berthline.traces.load import load_trace

    return load_trace(file, format_name, **format_options(column_map, settings))


def check_out(out: str, *, suffixes: tuple[str, ...], force: bool) -> Path:
    """Return the file to write; raise, before any work, if it must not be written.

    Raises:
        ConfigError: the name has another suffix, or the file exists and `--force` is not given.
    """
    path = Path(out)
    if not path.name.lower().endswith(suffixes):
        raise ConfigError(
            f"--out is {out!r}", expected="a file whose name ends in " + " or ".join(suffixes)
        )
    if path.is_dir():
        raise ConfigError("--out is a directory", where=out, expected="the name of a file")
    if path.exists() and not force:
        raise ConfigError(
            "--out exists", where=out, expected="a new file", hint="replace it with --force"
        )
    if not path.parent.is_dir():
        raise ConfigError(
            "the directory of --out does not exist", where=out, hint=f"mkdir -p {path.parent}"
        )
    return path
