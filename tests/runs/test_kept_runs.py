"""An interrupted comparison resumes where it stopped, and only with the same command."""

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

from berthline.evaluate.compare import grid
from berthline.runs import kept_runs
from berthline.runs.run_layout import UNFINISHED

COMPARE = ("compare", "synthetic", "--jobs", "120", "--load", "1.5", "--windows", "3")
TABLES = ("jobs.parquet", "events.parquet", "workload.parquet", "cluster.toml")


@pytest.fixture
def stop_after(monkeypatch):
    """Let a comparison end after N runs, as if by Ctrl-C; returns the runs made since."""
    made = []
    make = grid.make_run

    def set_limit(limit):
        made.clear()

        def limited(*args, **options):
            if len(made) == limit:
                raise KeyboardInterrupt
            made.append(args)
            return make(*args, **options)

        monkeypatch.setattr(grid, "make_run", limited)
        return made

    return set_limit


def results(path):
    summary = json.loads((path / "summary.json").read_text())
    for result in summary["schedulers"]:
        del result["wall_seconds"]
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        del line["wall_seconds"]
    return summary, lines, [(path / name).read_bytes() for name in TABLES]


def test_goes_on(run, stop_after, tmp_path):
    out = tmp_path / "run"
    stop_after(7)
    outcome = run(*COMPARE, "--out", str(out))
    assert outcome.code == 130
    assert "finished runs are kept: to resume, run the same command with --resume" in outcome.err
    assert [path.name for path in out.iterdir()] == [UNFINISHED]

    made = stop_after(None)
    assert run(*COMPARE, "--out", str(out), "--resume").code == 0
    assert len(made) == 12 - 7 + 4  # the first window's logs are wanted, so it is run again
    assert not (out / UNFINISHED).exists()

    assert run(*COMPARE, "--out", str(tmp_path / "whole")).code == 0
    assert results(out) == results(tmp_path / "whole")


def test_a_run_cut_short_is_made_again(run, stop_after, tmp_path):
    out = tmp_path / "run"
    stop_after(9)
    run(*COMPARE, "--out", str(out))
    kept = out / UNFINISHED
    kept.write_bytes(kept.read_bytes()[:-5])
    made = stop_after(10)
    assert run(*COMPARE, "--out", str(out), "--resume").code == 0
    assert len(made) == 12 - 8 + 4
    assert run(*COMPARE, "--out", str(tmp_path / "whole")).code == 130  # the limit still applies
    stop_after(None)
    assert run(*COMPARE, "--out", str(tmp_path / "whole"), "--resume").code == 0
    assert results(out) == results(tmp_path / "whole")


def test_an_unfinished_run_is_not_overwritten_by_mistake(run, stop_after, tmp_path):
    out = tmp_path / "run"
    stop_after(2)
    run(*COMPARE, "--out", str(out))
    before = (out / UNFINISHED).read_bytes()
    refused = run(*COMPARE, "--out", str(out))
    assert refused.code == 2
    assert "the output directory holds an unfinished run" in refused.err
    assert "--resume" in refused.err
    assert (out / UNFINISHED).read_bytes() == before
    stop_after(None)
    assert run(*COMPARE, "--out", str(out), "--force").code == 0
    assert not (out / UNFINISHED).exists()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("--seed", "3"), "seed was 0, and is 3"),
        (("--schedulers", "fcfs,sjf"), "schedulers was fcfs,fcfs+easy,sjf+easy,"),
        (("--cluster", "uniform:1x64"), "cluster was uniform:8x8:V100, and is uniform:1x64"),
        (("--loads", "1,2"), None),
        (("--by", "user"), "by was none, and is user"),
    ],
)
def test_a_changed_command_is_refused(run, stop_after, tmp_path, change, text):
    out = tmp_path / "run"
    stop_after(2)
    run(*COMPARE, "--out", str(out))
    before = (out / UNFINISHED).read_bytes()
    outcome = run(*COMPARE, *change, "--out", str(out), "--resume")
    assert outcome.code == 2
    assert (text or "--load and --loads are both given") in outcome.err
    assert (out / UNFINISHED).read_bytes() == before


def test_changed_jobs_are_run_anew(run, stop_after, trace, tmp_path):
    out = tmp_path / "run"
    argv = ("compare", str(trace), "--cluster", "uniform:1x8", "--windows", "2")
    stop_after(6)
    assert run(*argv, "--out", str(out)).code == 130
    text = trace.read_text().splitlines()
    fields = text[-1].split()
    fields[3] = "777"
    trace.write_text("\n".join([*text[:-1], " ".join(fields)]) + "\n")
    made = stop_after(None)
    assert run(*argv, "--out", str(out), "--resume").code == 0
    assert len(made) == 8  # no run of the window with another job was reused
    assert run(*argv, "--out", str(tmp_path / "whole")).code == 0
    assert results(out) == results(tmp_path / "whole")


