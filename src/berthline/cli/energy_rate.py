"""`--energy-rate FILE`: what the energy of a run cost, or the carbon it stands for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.options import positive
from berthline.cli.output import number
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from berthline.evaluate.metrics.energy_rate import EnergyRate
    from berthline.model.workload import Workload

EnergyRateFile = Annotated[
    str | None,
    arg(
        metavar="FILE",
        help="Price or carbon per kWh over time: a CSV file with the columns time (seconds on the"
        " workload's clock, or Unix times) and value.",
        help_behavior_hint="(default: no cost)",
    ),
]
EnergyPeriod = Annotated[
    Annotated[float, msgspec.Meta(gt=0)] | None,
    positive("--energy-period", metavar="SECONDS"),
    arg(
        help="The energy rate repeats after so long: 86400 for a daily tariff.",
        help_behavior_hint="(default: its last value holds for good)",
    ),
]


def check_energy_rate(path: str | None, period: float | None) -> None:
    """Raise a ConfigError, before any work, if the options cannot be meant."""
    if path is None and period is not None:
        raise ConfigError(
            "--energy-period does nothing without --energy-rate", hint="add --energy-rate FILE"
        )
    if path is not None and not Path(path).is_file():
        raise ConfigError(
            "--energy-rate is no file",
            where=path,
            expected="a CSV file with the columns time and value",
        )


def read_energy_rate(
    path: str | None, period: float | None, workload: Workload
) -> EnergyRate | None:
    """Return the energy rate that the options ask for; None = none.

    Raises:
        ConfigError: the file is no energy rate, or does not cover the workload's zero.
    """
    if path is None:
        return None
    from berthline.evaluate.metrics.energy_rate import EnergyRate

    try:
        return EnergyRate.for_workload(path, workload, period=period or math.inf)
    except ConfigError as error:
        hint = error.hint
        if "origin" in hint:
            hint = "subtract the time that is to be the workload's zero, or add --energy-period"
        raise ConfigError(
            error.what, where=error.where, expected=error.expected, hint=hint
        ) from None


def cost_of(value: float) -> str:
    """Return a cost for a table: with two decimals as long as they tell anything."""
    return number(value, 0 if abs(value) >= 1000 else 2)
