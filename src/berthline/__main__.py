"""`python -m berthline` is the command line."""

import sys

from berthline.cli.main import command

sys.exit(command())
