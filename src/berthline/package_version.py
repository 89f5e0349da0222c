"""The version of the installed package, as recorded in results."""

from __future__ import annotations

import functools

NOT_INSTALLED = "unknown (not installed)"


@functools.cache
def package_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("berthline")
    except PackageNotFoundError:
        return NOT_INSTALLED
