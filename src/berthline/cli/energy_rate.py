"""`--energy-rate FILE`: the cost of a run's energy, or its carbon."""

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
        help="Period after which the energy rate repeats: 86400 for a daily tariff.",
        help_behavior_hint="(default: the last value holds to the end)",
    ),
]


def check_energy_rate(path: str | None, period: float | None) -> None:
    """Raise a ConfigError, before any work, if the options make no sense."""
    if path is None and period is not None:
        raise ConfigError(
            "--energy-period does nothing without --energy-rate", hint="add --energy-rate FILE"
        )
    if path is not None and not Path(path).is_file():
        raise ConfigError(
            "--energy-rate is not a file",
            where=path,
            expected="a CSV file with the columns time and value",
        )


def read_energy_rate(
    path: str | None, period: float | None, workload: Workload
) -> EnergyRate | None:
    """Return the energy rate given by the options; None = none is given.

    Raises:
        ConfigError: the file is not an energy rate, or does not cover the workload's time 0.
    """
    if path is None:
        return None
    from berthline.evaluate.metrics.energy_rate import EnergyRate

    return EnergyRate.for_workload(path, workload, period=period or math.inf)


def cost_of(value: float) -> str:
    """Return a cost for a table, with two decimals below 1000."""
    return number(value, 0 if abs(value) >= 1000 else 2)
