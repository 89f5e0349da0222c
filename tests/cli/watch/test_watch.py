"""`berthline watch`: frames in a pipe and in a terminal, films, and what is refused."""

from __future__ import annotations

import contextlib
import itertools
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.learn.made_policies import save_policy, save_shortest_first

import berthline as bl
from berthline.deploy.watched_run import watch_run
from berthline.learn.networks.networks import NetworkConfig
from berthline.number_text import duration
from berthline.policies.learned import Learned

SMALL = ("--jobs", "30", "--load", "2", "--cluster", "uniform:2x4:V100")


def heads_of(out: str) -> list[str]:
    """Return the first lines of the frames."""
    return re.findall(r"^.* at (?:\d.*)$", out, re.MULTILINE)


def test_a_pipe__gets_every_frame_as_plain_text(run) -> None:
    shown = run("watch", "sjf+easy", *SMALL)
    assert shown.code == 0
    assert "\x1b" not in shown.out
    heads = heads_of(shown.out)
    assert len(heads) == 161
    assert heads[0].endswith("at 0 s")
    assert max(map(len, shown.out.splitlines())) <= 80
    result = bl.simulate(
        "synthetic", "uniform:2x4:V100", "sjf+easy", jobs=30, load=2.0
    )  # the last frame has its mean wait
    assert f"mean wait {duration(result.metrics().wait.mean)}" in shown.out.split("sjf+easy")[-1]


def test_steps_and_times(run) -> None:
    steps = run("watch", "fcfs", *SMALL, "--step", "--max-steps", "5")
    assert len(heads_of(steps.out)) == 5
    minutes = run("watch", "fcfs", *SMALL, "--every", "10m", "--max-steps", "3")
    assert [head.split(" at ")[1] for head in heads_of(minutes.out)] == [
        "0 s",
        "10 min 0 s",
        "20 min 0 s",
    ]


def test_against__shows_the_same_instant_of_the_same_jobs(run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    shown = run("watch", "sjf+easy", "--against", "fcfs", *SMALL, "--max-steps", "20")
    for line in shown.out.splitlines():
        if line.startswith("sjf+easy"):
            left, right = line.split(" \u2502 ")
            assert left.split(" at ")[1].strip() == right.split(" at ")[1].strip()
            assert right.startswith("fcfs")
    monkeypatch.setenv("COLUMNS", "60")  # too narrow: one above the other
    shown = run("watch", "sjf+easy", "--against", "fcfs", *SMALL, "--max-steps", "2")
    assert len(heads_of(shown.out)) == 4
    assert max(map(len, shown.out.splitlines())) <= 60


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy"
    options = {"episode_jobs": 30, "load": 2.0, "cluster": "uniform:2x4:V100", "window": 8}
    save_policy(path, "pick", options, NetworkConfig(hidden=(8,)))
    return path


def test_a_policy__plays_the_jobs_it_was_trained_on_and_shows_what_it_thinks(run, policy) -> None:
    shown = run("watch", str(policy), "--step")
    assert shown.code == 0, shown.err
    frames = shown.out.split("\n\npolicy")
    assert "of 8 GPUs busy" in frames[0]
    assert "of 30 done" in frames[0]
    assert all("question (pick)" in frame for frame in frames)
    for frame in frames:
        asked = frame.split("last: ")[0]
        shares = [int(text) for text in re.findall(r"(?<!<)\b(\d+) %", asked)]
        assert 97 <= sum(shares) <= 103
    for before, after in itertools.pairwise(frames):
        (last,) = re.findall(r"^last: job (\d+) \(", after, re.MULTILINE) or ["-"]
        assert last == "-" or re.search(rf"^ +{last} ", before, re.MULTILINE)


@pytest.mark.parametrize("seat", ["place", "pickplace", "gate", "meta", "backfill", "preempt"])
def test_policies_of_every_seat(run, tmp_path, seat) -> None:
    options = {"episode_jobs": 24, "load": 2.0, "cluster": "uniform:2x4:V100", "window": 8}
    if seat == "preempt":
        options["max_restarts"] = 2
    kind = "cross" if seat == "pickplace" else "kernel"
    save_policy(tmp_path / "policy", seat, options, NetworkConfig(kind=kind, hidden=(8,)))
    shown = run("watch", str(tmp_path / "policy"), "--step", "--max-steps", "30")
    assert shown.code == 0, shown.err
    assert f"question ({seat})" in shown.out


def test_a_watched_policy__runs_as_in_sim(tmp_path) -> None:
    path = tmp_path / "policy"
    save_shortest_first(path, {"features": {"jobs": ["estimate / 1e5"]}, "window": 8})
    learned = Learned.find(str(path))
    workload = bl.generate("synthetic", cluster="uniform:2x4:V100", jobs=60, load=2.0)
    cluster = bl.Cluster.parse("uniform:2x4:V100")
    watched = watch_run(learned, workload, cluster, knowledge="estimate", seed=0, title="policy")
    log = bl.simulate(workload, cluster, str(path)).log
    assert watched.playback.log.sha256() == log.sha256()
    assert len(watched.decisions) >= 30
    last = watched.scene(watched.last_start)
    assert last.so_far.mean_wait == pytest.approx(
        bl.simulate(workload, cluster, str(path)).metrics().wait.mean
    )


def test_a_run_directory_of_sim__is_shown_as_it_was(run, tmp_path) -> None:
    out = str(tmp_path / "run")
    assert run("sim", "synthetic", *SMALL, "--scheduler", "wfp3+easy", "--out", out).code == 0
    shown = run("watch", out, "--max-steps", "3", "--against", "fcfs")
    assert "wfp3+easy" in shown.out
    refused = run("watch", out, "--load", "2")
    assert refused.code == 2
    assert "--load is given, but the run directory determines it" in refused.err


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_gif(run, tmp_path, theme) -> None:
    film = tmp_path / "film.gif"
    words = ("watch", "sjf", "--against", "fcfs", *SMALL, "--fps", "5", "--theme", theme)
    shown = run(*words, "--max-steps", "12", "--out", str(film))
    assert shown.code == 0, shown.err
    assert "12 pictures" in shown.out
    assert "fcfs" in shown.out
    lengths, sizes = [], set()
    with Image.open(film) as picture:
        assert picture.is_animated
        assert picture.width == 960
        for number in range(picture.n_frames):
            picture.seek(number)
            lengths.append(picture.info["duration"])
            sizes.add(picture.size)
    assert sum(lengths) == 12 * 200 + 3000  # equal pictures are one, shown longer
    assert len(sizes) == 1
    assert run(*words, "--out", str(film)).code == 2  # it exists
    again = tmp_path / "again.gif"
    assert run(*words, "--max-steps", "12", "--out", str(again)).code == 0
    assert again.read_bytes() == film.read_bytes()


def test_an_mp4(run, tmp_path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="the extra watch is not installed")
    film = tmp_path / "film.mp4"
    shown = run("watch", "fcfs", *SMALL, "--max-steps", "12", "--fps", "6", "--out", str(film))
    assert shown.code == 0, shown.err
    reader = ffmpeg.read_frames(str(film))
    facts = next(reader)
    assert facts["codec"] == "h264"
    assert facts["fps"] == 6
    width, height = facts["size"]
    first = np.frombuffer(next(reader), np.uint8).reshape(height, width, 3)
    assert (first[0, 0] > 250).all()  # paper


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("watch", "fcfs", "--out", "film.avi"), ".gif or .mp4"),
        (("watch", "sfj"), "sjf"),
        (("watch", "fcfs", "--theme", "blue"), "light, dark"),
        (("watch", "fcfs", "--against", "a,b,c,d"), "at most 4"),
        (("watch", "fcfs", "--fps", "0"), "more than 0"),
        (("watch",), "missing"),
    ],
)
def test_what_is_refused(run, words, message) -> None:
    refused = run(*words)
    assert refused.code == 2
    assert message in refused.err


