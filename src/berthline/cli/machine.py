"""The machine and the installation, as results and reports name them."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

CPU_FEATURES = ("sse4_2", "avx", "avx2", "fma", "avx512f", "amx_tile", "asimd", "sve")


def machine_line() -> str:
    """Return a line that describes this machine."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return (
        f"{cpu_count()}, {platform.machine()}, Python {platform.python_version()}, "
        f"load average {load}"
    )


def cpu_count() -> str:
    """Return the number of cores, and how many of them this process may use."""
    every = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else every
    text = f"{every} core{'s' if every > 1 else ''}"
    return text if usable == every else f"{text}, {usable} for this process"


def cpu_features() -> list[str]:
    """Return the relevant instruction sets, if the system reports them."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    present = set(match[1].split()) if match else set()
    return [feature for feature in CPU_FEATURES if feature in present]
