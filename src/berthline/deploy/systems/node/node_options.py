"""The options of `berthline deploy node`."""

from __future__ import annotations

from typing import Annotated

from tyro.conf import Positional, arg

from berthline.deploy.systems.deploy_options import DeployOptions


class NodeOptions(DeployOptions, frozen=True, kw_only=True):
    """Run the commands of a list on the GPUs of this machine, or on declared slots.

    A small process of its own, the runner, starts and watches the jobs.

    They go on when the controller ends, and the same command finds them again.

    Without a controller that acts, it starts jobs first come, first served.

    Examples:
      berthline deploy node trace.csv --slots 4 --scheduler sjf
      berthline deploy node trace.csv --mode act --override "a node of my own" --every 1
    """

    workload: Annotated[
        Positional[str],
        arg(metavar="TRACE.csv", help="Columns name, command, est_runtime_s, submit_time, ..."),
    ]
    slots: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: all GPUs)")] = None
    """Use N GPUs; where there are none, N jobs run side by side."""
    shell: Annotated[bool, arg(help_behavior_hint="")] = False
    """Hand commands to /bin/sh; otherwise they are programs with arguments, and `;` is text."""
    preempt: Annotated[str, arg(metavar="HOW")] = "checkpoint"
    """How a running job yields: checkpoint (a signal, then a grace time), freeze or kill."""
    signal: Annotated[str, arg(metavar="NAME")] = "SIGTERM"
    """The signal of --preempt checkpoint, sent to all processes of the job."""
    grace: Annotated[float, arg(metavar="SECONDS")] = 10.0
    """After so long without an end it is killed."""
    cgroups: Annotated[str, arg(metavar="VERSION")] = "auto"
    """Control groups for memory limits and freezing: auto, v2, v1 or none."""
    telemetry: Annotated[str, arg(metavar="SOURCE")] = "auto"
    """What the GPUs do each second: auto, nvml, nvidia-smi or none."""
    time_scale: Annotated[float, arg(metavar="X")] = 1.0
    """Multiply all times of the list, to try it out faster; jobs read BERTHLINE_TIME_SCALE."""
