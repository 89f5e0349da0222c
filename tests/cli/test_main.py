"""The command itself: verb list, help, dispatch, errors and exit codes."""

import os
import subprocess
import sys

import pytest

from berthline.cli import main as command
from berthline.cli.main import VERBS, main
from berthline.errors import SimulationError

HEAVY = ("tyro", "msgspec", "numpy", "polars", "rich", "gymnasium", "simpy", "berthline._native")


def python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, **options
    )


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_verb_list(run, argv):
    outcome = run(*argv)
    assert outcome.code == 0
    assert "examples:" in outcome.out
    assert "berthline VERB --help" in outcome.out
    for verb in VERBS:
        assert f"\n  {verb} " in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80


@pytest.mark.parametrize("argv", [["--help"], ["--version"], []])
def test_verb_list_is_light(argv):
    code = (
        "import sys; from berthline.cli.main import main; "
        f"code = main({argv!r}); "
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr); "
        "sys.exit(code)"
    )
    done = python("-c", code)
    assert done.returncode == 0
    assert done.stderr.strip() == "[]"


def test_a_process_of_its_own_ends_without_a_search_for_garbage():
    code = (
        "import sys; sys.argv = ['berthline', *sys.argv[1:]]; "
        "from berthline.cli.main import command; code = command(); "
        "import gc, os; print(code, gc.isenabled(), gc.get_freeze_count() > 0, "
        "os.environ.get('OPENBLAS_NUM_THREADS'))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}

    def last_line(*argv, **more):
        done = python("-c", code, *argv, env=environment | more)
        return done.stdout.splitlines()[-1]

    assert last_line("--version") == "0 False True 1"
    assert last_line("--version", OPENBLAS_NUM_THREADS="3") == "0 False True 3"
    # Training may use all cores.
    assert last_line("train", "--nothing") == "2 False True None"


def test_a_process_that_has_loaded_much_ends_quietly(tmp_path):
    learns = ("train", "ppo", "--env", "Nothing", "--out", str(tmp_path / "run"))
    done = python("-m", "berthline", *learns)
    assert done.returncode == 2
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["error", "expected"]
    done = python("-m", "berthline", "sim", "synthetic", "--jobs", "5", "--cluster", "uniform:1x8")
    assert (done.returncode, done.stderr) == (0, "")


def test_explaining_a_run_loads_little(run, tmp_path):
    directory = str(tmp_path / "run")
    small = ("--cluster", "uniform:1x8", "--jobs", "50", "--load", "1.2")
    assert run("sim", "synthetic", *small, "--out", directory).code == 0
    heavy = ("simpy", "typeguard", "numpy.ma", "gymnasium", "matplotlib", "asyncio")
    code = (
        "import sys; from berthline.cli.main import main; "
        f"code = main(['explain', 'longest', {directory!r}, '--quick']); "
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    assert python("-c", code).stderr.strip() == "[]"


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb(run, verb):
    outcome = run(verb, "--help")
    assert outcome.code == 0
    assert outcome.err == ""
    head = outcome.out.partition("╭")[0]
    assert f"\n  berthline {verb}" in head  # an example
    assert "Example" in head
    # `watch` shows frames and prints no results; of `deploy`, what has results has its own help.
    assert verb in ("watch", "deploy") or "--json" in outcome.out
    assert "None" not in outcome.out  # no default that only a programmer understands
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert run("help", verb).out == outcome.out


def test_version(run):
    outcome = run("--version")
    assert outcome.code == 0
    assert outcome.out.startswith("berthline ")


@pytest.mark.parametrize("verbs", [["sim"], ["traces"], ["traces", "show"]])
def test_help_as_a_verb(run, verbs):
    assert run("help", *verbs).out == run(*verbs, "--help").out


def test_help_on_a_narrow_terminal__keeps_words_whole(run, monkeypatch):
    wide = run("sim", "--help").out
    monkeypatch.setenv("COLUMNS", "30")
    assert run("sim", "--help").out == wide
    assert os.environ["COLUMNS"] == "30"


def test_unknown_verb_names_the_nearest(run):
    outcome = run("smi")
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: unknown verb 'smi'\n")
    assert "did you mean 'sim'?" in outcome.err


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["sim", "synthetic", "--jbs", "3"], "did you mean '--jobs'?"),
        (["sim", "synthetic", "another"], "unexpected argument 'another'"),
        (["explain", "--tp", "3", "run"], "did you mean '--top'?"),
        (["explain", "run", "--job", "3"], "hint: it is given without --job: see berthline"),
        (["sim", "--lod", "1"], "did you mean '--load'?"),
        (["sim", "synthetic", "--jobs"], "error: --jobs has no value\n"),
        (["sim"], "error: WORKLOAD is missing\nexpected: A trace file"),
        (["doctor", "--jsn"], "did you mean '--json'?"),
    ],
)
def test_mistyped_options(run, argv, text):
    outcome = run(*argv)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert text in outcome.err
    assert f"berthline {argv[0]} --help" in outcome.err
    assert "│" not in outcome.err


def failing(error):
    def dispatch(arguments):
        raise error

    return dispatch


def test_error_sets_the_exit_code(run, monkeypatch):
    error = SimulationError("it stopped", where="there", expected="an end", hint="try again")
    monkeypatch.setattr(command, "_dispatch", failing(error))
    outcome = run("sim", "--json")
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err == "error: it stopped: there\nexpected: an end\nhint: try again\n"


def test_unexpected_error_is_one_clear_line(run, monkeypatch):
    monkeypatch.setattr(command, "_dispatch", failing(ZeroDivisionError("oh\nno")))
    outcome = run("sim")
    assert outcome.code == 1
    assert outcome.err.startswith("error: unexpected ZeroDivisionError: oh\nhint: ")
    assert "--debug" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("error", [ZeroDivisionError("oh"), SimulationError("it stopped")])
def test_debug_lets_errors_through(monkeypatch, error):
    monkeypatch.setattr(command, "_dispatch", failing(error))
    with pytest.raises(type(error)):
        main(["sim", "--debug"])


def test_interrupt(run, monkeypatch):
    monkeypatch.setattr(command, "_dispatch", failing(KeyboardInterrupt()))
    outcome = run("sim")
    assert (outcome.code, outcome.err) == (130, "interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close differently there")
@pytest.mark.parametrize("verb", ["--help", "policies", "policies --json"])
def test_closed_pipe_is_quiet(verb):
    shell = f'"{sys.executable}" -m berthline.cli.main {verb} | true'
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_terminal_without_unicode():
    done = python(
        "-c",
        "import sys; from berthline.cli.main import main; sys.exit(main(['policies', 'gates']))",
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "express-lane" in done.stdout
