"""The `berthline` command.

Only this module is imported to print the verb list, so it must stay free of heavy imports: each
verb's module is imported when that verb is called. A verb's module has `main(argv) -> int`.
"""

from __future__ import annotations

import errno
import sys

VERBS: dict[str, str] = {
    "demo": "compare schedulers on a bundled workload and tune one (start here)",
    "sim": "run one workload under one scheduler",
    "compare": "compare schedulers on the same jobs, with confidence intervals",
    "eval": "evaluate a scheduler on held-out windows",
    "train": "train a policy, keep the best, and evaluate it",
    "report": "write a page about a run: verdict, tables and figures",
    "whatif": "show what other schedulers would have done to a week of your log",
    "explain": "explain why a job waited, and what would have helped",
    "export": "export a run for Perfetto or Batsim, or as SWF",
    "traces": "list, fetch, show, check, convert and split traces",
    "policies": "list the parts of schedulers, and the conditions of clusters",
    "bench": "measure the simulator's jobs per second on this machine",
    "doctor": "check the installation, and show what to install or report",
}
"""Each verb and its line in the help."""

SINGLE_MODULES = ("doctor", "export")
"""Verbs that are one module. Every other verb is a room of that name with a module `command`."""

FAILURE, USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141

_HELP = """\
usage: berthline VERB [OPTIONS]

Replay, compare and improve the scheduling of GPU clusters.

verbs:
{verbs}

examples:
  berthline demo
  berthline sim synthetic --jobs 10000 --scheduler sjf+easy
  berthline compare trace.swf --cluster cluster.toml --schedulers fcfs,fcfs+easy

options:
  -h, --help  this list; berthline VERB --help explains a verb, with an example
  --version   the version
  --debug     with any verb: show the Python traceback of an error
"""


def module_of(verb: str) -> str:
    """Return the module below `berthline.cli` that runs a verb."""
    return verb if verb in SINGLE_MODULES else f"{verb}.command"


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 failure, 2 usage, 3 refused for safety."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets "?" instead of a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _close_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        if debug:
            raise
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if debug:
            raise
        return _report(error)
    return code


def _dispatch(arguments: list[str]) -> int:
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in ("-h", "--help"):
        width = max(map(len, VERBS))
        verbs = "\n".join(f"  {name:{width}}  {line}" for name, line in VERBS.items())
        print(_HELP.format(verbs=verbs), end="")
        return 0
    if arguments[0] == "--version":
        from berthline.package_version import package_version

        print(f"berthline {package_version()}")
        return 0
    verb, *rest = arguments
    if verb not in VERBS:
        from berthline.errors import ConfigError, unknown_name

        what, expected, hint = unknown_name("verb", verb, VERBS, list_command="berthline --help")
        raise ConfigError(what, expected=expected, hint=hint)
    import importlib

    try:
        run = importlib.import_module(f"berthline.cli.{module_of(verb)}").main
        return int(run(rest))
    except SystemExit as stop:  # tyro prints help this way
        return stop.code if isinstance(stop.code, int) else FAILURE if stop.code else 0


def _report(error: Exception) -> int:
    """Print an error in the form common to all errors, and return the exit code."""
    from berthline.cli.parameter_names import as_options
    from berthline.errors import BerthlineError

    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
        print(f"error: cannot write the output: {error.strerror}", file=sys.stderr)
        _close_stdout()
        return FAILURE
    if isinstance(error, BerthlineError):
        print(f"error: {as_options(str(error))}", file=sys.stderr)
        return error.exit_code
    what = str(error).partition("\n")[0]
    print(
        f"error: unexpected {type(error).__name__}{f': {what}' if what else ''}\n"
        "hint: this is a fault in Berthline or its installation; run the command again with\n"
        "      --debug to see where, and report it with the output of: berthline doctor",
        file=sys.stderr,
    )
    return FAILURE


def _close_stdout() -> None:
    """Exit quietly when the reader of our output (such as `head`) has closed the pipe."""
    import os

    # The interpreter flushes stdout once more on exit, which must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
