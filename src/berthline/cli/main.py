"""The `berthline` command.

Only this module is imported to print the verb list, so it must stay free of heavy imports: each
verb's module is imported when that verb is called. A verb's module has `main(argv) -> int`.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys

VERBS: dict[str, str] = {
    "demo": "compare schedulers on a bundled workload and tune one (start here)",
    "sim": "run one workload under one scheduler",
    "compare": "compare schedulers on the same jobs, with confidence intervals",
    "eval": "evaluate a scheduler on held-out windows",
    "suite": "run a suite of many cells, on this machine or a cluster",
    "train": "train a policy, keep the best, and evaluate it",
    "report": "write a page about a run: verdict, tables and figures",
    "whatif": "show what other schedulers would have done to a week of your log",
    "watch": "play a run in the terminal, or write it as GIF or MP4",
    "explain": "explain why a job waited, and what would have helped",
    "export": "export a run for Perfetto or Batsim, or as SWF",
    "traces": "list, fetch, show, check, convert and split traces",
    "deploy": "schedule a cluster beside its own scheduler, first as its shadow",
    "policies": "list the parts of schedulers, and the conditions of clusters",
    "bench": "measure the simulator's jobs per second on this machine",
    "doctor": "check the installation, and show what to install or report",
}
"""Each verb and its line in the help."""

SINGLE_MODULES = ("doctor", "export")
"""Verbs that are one module. Every other verb is a room of that name with a module `command`."""

FAILURE, USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Errors of a disk that is full, broken or not to be written."""

_YOUNG_OBJECTS = 50_000
"""New objects after which garbage is collected: Python's 700 make imports a tenth slower."""

_OPENBLAS = "OPENBLAS_NUM_THREADS"

_MAY_LEARN = ("train", "bench")
"""Verbs that may multiply large matrices."""

_SIGNALS = 3
"""Up to this number of Ctrl-C in a row count as one."""

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


def command() -> int:
    """Run one command in a process of its own, which ends with it: the console script."""
    gc.set_threshold(_YOUNG_OBJECTS, 20, 20)
    if sys.argv[1:2] and sys.argv[1] not in _MAY_LEARN:
        # Otherwise numpy starts a thread per core, each of which costs CPU time from the start.
        os.environ.setdefault(_OPENBLAS, "1")
    try:
        return main()
    finally:
        # What is still there goes with the process; to search it for cycles would take 80 ms.
        gc.disable()
        gc.freeze()


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 failure, 2 usage, 3 refused for safety."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    if sys.stderr is None:  # closed by the caller, as by `2>&-`
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - to the end
    if sys.stdout is None:
        _tell("error: cannot write the output: stdout is closed")
        return FAILURE
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets "?" instead of a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    from berthline.cli.visible_output import visible_output

    with visible_output():
        return _run(arguments, debug=debug)


def _run(arguments: list[str], *, debug: bool) -> int:
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _close_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        if debug:
            raise
        return _interrupted()
    except Exception as error:
        if debug:
            raise
        return _report(error)
    return code


def _interrupted() -> int:
    """Report Ctrl-C, and return the exit code."""
    for _ in range(_SIGNALS):
        try:
            _tell("interrupted")
            break
        except KeyboardInterrupt:
            # polars has a handler of its own beside Python's: one Ctrl-C may arrive twice.
            continue
    return INTERRUPTED


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

    if isinstance(error, OSError) and error.errno in _FULL:
        _tell(f"error: cannot write the output: {error.strerror}")
        _close_stdout()
        return FAILURE
    if isinstance(error, BerthlineError):
        _tell(f"error: {as_options(str(error))}")
        return error.exit_code
    what = str(error).partition("\n")[0]
    _tell(
        f"error: unexpected {type(error).__name__}{f': {what}' if what else ''}\n"
        "hint: this is a fault in Berthline or its installation; run the command again with\n"
        "      --debug to see where, and report it with the output of: berthline doctor"
    )
    return FAILURE


def _tell(text: str) -> None:
    """Print to stderr; if that is full or closed, the exit code still tells."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _close_stdout() -> None:
    """Exit quietly when the reader of our output (such as `head`) has closed the pipe."""
    # The interpreter flushes stdout once more on exit, which must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
