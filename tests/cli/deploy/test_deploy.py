"""`berthline deploy` from the command line: a controller, its journal, every verb about it."""

import json

import pytest

from berthline.cli.main import main


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cli") / "journal"
    argv = ["deploy", "simulated", "synthetic", "--jobs", "60", "--scheduler", "sjf+easy"]
    assert (
        main(
            [*argv, "--speed", "0", "--cycles", "200", "--every", "60", "--journal", str(directory)]
        )
        == 0
    )
    return str(directory)


def result(capsys, *argv):
    code = main([*argv, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_status(journal, capsys):
    code, found = result(capsys, "deploy", "status", journal)
    assert (code, found["cycles"], found["controller"], found["held"]) == (0, 200, None, 0)
    assert found["mode"] == "shadow"
    assert main(["deploy", "status", journal]) == 0
    assert "none runs" in capsys.readouterr().out


def test_stop_without_a_controller(journal, capsys):
    code, found = result(capsys, "deploy", "stop", journal)
    assert (code, found["was_running"]) == (0, False)


def test_replay_export_judge(journal, capsys, tmp_path):
    code, found = result(capsys, "deploy", "replay", journal)
    assert (code, found["difference"]) == (0, "")
    run = str(tmp_path / "run")
    assert main(["deploy", "export", journal, "--out", run]) == 0
    capsys.readouterr()
    code, found = result(capsys, "deploy", "judge", journal)
    assert (code, found["verdict"]) == (0, "too early")
    assert main(["deploy", "judge", journal]) == 0
    assert "bounded_slowdown_mean" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["status", "stop", "judge", "export", "replay"])
def test_no_journal__is_said(verb, tmp_path, capsys):
    more = ["--out", str(tmp_path / "out")] if verb == "export" else []
    assert main(["deploy", verb, str(tmp_path / "none"), *more]) == 2
    assert "there is no journal" in capsys.readouterr().err


def run(tmp_path, *argv):
    return main(["deploy", "simulated", "synthetic", "--journal", str(tmp_path / "j"), *argv])


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["--mode", "acts"], 2, "unknown mode 'acts'"),
        (["--every", "0"], 2, "--every is 0"),
        (["--cycles", "0"], 2, "--cycles is 0"),
        (["--speed", "-1"], 2, "--speed is -1"),
        (["--knowledge", "exact"], 2, "knows no exact run times"),
        (["--scheduler", "sjff"], 2, "sjff"),
        (["--scheduler", "runs/none"], 2, "runs/none"),
        (["--config", "none.toml"], 2, "none.toml"),
        (["--mode", "act", "--override", " "], 2, "--override is empty"),
        (["--mode", "act", "--once", "--speed", "0"], 3, "no verdict"),
        (["--pools", "none", "--once"], 2, "no job is in the pool"),
    ],
)
def test_wrong_options__are_told(tmp_path, capsys, argv, code, words):
    assert run(tmp_path, *argv) == code
    assert words in capsys.readouterr().err


def test_unknown_system(capsys):
    assert main(["deploy", "simulate"]) == 2
    assert "did you mean 'simulated'" in capsys.readouterr().err


def test_help(capsys):
    assert main(["deploy", "--help"]) == 0
    assert "simulated" in capsys.readouterr().out


def test_act_with_override__is_journaled(tmp_path, capsys):
    argv = ["--mode", "act", "--override", "a test", "--speed", "0", "--cycles", "20"]
    assert run(tmp_path, *argv, "--load", "2", "--every", "60") == 0
    capsys.readouterr()
    from berthline.deploy.journal.journal_file import JournalReader

    remarks = {one.kind: one.words for one in JournalReader(tmp_path / "j").remarks()}
    assert remarks["override"] == "a test"
    assert remarks["stop"] == "the controller ends"
