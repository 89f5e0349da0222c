"""The systems that `berthline deploy` knows: a name, a line of help, and the module that connects.

The module has two members:

- `Options`, a subclass of `DeployOptions` with the system's own options. The docstring of the class
  is the help of `berthline deploy NAME`, that of each field the help of its option.
- `connect(options, journal)`, which returns the adapter. `journal` is the directory of the journal,
  in which an adapter may keep files of its own under its name.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from berthline.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from pathlib import Path

    from berthline.deploy.systems.contract import Adapter
    from berthline.deploy.systems.deploy_options import DeployOptions


class SystemModule(Protocol):
    """The module of a system."""

    Options: type[DeployOptions]

    def connect(self, options: Any, journal: Path) -> Adapter:
        """Return the adapter for these options.

        Raises:
            BerthlineError: an option is wrong, or the system cannot be reached.
        """


class System(NamedTuple):
    """A system in the table.

    Attributes:
        summary: a line of help.
        module: the dotted name of its module, imported on first use.
    """

    summary: str
    module: str


SYSTEMS: dict[str, System] = {
    "simulated": System(
        "the simulator as a cluster, to try everything without one",
        "berthline.deploy.systems.simulated.connect_simulated",
    ),
    "node": System(
        "the GPUs of this machine, or declared slots, with real processes",
        "berthline.deploy.systems.node.connect_node",
    ),
}


def find_system(name: str) -> SystemModule:
    """Return the module of a system.

    Raises:
        ConfigError: there is no system of that name.
    """
    if name not in SYSTEMS:
        what, expected, hint = unknown_name("system", name, SYSTEMS)
        raise ConfigError(what, expected=expected, hint=hint or "berthline deploy --help")
    module: SystemModule = importlib.import_module(SYSTEMS[name].module)
    return module
