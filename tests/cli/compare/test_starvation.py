"""Starvation on the command line: the same figures in every verb, and starving schedulers named."""

from __future__ import annotations

import pytest

DAY = 86_400


@pytest.fixture
def log(tmp_path):
    """A log on which ljf leaves one short job behind for a month and fcfs does not."""
    header = "; MaxProcs: 1\n"
    rows = [(0, DAY), (1, 60), *((DAY * n, DAY) for n in range(1, 40))]
    path = tmp_path / "log.swf"
    path.write_text(
        header
        + "".join(
            f"{number} {submit} 0 {run} 1 -1 -1 1 {run} -1 1 1 1 1 -1 -1 -1 -1\n"
            for number, (submit, run) in enumerate(rows, start=1)
        )
    )
    return str(path)


PLACE = ("--cluster", "uniform:1x1", "--knowledge", "exact")


def test_sim(run, log):
    shown = run("sim", log, *PLACE, "--scheduler", "ljf").out
    assert "starvation longest wait 40.0 days (job 2); 1 job waited more than 10 x run" in shown
    assert "starves    ljf+strict@first-fit (1 job left behind, longest wait 40.0 days)" in shown
    found = run("sim", log, *PLACE, "--scheduler", "ljf", "--json").json["starvation"]
    assert found == {
        "wait": 40 * DAY - 1,
        "job": 1,
        "name": "2",
        "starved": 1,
        "left_behind": 1,
        "starves": True,
    }
    assert "starves  " not in run("sim", log, *PLACE, "--scheduler", "fcfs").out


def test_compare(run, log):
    argv = ("compare", log, *PLACE, "--schedulers", "fcfs,ljf")
    shown = run(*argv).out
    assert "starves    ljf (1 job left behind, longest wait 40.0 days) starves" in shown
    row = next(line for line in shown.splitlines() if line.startswith("ljf") and "days" in line)
    assert row.split()[-4:] == ["40.0", "days", "1", "1"]
    found = run(*argv, "--json").json
    assert [each["starvation"]["starves"] for each in found["schedulers"]] == [False, True]
    assert (found["is_log"], found["mode"]) == (
        True,
        "one run without intervals, because 41 jobs are fewer than 4,000",
    )


def test_cold_windows_hide_it(run, log):
    found = run("compare", log, *PLACE, "--schedulers", "fcfs,ljf", "--windows", "8", "--json").json
    assert not any(each["starvation"]["starves"] for each in found["schedulers"])


def test_report(run, log, tmp_path):
    out = str(tmp_path / "run")
    assert run("compare", log, *PLACE, "--schedulers", "fcfs,ljf", "--out", out).code == 0
    verdict = run("report", out, "--json").json["verdict"]
    assert "ljf (1 job left behind, longest wait 40.0 days) starves." in verdict


def test_eval(run, log, tmp_path):
    options = ("--against", "fcfs", "--workload", log, *PLACE, "--gap", "0", "--continuous")
    found = run("eval", "ljf", *options, "--blocks", "2").out
    assert "starved: waited more than 10 x run time and a day" in found
    assert "runs       continuous, as requested" in found
    assert "intervals  they speak of this period of the log" in found


def test_totals_that_disagree_are_marked(run, tmp_path):
    """Most blocks are better under lcfs; one long job that comes last outweighs them."""
    rows = []
    for block in range(16):
        runs = [20, *[10] * 9, 10_000] if block == 9 else [20, 100, *[10] * 9]
        rows += [(100_000 * block + n, each) for n, each in enumerate(runs)]
    path = tmp_path / "log.csv"
    path.write_text("submit,run,gpus\n" + "".join(f"{s},{r},1\n" for s, r in rows))
    options = ("--map", "submit=submit,run=run,gpus=gpus", "--cluster", "uniform:1x1")
    argv = ("compare", str(path), *options, "--knowledge", "none", "--continuous")
    shown = run(*argv, "--schedulers", "fcfs,lcfs").out
    assert "+223 !" in shown
    assert "totals     ! = over blocks the change has the other sign" in shown
    judged = run(*argv, "--schedulers", "fcfs,lcfs", "--json").json["schedulers"][1]
    assert judged["against_baseline"]["jct_mean"]["verdict"].endswith(", but +223 % over all jobs")
