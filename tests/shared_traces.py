"""Where the real traces lie that some tests read; those tests are skipped where they are absent."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED_TRACES = REPOSITORY.parent / "shared" / "traces"
