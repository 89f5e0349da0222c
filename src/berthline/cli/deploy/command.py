"""`berthline deploy`: systems and verbs about journals, each verb in a module of this room."""

from __future__ import annotations

import importlib

from berthline.deploy.systems.system_table import SYSTEMS
from berthline.errors import ConfigError, unknown_name

VERBS: dict[str, tuple[str, str]] = {
    "status": ("status", "show what the controller of a journal does and did last"),
    "stop": ("stop", "end a controller; all goes back to the system's own scheduler"),
    "judge": ("judge", "compare ours with the native scheduler over a journal's period"),
    "export": ("export_journal", "write a journal as a run directory, or an anonymised copy"),
    "real": ("real", "show what really happened on a node, and the same jobs simulated"),
    "replay": ("replay", "make all decisions of a journal again; report the first difference"),
}
"""Each verb, its module, and its line in the help."""

_HELP = """\
usage: berthline deploy SYSTEM [OPTIONS]
       berthline deploy VERB JOURNAL [OPTIONS]

Schedule a cluster beside its own scheduler. In shadow mode, the default,
nothing is touched: decisions are written to a journal, to be compared.

Examples:
  berthline deploy simulated synthetic --jobs 200 --scheduler sjf+easy --once
  berthline deploy status berthline-journal
  berthline deploy judge berthline-journal
  berthline deploy stop berthline-journal

positional arguments
{systems}
{verbs}

options
  -h, --help  show this text; berthline deploy NAME --help explains one of these
"""


def main(argv: list[str]) -> int:
    """Run a system or a verb."""
    if not argv or argv[0] in ("-h", "--help"):
        width = max(map(len, (*VERBS, *SYSTEMS)))
        systems = [f"  {name:{width}}  {system.summary}" for name, system in SYSTEMS.items()]
        verbs = [f"  {name:{width}}  {line}" for name, (_, line) in VERBS.items()]
        print(_HELP.format(systems="\n".join(systems), verbs="\n".join(verbs)), end="")
        return 0
    name, *rest = argv
    if name in SYSTEMS:
        from berthline.cli.deploy.system import deploy_system

        return deploy_system(name, rest)
    if name not in VERBS:
        what, expected, hint = unknown_name(
            "system or verb", name, (*SYSTEMS, *VERBS), list_command="berthline deploy --help"
        )
        raise ConfigError(what, where="berthline deploy", expected=expected, hint=hint)
    module = importlib.import_module(f"berthline.cli.deploy.{VERBS[name][0]}")
    return int(module.main(rest))
