"""The folder of real traces that some tests read; without it, those tests are skipped."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED_TRACES = REPOSITORY.parent / "shared" / "traces"