def test_over_an_earlier_run(run, stop_after, tmp_path):
    out = tmp_path / "run"
    assert run(*COMPARE, "--seed", "1", "--out", str(out)).code == 0
    complete = run(*COMPARE, "--seed", "1", "--out", str(out), "--resume")
    assert complete.code == 2
    assert "nothing to resume: the run is complete" in complete.err
    stop_after(5)
    assert run(*COMPARE, "--out", str(out), "--force").code == 130
    assert json.loads((out / "summary.json").read_text())["seed"] == 1  # still there
    stop_after(None)
    assert run(*COMPARE, "--out", str(out), "--resume").code == 0
    assert json.loads((out / "summary.json").read_text())["seed"] == 0
    assert not (out / UNFINISHED).exists()


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("--resume",), "--resume has no effect without --out"),
        (("--resume", "--force", "--out", "x"), "--force starts again and --resume continues"),
    ],
)
def test_options_that_do_not_go_together(run, argv, text):
    outcome = run(*COMPARE, *argv)
    assert outcome.code == 2
    assert text in outcome.err


def test_impossible_runs_leave_nothing(run, tmp_path):
    out = tmp_path / "run"
    argv = ("--schedulers", "fcfs,sjf", "--knowledge", "none", "--out", str(out))
    outcome = run("compare", "synthetic", "--jobs", "50", *argv)
    assert outcome.code == 2
    assert not out.exists()


def test_files_of_others_are_no_runs(run, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    (out / UNFINISHED).write_bytes(b"something else")
    outcome = run(*COMPARE, "--out", str(out), "--resume")
    assert outcome.code == 2
    assert "not a file of finished runs" in outcome.err


def stop_in_the_middle(argv, out, how):
    """Return what a comparison says that a signal ends after some of its runs."""
    command = [sys.executable, "-m", "berthline", *argv]
    kept = out / UNFINISHED
    for _ in range(5):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None and not (kept.is_file() and kept.stat().st_size > 200_000):
            time.sleep(0.005)
        if process.poll() is None:
            process.send_signal(how)
            told = process.communicate()[1].decode()
            assert kept.is_file(), told
            assert process.returncode == (130 if how == signal.SIGINT else -how), told
            return told
        # On a busy machine it may be complete before this process has looked at it once.
        told = process.communicate()[1].decode()
        assert process.returncode == 0, told
        shutil.rmtree(out)
    raise AssertionError("every one of five comparisons was complete before it was interrupted")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_in_the_middle(run, tmp_path, how):
    out = tmp_path / "run"
    argv = ("compare", "synthetic", "--jobs", "3000", "--windows", "100", "--out", str(out))
    argv += ("--workers", "2", "--schedulers", "fcfs,sjf")
    told = stop_in_the_middle(argv, out, how)
    if how == signal.SIGINT:
        assert told.splitlines() == [
            "note: finished runs are kept: to resume, run the same command with --resume",
            "interrupted",
        ]
    outcome = run(*argv, "--resume")
    assert outcome.code == 0
    assert run(*argv[:-5], str(tmp_path / "whole"), "--schedulers", "fcfs,sjf").code == 0
    assert results(out) == results(tmp_path / "whole")


def test_a_directory_that_cannot_be_written(run, tmp_path):
    (tmp_path / "file").write_text("")
    outcome = run(*COMPARE, "--out", str(tmp_path / "file" / "run"))
    assert outcome.code == 1
    assert "cannot keep a finished run: Not a directory" in outcome.err


def test_the_header_tells_what_was_asked(run, stop_after, tmp_path):
    out = tmp_path / "run"
    stop_after(1)
    run(*COMPARE, "--out", str(out))
    magic, asked, _ = (out / UNFINISHED).read_bytes().split(b"\n", 2)
    assert magic + b"\n" == kept_runs._MAGIC
    assert json.loads(asked.partition(b" ")[2])["windows"] == 3


def test_damaged_settings_of_kept_runs_are_refused(run, stop_after, tmp_path):
    out = tmp_path / "run"
    stop_after(5)
    run(*COMPARE, "--out", str(out))
    kept = out / UNFINISHED
    whole = kept.read_bytes()
    for place in range(0, whole.index(b"\n", 20), 9):
        changed = bytearray(whole)
        changed[place] ^= 1
        kept.write_bytes(changed)
        outcome = run(*COMPARE, "--out", str(out), "--resume")
        assert outcome.code == 2
        assert "is damaged" in outcome.err or "not a file of finished runs" in outcome.err
        assert "start again with --force" in outcome.err


def test_a_damaged_run_among_the_kept_ones_is_made_again(run, stop_after, tmp_path):
    out = tmp_path / "run"
    stop_after(9)
    run(*COMPARE, "--out", str(out))
    kept = out / UNFINISHED
    whole = bytearray(kept.read_bytes())
    whole[len(whole) * 2 // 3] ^= 1
    kept.write_bytes(whole)
    made = stop_after(None)
    assert run(*COMPARE, "--out", str(out), "--resume").code == 0
    assert len(made) > 12 - 9 + 4
    assert run(*COMPARE, "--out", str(tmp_path / "whole")).code == 0
    assert results(out) == results(tmp_path / "whole")
