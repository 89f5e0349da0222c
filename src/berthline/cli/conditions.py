"""`--condition NAME=VALUE`: change how jobs run on the cluster, for one run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

from tyro.conf import UseAppendAction, arg

from berthline.cli.output import NARROWEST
from berthline.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.speeds import RunTimeScaling

ConditionOption = Annotated[
    UseAppendAction[tuple[str, ...]],
    arg(
        metavar="NAME=VALUE",
        help="How jobs run on the cluster, such as restart=30 or mtbf=604800; overrides the cluster"
        " file. See berthline policies conditions.",
        help_behavior_hint="(repeatable)",
    ),
]

LIST = "berthline policies conditions"


def read_conditions(given: Iterable[str]) -> dict[str, float]:
    """Return the `--condition` options as a dictionary; `Conditions` checks ranges.

    Raises:
        ConfigError: an option is not of the form NAME=VALUE, has an unknown name, has a value that
            is not a number, or is given twice.
    """
    from berthline.model.conditions import MEANINGS

    conditions: dict[str, float] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and name and value):
            raise ConfigError(
                f"cannot read --condition {text!r}",
                expected="NAME=VALUE, such as restart=30",
                hint=f"the names: {LIST}",
            )
        if name not in MEANINGS:
            what, expected, hint = unknown_name("condition", name, MEANINGS, list_command=LIST)
            raise ConfigError(what, expected=expected, hint=hint)
        if name in conditions:
            raise ConfigError(f"--condition {name} is given twice", expected="each condition once")
        try:
            conditions[name] = float(value)
        except ValueError:
            raise ConfigError(
                f"--condition {name} is {value!r}", expected="a number; inf is infinity"
            ) from None
    return conditions


def with_conditions(cluster: Cluster, given: Iterable[str]) -> Cluster:
    """Return the cluster, changed by the `--condition` options.

    Raises:
        ConfigError: an option is invalid or out of range.
    """
    changes = read_conditions(given)
    return cluster.with_conditions(changes) if changes else cluster


def header_of(conditions: Mapping[str, float], run_times: RunTimeScaling | None = None) -> str:
    r"""Return one or more lines that name the conditions; empty if there are none.

    Args:
        conditions: by name.
        run_times: how run times are scaled; None = not at all.

    Example:
        >>> header_of({"restart": 30.0, "mtbf": 604800.0})
        'conditions restart=30, mtbf=604800\n'
    """
    lines: list[str] = []
    if conditions:
        text = ", ".join(f"{name}={_written(value)}" for name, value in conditions.items())
        lines += textwrap.wrap(f"conditions {text}", NARROWEST, break_long_words=False)
    if run_times is not None:
        lines += textwrap.wrap(f"run times {run_times.in_words()}", NARROWEST)
    return "".join(f"{line}\n" for line in lines)


def _written(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value!r}"
