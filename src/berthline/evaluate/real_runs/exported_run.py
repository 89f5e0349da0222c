"""exported_run: the real run in a run directory that `berthline deploy export` wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.evaluate.real_runs.sim_to_real import RealRun
from berthline.runs.run_layout import DECISIONS

if TYPE_CHECKING:
    from berthline.runs.open_run import Run

_ACT = "act"


def exported_run(run: Run) -> RealRun:
    """Return the real run in a run directory.

    The run times of an export contain the delays of starts, so there are none besides.

    Raises:
        ConfigError: a file of it cannot be read.
    """
    tick, phase = _ticks(run)
    return RealRun(
        workload=run.workload,
        log=run.log,
        cluster=run.cluster,
        scheduler=str(run.settings["scheduler"]),
        knowledge=str(run.settings.get("knowledge", "estimate")),
        tick=tick,
        phase=phase,
    )


def _ticks(run: Run) -> tuple[float, float]:
    """Return the mean time between cycles that acted, and when one of them was."""
    import polars as pl

    path = run.path / DECISIONS
    if not path.is_file():
        return 0.0, 0.0
    rows = pl.read_parquet(path, columns=["cycle", "time", "mode"])
    rows = rows.filter(pl.col("mode") == _ACT).sort("cycle")
    if rows.is_empty() or rows["cycle"][0] == rows["cycle"][-1]:
        return 0.0, 0.0
    cycles = rows["cycle"][-1] - rows["cycle"][0]
    return (rows["time"][-1] - rows["time"][0]) / cycles, rows["time"][0]
