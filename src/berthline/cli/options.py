"""Reading a verb's options: a msgspec Struct, filled in by tyro, with errors in our own form.

A verb declares its options as a frozen Struct whose field docstrings become the help. This module
adds three things to tyro. Numbers are checked when they are read, because tyro does not know
msgspec's bounds, and the whole Struct is validated again. Values may start with a minus, such as
`--order -wait`. Every error is a ConfigError, so a mistyped option looks like any other error.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import math
import os
import re
import shlex
import shutil
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import tyro
from tyro.conf import Positional, UseAppendAction, arg
from tyro.constructors import PrimitiveConstructorSpec

from berthline.cli.config_file import with_config_file
from berthline.cli.option_errors import OTHER_NAMES, as_error, is_unknown, unknown_option
from berthline.cli.output import NARROWEST
from berthline.cli.visible_output import styled
from berthline.errors import ConfigError, unknown_name
from berthline.time_text import FORM, seconds_in

if TYPE_CHECKING:
    from berthline.engines.engine import Engine

_Options = TypeVar("_Options", bound=msgspec.Struct)

_TAKE_MINUS = ("--order", "--gate")
"""Options whose value may start with a minus: formulas."""

_REPEATED = ("--set", "--condition", "--config")
"""Options that take one or more KEY=VALUE in a row."""

_POSITIONAL = ("what", "job", "workload", "run")
"""Fields that are positional arguments, not options, if they have no default."""

_MAY_BE_LEFT_OUT = ("source",)
"""Positional arguments with a default."""

_TYPEGUARD = "typeguard"

_OF_HOW = ("json", "out", "force", "resume", "workers", "engine", "address", "config_file")
"""Fields that do not affect the numbers."""


def whole(flag: str, *, lowest: int, metavar: str = "N") -> PrimitiveConstructorSpec[float | None]:
    """Return how tyro reads a whole number >= `lowest`."""
    return _number(flag, int, f"a whole number, {lowest} or more", lambda x: x >= lowest, metavar)


def positive(flag: str, *, metavar: str = "X") -> PrimitiveConstructorSpec[float | None]:
    """Return how tyro reads a number > 0, in the unit that `metavar` names."""
    unit = "" if len(metavar) == 1 else f" of {metavar.lower()}"
    return _number(
        flag, float, f"a number{unit}, more than 0", lambda x: x > 0 and math.isfinite(x), metavar
    )


def moment(*flags: str, may_be_zero: bool = False) -> PrimitiveConstructorSpec[float | None]:
    """Return how tyro reads a time of a run, in seconds or with a unit.

    Args:
        flags: the option, which is named in errors with its other names.
        may_be_zero: whether it may be the beginning of the run.
    """

    def read(texts: list[str]) -> float:
        seconds = seconds_of(" or ".join(flags), texts[0])
        if seconds == 0 and not may_be_zero:
            raise ConfigError(f"{' or '.join(flags)} is {texts[0]!r}", expected="more than 0")
        return seconds

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="TIME",
        instance_from_str=read,
        is_instance=lambda x: x is None or isinstance(x, int | float),
        str_from_instance=lambda x: [str(x)],
    )


def seconds_of(flag: str, text: str) -> float:
    """Return a time such as `12h` in seconds.

    Raises:
        ConfigError: the text is not a time.
    """
    seconds = seconds_in(text)
    if seconds is None:
        raise ConfigError(f"{flag} is {text!r}", expected=FORM)
    return seconds


def _number(
    flag: str,
    kind: Callable[[str], float],
    expected: str,
    good: Callable[[float], bool],
    metavar: str,
) -> PrimitiveConstructorSpec[float | None]:
    def read(texts: list[str]) -> float:
        try:
            value = kind(texts[0])
        except ValueError:
            value = math.nan
        if not good(value):
            raise ConfigError(f"{flag} is {texts[0]!r}", expected=expected)
        return value

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=read,
        is_instance=lambda x: x is None or isinstance(x, int | float),
        str_from_instance=lambda x: [str(x)],
    )


# Options that several verbs share, each with its help.
_WORKLOAD_HELP = (
    "A trace file, plain or gzip'd, or a generator: berthline traces list formats | generators."
)
WorkloadName = Annotated[Positional[str], arg(metavar="WORKLOAD", help=_WORKLOAD_HELP)]
WorkloadNames = Annotated[
    Positional[tuple[str, ...]],
    arg(metavar="WORKLOAD...", help=_WORKLOAD_HELP, help_behavior_hint="(one or more)"),
]
ClusterName = Annotated[
    str,
    arg(
        metavar="CLUSTER",
        help="uniform:NODESxGPUS[:TYPE], a preset (berthline traces list clusters), a TOML file"
        " with [[nodes]] groups, or a publisher's node list.",
    ),
]
OptionalClusterName = Annotated[
    str | None,
    arg(
        metavar="CLUSTER",
        help="uniform:NODESxGPUS[:TYPE], a preset (berthline traces list clusters), a TOML file"
        " with [[nodes]] groups, or a publisher's node list.",
        help_behavior_hint="(default: what a trace states, or uniform:8x8:V100)",
    ),
]
Knowledge = Annotated[
    str,
    arg(
        metavar="WHAT",
        help="What the scheduler knows about run times: none; estimate (the users'); predicted"
        " (from finished jobs); exact.",
    ),
]
Format = Annotated[
    str | None,
    arg(
        metavar="NAME",
        help="Format of the trace file: berthline traces list formats.",
        help_behavior_hint="(default: recognised)",
    ),
]
Gap = Annotated[
    str | None,
    arg(
        metavar="TIME",
        help="For a trace, time without jobs between the parts: 90s, 30m, 12h, 1d, 2w, or 0.",
        help_behavior_hint="(default: 1d, or less for a short trace)",
    ),
]
WindowJobs = Annotated[
    Annotated[int, msgspec.Meta(ge=1)] | None,
    whole("--window-jobs", lowest=1, metavar="M"),
    arg(
        help="Jobs in each window; the windows of a trace are spread over its parts. Use many: in"
        " short windows idle GPUs cost nothing.",
        help_behavior_hint="(default: 1000, or all that the trace has)",
    ),
]
Blocks = Annotated[
    int,
    msgspec.Meta(ge=2),
    whole("--blocks", lowest=2),
    arg(help="Number of blocks that a continuous run is cut into, in order of submission."),
]
Jitter = Annotated[
    int,
    msgspec.Meta(ge=0),
    whole("--jitter", lowest=0),
    arg(
        help="Replicates of a continuous run with submissions moved by up to 60 s and known run"
        " times by up to 1 %: values are means over them, and intervals include them."
    ),
]
Jobs = Annotated[
    Annotated[int, msgspec.Meta(ge=1)] | None,
    whole("--jobs", lowest=1),
    arg(
        help="Number of jobs to generate, or to take from the start of a file.",
        help_behavior_hint="(default: 1000, or the whole file)",
    ),
]
Load = Annotated[
    Annotated[float, msgspec.Meta(gt=0)] | None,
    positive("--load"),
    arg(
        help="Work submitted / work that all GPUs could do in the same time; 1 just fills the"
        " cluster. The submission times of a file are stretched or compressed to match.",
        help_behavior_hint="(default: 0.9, or the file as it is)",
    ),
]
Measure = Annotated[
    str | None,
    arg(
        metavar="FROM:TO",
        help="Exclude warm-up and cool-down: count only jobs submitted between these times, such as"
        " 1d:30d, and average over the time between them.",
        help_behavior_hint="(default: the whole run)",
    ),
]
Horizon = Annotated[
    Annotated[float, msgspec.Meta(gt=0)] | None,
    moment("--horizon", "--until"),
    arg(
        metavar="TIME",
        help="Stop the run at this time (86400, 12h, 30d); unfinished jobs count with the time"
        " spent so far. Such a run can be continued: --from-snapshot.",
        help_behavior_hint="(default: until every job has finished)",
        aliases=["--until"],
    ),
]
Seed = Annotated[
    int,
    msgspec.Meta(ge=0),
    whole("--seed", lowest=0, metavar="S"),
    arg(help="Random seed: the same seed gives the same numbers."),
]
Settings = Annotated[
    UseAppendAction[tuple[str, ...]],
    arg(
        metavar="KEY=VALUE",
        help="A setting of the generator, such as estimate_error=0.5, or of the trace format, such"
        " as mapping=submit=COLUMN,run=COLUMN,gpus=COLUMN.",
        help_behavior_hint="(repeatable)",
    ),
]
MetricName = Annotated[
    str | None,
    arg(
        metavar="NAME",
        help="The metric that the rival is chosen by and verdicts begin with: jct_mean, jct_p99,"
        " bounded_slowdown_mean, wait_mean, makespan or utilization.",
        help_behavior_hint="(default: that of the reward, or jct_mean)",
    ),
]
ConfigFile = Annotated[
    str | None,
    arg(
        metavar="FILE",
        help="The config.toml of an earlier run of this verb: use its options; those given beside"
        " it replace them.",
        help_behavior_hint="(default: none)",
    ),
]
Json = Annotated[
    bool, arg(help="Print one JSON object, and nothing else, to stdout.", help_behavior_hint="")
]
Out = Annotated[
    str | None,
    arg(
        metavar="DIR",
        help="Also write a run directory: options, metrics, summary.",
        help_behavior_hint="(default: nothing is written)",
    ),
]
Force = Annotated[
    bool, arg(help="Let --out replace an earlier run of this verb.", help_behavior_hint="")
]

Workers = Annotated[
    Annotated[int, msgspec.Meta(ge=1)] | None,
    whole("--workers", lowest=1),
    arg(
        help="Number of processes for the runs; the results do not depend on it.",
        help_behavior_hint="(default: one per core, if that is faster)",
    ),
]
EngineName = Annotated[
    str,
    arg(
        metavar="NAME",
        help="Where the runs are made: local, processes on this machine; ray, a Ray cluster (needs"
        " the extra `ray`). The results do not depend on it.",
    ),
]
Address = Annotated[
    str | None,
    arg(
        metavar="HOST:PORT",
        help="The address of the Ray cluster.",
        help_behavior_hint="(default: RAY_ADDRESS)",
    ),
]
Timeout = Annotated[
    Annotated[float, msgspec.Meta(gt=0)] | None,
    moment("--timeout"),
    arg(
        metavar="TIME",
        help="A worker that finishes nothing for so long is ended, and its run made by another.",
        help_behavior_hint="(default: none)",
    ),
]
Resume = Annotated[
    bool,
    arg(
        help="Resume an interrupted run of the same command, kept in --out.",
        help_behavior_hint="",
    ),
]


def engine_of(name: str, address: str | None, timeout: float | None = None) -> Engine:
    """Return the engine that the options name.

    Raises:
        ConfigError: there is none of that name, or an address for one that has none.
    """
    from berthline.engines.engine import ENGINES, Engine

    check_choice("--engine", name, ENGINES)
    return Engine(name, address, timeout)


def read_settings(given: Iterable[str], flag: str = "--set") -> dict[str, str]:
    """Return the `--set` options, or those of another flag, as a dictionary.

    Raises:
        ConfigError: an option is not of the form KEY=VALUE, or a key is given twice.
    """
    settings: dict[str, str] = {}
    for text in given:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and key and value):
            raise ConfigError(
                f"cannot read {flag} {text!r}", expected="KEY=VALUE, such as users=100"
            )
        if key in settings:
            raise ConfigError(f"{flag} {key} is given twice", expected="each setting once")
        settings[key] = value
    return settings


def parse_options(kind: type[_Options], argv: Sequence[str], *, verb: str) -> _Options:
    """Return the options in `argv`; `--help` prints the help and exits.

    Args:
        kind: the Struct to fill in. Its docstring is the head of the help.
        argv: what follows the verb.
        verb: the verb, for the help and errors.

    Raises:
        ConfigError: an option is unknown, or its value is wrong.
    """
    _check_names(argv)
    argv = with_config_file(kind, argv, verb=verb)
    caught = io.StringIO()
    help_command = f"berthline {verb} --help"
    try:
        with (
            contextlib.redirect_stdout(styled(sys.stdout)),  # help has colours
            contextlib.redirect_stderr(caught),
            _wide_enough(),
            _unchecked_defaults(),
        ):
            options, unknown = tyro.cli(
                kind,
                args=_joined(argv),
                prog=f"berthline {verb}",
                description=inspect.getdoc(kind),
                config=(tyro.conf.FlagCreatePairsOff,),
                return_unknown_args=True,
            )
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        # An option that is not known is the cause where its value is taken for an argument.
        unknown = [word for word in argv if is_unknown(kind, word)]
        if not unknown:
            raise as_error(caught.getvalue(), help_command) from None
    if unknown:
        raise unknown_option(kind, unknown[0].partition("=")[0], help_command)
    return _validated(options)


def _check_names(argv: Sequence[str]) -> None:
    """Raise if an option is given by both of its names."""
    given = {word.partition("=")[0] for word in argv}
    for name, other in OTHER_NAMES.items():
        if name in given and other in given:
            raise ConfigError(
                f"{other} and {name} are two names of one option", expected="one of them"
            )


@contextlib.contextmanager
def _unchecked_defaults() -> Iterator[None]:
    """Keep tyro from importing typeguard, to check that our defaults are of their types.

    The import takes longer than all else that reading the options does, and mypy has checked them.
    """
    if _TYPEGUARD in sys.modules:
        yield
        return
    unchecked: Any = types.ModuleType(_TYPEGUARD)
    unchecked.check_type = lambda value, kind: value  # noqa: ARG005 - called by position
    unchecked.TypeCheckError = TypeError
    sys.modules[_TYPEGUARD] = unchecked
    try:
        yield
    finally:
        del sys.modules[_TYPEGUARD]


@contextlib.contextmanager
def _wide_enough() -> Iterator[None]:
    """Let a narrow terminal wrap the lines of help: fitted to it, words would be cut off."""
    if shutil.get_terminal_size().columns >= NARROWEST:
        yield
        return
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(NARROWEST)
    try:
        yield
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before


def check_choice(flag: str, value: str, choices: Iterable[str]) -> None:
    """Raise a ConfigError unless `value` is one of the choices."""
    choices = tuple(choices)
    if value not in choices:
        _, _, hint = unknown_name(flag, value, choices)
        raise ConfigError(
            f"{flag} is {value!r}", expected="one of " + ", ".join(choices), hint=hint
        )


def _joined(argv: Sequence[str]) -> list[str]:
    """Return `argv` with values that tyro would misread joined to their option by `=`."""
    joined: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word in _TAKE_MINUS and rest and not rest[0].startswith("--"):
            joined.append(f"{word}={rest.pop(0)}")
        elif word in _REPEATED and rest:
            joined.append(f"{word}={rest.pop(0)}")
            while rest and re.match(r"[A-Za-z_]\w*=", rest[0]):
                joined.append(f"{word}={rest.pop(0)}")
        else:
            joined.append(word)
    return joined


def _validated(options: _Options) -> _Options:
    try:
        return msgspec.convert(msgspec.to_builtins(options), type(options))
    except msgspec.ValidationError as error:
        match = re.fullmatch(r"Expected (.*) - at `\$\.(\w+).*`", str(error))
        if match is None:
            raise ConfigError(str(error)) from None
        expected, field = match.groups()
        value = getattr(options, field)
        flag = f"--{field.replace('_', '-')}"
        raise ConfigError(f"{flag} is {value!r}", expected=expected.replace("`", "")) from None


def command_line(verb: str, options: msgspec.Struct, *, briefly: bool = False) -> str:
    """Return the command that reproduces the numbers, with important options written out.

    Args:
        verb: the verb.
        options: its options.
        briefly: omit all options that have their default value.
    """
    places: list[str] = []
    words: list[str] = []
    written_out = () if briefly else ("cluster", "scheduler", "knowledge", "seed")
    for field in msgspec.structs.fields(options):
        value = getattr(options, field.name)
        if field.name in _OF_HOW:
            continue
        if field.name in _MAY_BE_LEFT_OUT:
            places += [value] if value else []
        elif field.name in _POSITIONAL and field.required:
            places += [value] if isinstance(value, str) else value
        elif value != field.default or (field.name in written_out and value not in ("", None)):
            flag = f"--{field.encode_name.replace('_', '-')}"
            if isinstance(value, bool):
                words += [flag] if value else []
            elif isinstance(value, tuple):
                words += [word for item in value for word in (flag, item)]
            else:
                words += [flag, str(value)]
    return shlex.join(["berthline", *verb.split(), *places, *words])
