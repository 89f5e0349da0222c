"""`berthline traces`: a verb with verbs of its own, each in a module of this room."""

from __future__ import annotations

import importlib

from berthline.errors import ConfigError, unknown_name

VERBS: dict[str, tuple[str, str]] = {
    "list": ("list_known", "list public traces; or known formats, generators or clusters"),
    "fetch": ("fetch", "download a public trace from its publisher"),
    "show": ("show", "show what is in a trace: sizes, times, load; as table and figure"),
    "validate": ("validate", "report what is wrong or odd in a trace, line by line"),
    "import": ("import_trace", "read any format, write Parquet; --anonymize hides names"),
    "convert": ("convert", "write a trace as SWF or Parquet, and report what is lost"),
    "split": ("split", "split by time into train, validation and test parts, with gaps"),
    "commands": ("commands", "write lists of commands to run on one node, from a seed"),
    "fit": ("fit", "fit a generator to a trace, and report how close it is"),
}
"""Each verb, its module, and its line in the help."""

_HELP = """\
usage: berthline traces VERB [OPTIONS]

List, fetch, show, check, convert and split traces of jobs. A FILE may have any
known format, plain or gzip'd; the format is recognised by its content.

Examples:
  berthline traces list
  berthline traces show trace.swf --cluster uniform:8x8:V100
  berthline traces validate trace.swf
  berthline traces import trace.swf --out trace.parquet --anonymize
  berthline traces split trace.swf --out parts --gap 5m

positional arguments
{verbs}

options
  -h, --help  show this text; berthline traces VERB --help explains a verb
  --json      with any verb: print one JSON object to stdout
"""


def main(argv: list[str]) -> int:
    """Run the verb."""
    if not argv or argv[0] in ("-h", "--help"):
        width = max(map(len, VERBS))
        lines = (f"  {name:{width}}  {line}" for name, (_, line) in VERBS.items())
        print(_HELP.format(verbs="\n".join(lines)), end="")
        return 0
    verb, *rest = argv
    if verb not in VERBS:
        what, expected, hint = unknown_name(
            "verb", verb, VERBS, list_command="berthline traces --help"
        )
        raise ConfigError(what, where="berthline traces", expected=expected, hint=hint)
    module = importlib.import_module(f"berthline.cli.traces.{VERBS[verb][0]}")
    return int(module.main(rest))
