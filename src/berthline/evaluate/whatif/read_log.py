"""Reading the log that `whatif` is about, with the jobs that were still running."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from berthline.errors import ConfigError
from berthline.model.workload import Workload
from berthline.text_or_path import text_of
from berthline.traces.formats.format_table import FORMATS, detect_format
from berthline.traces.load import load_trace
from berthline.traces.reading.files import is_directory, read_head

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.text_or_path import TextOrPath

_RUNNING = "running_jobs"


def read_log(
    log: Workload | TextOrPath, format_name: str | None, options: Mapping[str, object]
) -> Workload:
    """Return the jobs of a log, including jobs still running if the format can tell.

    Running jobs held GPUs that others waited for.

    Args:
        log: the file; a Workload is returned unchanged.
        format_name: its format; None = recognise it.
        options: of its format.
    """
    if isinstance(log, Workload):
        if format_name is not None or options:
            raise ConfigError(
                "a format or settings given for jobs that are already loaded",
                where=log.name,
                expected="`format` and `settings` only with a file",
            )
        return log
    path = Path(text_of("workload", log))
    found = FORMATS.get(format_name or "")
    if found is None and format_name is None and path.is_file() and not is_directory(path):
        found = detect_format(read_head(path), path)
    if found is not None and _RUNNING in found.options:
        options = {_RUNNING: "keep", **options}
    return load_trace(path, format_name, **options)
