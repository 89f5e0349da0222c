"""Every command in the documentation runs, and prints what the page shows below it.

In `console` blocks a command follows `$ `, and what it prints stands below; `...` stands for lines
left out. In `sh` blocks every line is a command. A block that must not be run has
`<!-- not run: WHY -->` above it; its options are checked all the same. Every command runs in a new
folder, except on pages with `<!-- run in order -->`, where one folder serves all of them.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
import shlex

import pytest
from tests.docs.pages import PAGES, ROOT, Block, blocks, name_of, runs_in_order

from berthline.cli.main import VERBS, main, module_of
from berthline.cli.options import parse_options
from berthline.cli.traces.command import VERBS as TRACES_VERBS
from berthline.deploy.systems.system_table import find_system
from berthline.traces.formats.parquet import write_parquet
from berthline.traces.load import load_trace


@dataclasses.dataclass(frozen=True)
class Command:
    """A command line, and the output the page shows for it."""

    block: Block
    text: str
    shown: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.block.page}: {self.text}"[:100]


def commands_of(block: Block) -> list[Command]:
    lines = block.text.splitlines()
    if block.language == "sh":
        lines = ["$ " + line for line in lines if line.strip() and not line.startswith("#")]
    found: list[Command] = []
    for line in lines:
        if line.startswith("$ "):
            found.append(Command(block, line.removeprefix("$ "), ()))
        else:
            assert found, f"{block.where}: output without a command"
            found[-1] = dataclasses.replace(found[-1], shown=(*found[-1].shown, line.rstrip()))
    return found


COMMANDS = [
    command
    for page in PAGES
    for block in blocks(page, "console", "sh")
    for command in commands_of(block)
]
OURS = [command for command in COMMANDS if command.text.startswith("berthline")]
OTHERS = [command for command in COMMANDS if command not in OURS]


def words_of(command: Command) -> tuple[list[str], str]:
    """Return the arguments, and the file that `> FILE` names."""
    words = shlex.split(command.text, comments=True)[1:]
    if ">" in words:
        return words[: words.index(">")], words[-1]
    return words, ""


IN_ORDER = [name_of(page) for page in PAGES if runs_in_order(page)]
TO_RUN = {
    command.text: command
    for command in OURS
    if not command.block.not_run and command.block.page not in IN_ORDER
}


@pytest.mark.parametrize("command", TO_RUN.values(), ids=str)
def test_command_runs(command, playground, capsys):
    if "traces convert trace.parquet " in command.text:  # another command must write it again
        write_parquet(load_trace("trace.swf"), "trace.parquet")
    if re.search(r"^berthline (eval|report).* runs/compare", command.text):  # so must this
        assert main(["compare", "synthetic", "--jobs", "50", "--out", "runs/compare"]) == 0
        capsys.readouterr()
    if re.search(r"^berthline deploy \w+ berthline-journal", command.text):  # so must a controller
        journal = command.text.split()[3]
        begun = ["deploy", "simulated", "synthetic", "--jobs", "50", "--speed", "0"]
        if not (playground / journal / "verdict.json").exists():
            assert main([*begun, "--every", "600", "--cycles", "60", "--journal", journal]) == 0
            assert main(["deploy", "judge", journal]) == 0
            capsys.readouterr()
    if re.search(r"--from-snapshot", command.text):  # so must a run that stopped
        directory = command.text.split()[2]
        stopped = ["sim", "synthetic", "--jobs", "50", "--until", "3600", "--out", directory]
        if not (playground / directory).exists():
            assert main(stopped) == 0
            capsys.readouterr()
    if re.search(r"^berthline report .*runs/ppo", command.text):  # the page of a short training
        pytest.importorskip("torch", reason="the extra train is not installed")
        short = "--steps 64 --envs 4 --episodes 2 --out runs/ppo"
        assert main(["train", "ppo", *short.split()]) == 0
        capsys.readouterr()
    if re.search(r"^berthline report trials", command.text):  # so must a sweep
        pytest.importorskip("torch", reason="the extra train is not installed")
        pytest.importorskip("optuna", reason="the extra sweep is not installed")
        short = "--steps 64 --envs 4 --episodes 2 --trials 2 --sweep config.entropy=0.01,0.02"
        if not (playground / "runs/sweep").exists():
            assert main(["train", "ppo", *short.split(), "--out", "runs/sweep"]) == 0
            capsys.readouterr()
    if re.search(
        r"^berthline (sim|eval|export|watch) .*runs/ppo", command.text
    ):  # training takes long
        pytest.importorskip("onnx", reason="the extra export is not installed")
        pytest.importorskip("onnxruntime", reason="the extra deploy is not installed")
        from tests.learn.made_policies import save_policy

        from berthline.learn.networks.networks import NetworkConfig

        save_policy(playground / "runs/ppo", "pick", {"episode_jobs": 50}, NetworkConfig())
    out = run(command, playground, capsys)
    for same in OURS:  # a command on several pages runs once
        if same.text == command.text:
            assert_shown(same, out)


@pytest.mark.parametrize("page", IN_ORDER)
def test_commands_run_in_order(page, playground, capsys):
    for command in OURS:
        if command.block.page == page and not command.block.not_run:
            assert_shown(command, run(command, playground, capsys))


def run(command, folder, capsys):
    """Run a command and return what it prints."""
    arguments, file = words_of(command)
    if "--figure" in arguments or "report" in arguments:
        pytest.importorskip("matplotlib", reason="figures need the extra `report`")
    code = main(arguments)
    captured = capsys.readouterr()
    assert code == 0, f"{command}\n{captured.err}"
    if file:
        (folder / file).write_text(captured.out)
    return captured.out


def assert_shown(command: Command, out: str) -> None:
    """Check that the lines shown follow one another in the output, but for dots."""
    printed = [line.rstrip() for line in out.splitlines()]
    at, gap = 0, False
    for line in command.shown:
        if line == "...":
            gap = True
            continue
        where = printed.index(line, at) if line in printed[at:] else -1
        assert where >= 0, f"{command.block.where} shows {line!r}, which is not printed:\n{out}"
        assert gap or where == at, f"{command.block.where} leaves lines out before {line!r}"
        at, gap = where + 1, False


@pytest.mark.parametrize("command", [c for c in OURS if c.block.not_run], ids=str)
def test_command_that_is_not_run_has_a_reason_and_right_options(command, tmp_path, monkeypatch):
    assert len(command.block.not_run.split()) >= 2
    arguments, _ = words_of(command)
    monkeypatch.chdir(tmp_path)
    if "--config-file" in arguments:
        file = tmp_path / arguments[arguments.index("--config-file") + 1]
        file.parent.mkdir(parents=True)
        file.write_text('algorithm = "ppo"\nseat = "pick"\n')
    verb, *rest = arguments
    assert verb in VERBS
    module = f"berthline.cli.{module_of(verb)}"
    if verb == "traces":
        verb, *rest = rest
        module = f"berthline.cli.traces.{TRACES_VERBS[verb][0]}"
    name = verb.capitalize()
    if rest[:1] == ["es"]:
        module, name, rest = "berthline.cli.train.es", "TrainEs", rest[1:]
    if verb == "deploy":
        system, *rest = rest
        parse_options(find_system(system).Options, rest, verb=f"deploy {system}")
        return
    if verb == "report" and rest[0] in {"curve", "figures"}:
        kind, *rest = rest
        module, name = f"berthline.cli.report.{kind}", f"Report{kind.capitalize()}"
    parse_options(getattr(importlib.import_module(module), name), rest, verb=verb)


@pytest.mark.parametrize("command", OTHERS, ids=str)
def test_other_commands_are_make_targets_or_benchmarks(command):
    program, target, *rest = command.text.split()
    if (program, target) == ("python", "-m"):
        folder, module = rest[0].split(".")
        assert (ROOT / folder / f"{module}.py").is_file(), command
        return
    assert program == "make", command
    assert target in make_targets()


def make_targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE))


def test_make_targets_named_in_the_pages_exist():
    named = {
        (page.name, target)
        for page in PAGES
        for target in re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))
    }
    assert named
    assert {target for _, target in named} <= make_targets(), named


def named_lists() -> set[tuple[str, ...]]:
    """Return the commands that list names, as help and pages mention them in a sentence."""
    found = set()
    for page in PAGES:
        text = " ".join(page.read_text(encoding="utf-8").split())
        for verb, names in re.findall(
            r"[:(`] ?berthline (policies|traces list)((?: \|? ?[a-z]+)*)[.)`]", text
        ):
            found |= {(*verb.split(), name) for name in names.replace("|", " ").split()}
    return found


@pytest.mark.parametrize("words", sorted(named_lists()), ids=" ".join)
def test_lists_named_in_a_sentence_exist(words, capsys):
    assert main(list(words)) == 0, capsys.readouterr().err


def test_every_verb_has_an_example():
    first_words = [words_of(command)[0] for command in OURS]
    assert {words[0] for words in first_words} >= set(VERBS)
    assert {words[1] for words in first_words if words[0] == "traces"} >= set(TRACES_VERBS)