def test_a_load_at_which_nothing_waits__is_said(run) -> None:
    shown = run("watch", "fcfs", "--jobs", "5", "--load", "0.1", "--max-steps", "1")
    assert "no job waits" in shown.err


def in_terminal(*words: str, typed: bytes = b"", interrupt: bool = False) -> tuple[int, str]:
    """Run a command in a terminal of 80 x 24, and return its exit code and what it shows."""
    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "berthline", *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
    )
    os.close(slave)
    if typed:
        os.write(master, typed)
    shown, deadline = b"", time.monotonic() + 60
    with contextlib.suppress(OSError):  # the terminal closes with the process
        while time.monotonic() < deadline:
            ready, _, _ = select.select([master], [], [], 0.2)
            if ready:
                shown += os.read(master, 65536)
            if interrupt and b"GPUs busy" in shown:
                process.send_signal(signal.SIGINT)
                interrupt = False
            if process.poll() is not None and not ready:
                break
    os.close(master)
    return process.wait(10), shown.decode("utf-8", "replace")


def test_a_terminal__shows_frames_over_one_another() -> None:
    code, shown = in_terminal("watch", "sjf", *SMALL, "--max-steps", "8", "--fps", "50")
    assert code == 0, shown
    assert shown.count("GPUs busy") >= 8
    assert "\x1b[" in shown
    assert shown.rstrip().endswith("\x1b[?25h")  # the cursor is back


def test_a_terminal__ctrl_c_ends_it() -> None:
    code, shown = in_terminal("watch", "sjf", *SMALL, "--fps", "2", interrupt=True)
    assert code == 130, shown
    assert "Traceback" not in shown
    assert "\x1b[?25h" in shown
    assert "interrupted" in shown


def test_a_terminal__steps_on_enter() -> None:
    code, shown = in_terminal("watch", "sjf", *SMALL, "--step", typed=b"\n\nq\n")
    assert code == 0, shown
    assert len(heads_of(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).replace("\r", ""))) == 3


ROOT = Path(__file__).resolve().parents[3]


def test_the_film_of_the_readme__is_small_and_shown() -> None:
    film = ROOT / "docs" / "film.gif"
    assert film.stat().st_size < 2e6
    assert "](docs/film.gif)" in (ROOT / "README.md").read_text(encoding="utf-8")
    with Image.open(film) as picture:
        assert picture.n_frames > 50


@pytest.mark.slow
def test_the_film_of_the_readme__is_made_by_the_commands_of_its_page(
    run, tmp_path, monkeypatch
) -> None:
    page = (ROOT / "docs" / "guides" / "watch.md").read_text(encoding="utf-8")
    part = page.split("## The film of the README")[1].split("\n## ")[0]
    train, film, _ = (shlex.split(line[12:]) for line in re.findall(r"^\$ .*", part, re.MULTILINE))
    monkeypatch.chdir(tmp_path)
    train[train.index("--steps") + 1] = "2000"  # the rest is as on the page
    trained = run(*train, "--episodes", "4", "--envs", "8")
    assert trained.code == 0, trained.err
    shown = run(*film)
    assert shown.code == 0, shown.err
    waits = re.findall(r"^mean wait +(\S+) (\w+), (\w+)$", shown.out, re.MULTILINE)
    assert [name for _, _, name in waits] == ["ppo", "fcfs"]
    # What a rule does on these jobs is the same, whatever has been learned.
    assert f"mean wait  {waits[1][0]} {waits[1][1]}, fcfs" in part
    assert (tmp_path / "film.gif").stat().st_size < 3e6
