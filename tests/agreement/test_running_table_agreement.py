"""Tables of running jobs in plain runs, which the native core keeps by expected end.

Estimates are wrong and times are whole numbers, so that many jobs are over their time or have the
same time left: these are shown by job. Other times are such that what remains is rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.agreement.random_agent_runs import AgentRun
from tests.agreement.test_agent_agreement import SideBySide

from berthline.model.workload import Workload

SEATS: dict[str, dict[str, Any]] = {
    "pick": {"semantics": "mask"},
    "pick, ranks": {"semantics": "rank", "discipline": "easy"},
    "pick, waits": {"semantics": "wait"},
    "place": {},
    "backfill": {},
    "gate": {"discipline": "easy", "max_holds": 1},
    "meta": {"every_seconds": 0.0},
}
COLUMNS: dict[str, Any] = {
    "default": None,
    "of other words": {"running": ["wait", "remaining", "running", "attained", "restarts"]},
}


def jobs_of(seed: int) -> Workload:
    """Return jobs that queue on 16 GPUs."""
    rng = np.random.default_rng(seed)
    step = 1.0 if seed % 2 else 1 / 3
    run = rng.integers(1, 40, 80) * step
    stated = np.where(rng.random(80) < 0.5, rng.integers(1, 5, 80), rng.integers(5, 60, 80)) * step
    return Workload.from_columns(
        submit=np.sort(rng.integers(0, 60, 80) * step),
        run=run,
        gpus=rng.choice([1, 1, 2, 4], 80),
        estimate=stated,
    )


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("seat", SEATS)
def test_running_tables_agree(seat: str, columns: str) -> None:
    for seed in range(4):
        options: dict[str, Any] = {
            "workload": jobs_of(seed),
            "cluster": "uniform:4x4:V100",
            "episode_jobs": None,
            "features": COLUMNS[columns],
            "running_window": 3 if seed < 2 else 8,
            **SEATS[seat],
        }
        side = SideBySide(AgentRun(seat.partition(",")[0], options, seed))
        side.play()
        assert side.steps > 20
