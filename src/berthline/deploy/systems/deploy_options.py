"""The options of `berthline deploy SYSTEM` that all systems share; each extends them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from tyro.conf import arg


class DeployOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of every system."""

    scheduler: Annotated[str, arg(metavar="SCHEDULER")] = "fcfs+easy"
    """Who decides: a rule or a learned policy, as everywhere."""
    mode: Annotated[str, arg(metavar="MODE")] = "shadow"
    """shadow decides and touches nothing; advise gives reversible hints; act places jobs."""
    knowledge: Annotated[str, arg(metavar="NAME")] = "estimate"
    """What the scheduler knows of run times: estimate, predicted or none."""
    journal: Annotated[str, arg(metavar="DIR")] = "berthline-journal"
    """Where everything is recorded; the same directory continues after a stop or a crash."""
    config: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """A TOML file with `schema = 1` that sets the rules."""
    every: Annotated[float, arg(metavar="SECONDS")] = 15.0
    """Seconds from one cycle to the next, on the clock of the system."""
    once: Annotated[bool, arg(help_behavior_hint="")] = False
    """Make one cycle and end."""
    cycles: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """End after this many cycles."""
    override: Annotated[str | None, arg(metavar="REASON", help_behavior_hint="")] = None
    """Act without a verdict of `deploy judge`; the reason is journaled."""
    metrics_port: Annotated[int | None, arg(metavar="PORT", help_behavior_hint="")] = None
    """Serve metrics for Prometheus on this port of the loopback address."""
    json: Annotated[bool, arg(help_behavior_hint="")] = False
    """Print one JSON object at the end, and nothing else, to stdout."""
