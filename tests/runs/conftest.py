"""The command line, run in the test process, which writes the run directories."""

from tests.cli.conftest import run, trace

__all__ = ["run", "trace"]
