"""Jobs that still ran when the log was taken: left out, unless they are asked for.

They held GPUs that other jobs waited for, so a replay of the log misses them. How long they would
have run is not known; kept, they end when the log does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = ("drop", "keep")

RUNNING_JOBS_OPTION = {
    "running_jobs": "jobs that still ran when the log was taken: drop (default), or keep for as"
    " long as they had run",
}


def check_running_jobs(setting: str, path: Path) -> None:
    """Raise a ConfigError if this is no setting of the option."""
    if setting not in SETTINGS:
        what, expected, hint = unknown_name("setting of running_jobs", setting, SETTINGS)
        raise ConfigError(what, where=str(path), expected=expected, hint=hint)
