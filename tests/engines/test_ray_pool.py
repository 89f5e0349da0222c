"""Ray: the same results on a cluster of three nodes, with a node lost, killed and resumed.

One cluster serves all tests, in a network namespace of its own (ray_host.py). They need the extra
`ray`, which CI installs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.experiments.suites.small_suite import RUNS, SMALL, digest, lines, small_plan

from berthline.experiments.suites.run_suite import run_suite

if TYPE_CHECKING:
    from collections.abc import Iterator

if not os.environ.get("BERTHLINE_REQUIRE_RAY"):  # which CI sets
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'berthline[ray]'")
pytestmark = pytest.mark.xdist_group("ray")  # one cluster, whatever the number of processes

HOST = Path(__file__).with_name("ray_host.py")
ROOT = Path(__file__).parents[2]
START_SECONDS = 120


class RayHost:
    """The cluster, and what is run beside it."""

    def __init__(self) -> None:
        answers, theirs = os.pipe()
        alone = (
            ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
        )
        self.process = subprocess.Popen(
            [*alone, sys.executable, "-W", "ignore", str(HOST), str(theirs)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs],
            cwd=ROOT,
            text=True,
        )
        os.close(theirs)
        self._answers = os.fdopen(answers)
        self.address = self._read()

    def say(self, *words: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return self._read()

    def berthline(self, *words: str, how: str = "run") -> Any:
        return self.say(how, sys.executable, "-m", "berthline", *words, *self.engine)

    @property
    def engine(self) -> list[str]:
        return ["--engine", "ray", "--address", self.address]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(START_SECONDS)
        self._answers.close()

    def _read(self) -> Any:
        line = self._answers.readline()
        assert line, "the host of the Ray cluster has ended"
        return json.loads(line)


@pytest.fixture(scope="module")
def ray_host() -> Iterator[RayHost]:
    if shutil.which("unshare") is None:
        pytest.skip("no `unshare`: Ray would use the network of this machine")
    host = RayHost()
    yield host
    host.close()


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "small.toml"
    # Long enough that a node can be lost and a driver killed in the middle.
    path.write_text(SMALL.replace("seeds = 3", "seeds = 8").replace("jobs = 40", "jobs = 4000"))
    return path


@pytest.fixture(scope="module")
def whole(plan: Path, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("local") / "whole"
    run_suite(small_plan(plan.read_text()), out=out, workers=1)
    return out


def wait_for_runs(out: Path, number: int) -> dict[str, Any]:
    """Wait until some runs are done; return the progress."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        file = out / "progress.json"
        if file.exists():
            found = json.loads(file.read_bytes())
            if found["done"] - found["kept"] >= number:
                return found
        time.sleep(0.02)
    raise AssertionError(f"fewer than {number} runs in a minute")


def busy_nodes(out: Path) -> list[str]:
    """Return the nodes whose workers do something."""
    file = out / "progress.json"
    workers = json.loads(file.read_bytes())["workers"] if file.exists() else []
    return [one["node"] for one in workers if one["node"] and one["doing"]]


def test_equal_tables(ray_host: RayHost, plan: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, _, told = ray_host.berthline("suite", str(plan), "--out", str(out))
    assert code == 0, told
    assert digest(out) == digest(whole)


def test_killed_and_resumed(ray_host: RayHost, plan: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    number = ray_host.berthline("suite", str(plan), "--out", str(out), how="start")
    wait_for_runs(out, 1)
    ray_host.say("kill", number)
    kept = (out / "runs.partial").read_bytes()
    (out / "runs.partial").write_bytes(kept[:-7])  # in the middle of a run that is being kept
    code, _, told = ray_host.berthline("suite", str(plan), "--out", str(out), "--resume")
    assert code == 0, told
    assert json.loads((out / "progress.json").read_bytes())["kept"] > 0
    assert digest(out) == digest(whole)


def test_a_node_is_lost(ray_host: RayHost, plan: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    number = ray_host.berthline("suite", str(plan), "--out", str(out), how="start")
    limit = time.monotonic() + 60
    while not ray_host.say("remove_node", busy_nodes(out)):
        assert time.monotonic() < limit, "no node but the head had a task for a minute"
        time.sleep(0.05)
    code, _, told = ray_host.say("wait", number)
    ray_host.say("add_node")
    assert code == 0, told
    assert digest(out) == digest(whole)


def test_a_run_that_raises(ray_host: RayHost, tmp_path: Path) -> None:
    plan, out = tmp_path / "small.toml", tmp_path / "out"
    text = SMALL.replace("policy = true", 'policy = true\nknowledge = "none"')
    plan.write_text(text)
    code, _, told = ray_host.berthline("suite", str(plan), "--out", str(out))
    assert code == 1
    assert f"{RUNS // 3} runs failed" in told
    assert {line["scheduler"] for line in lines(out / "failures.jsonl")} == {"sjf+easy"}
    run_suite(small_plan(text), out=tmp_path / "local", workers=1)
    assert digest(out) == digest(tmp_path / "local")


def test_compare_and_eval(ray_host: RayHost, run_cli: Any) -> None:
    compare = ("compare", "synthetic", "--jobs", "60", "--windows", "4", "--json")
    evaluate = ("eval", "sjf+easy", "--window-jobs", "50", "--windows", "2", "--json")
    for words in (compare, evaluate):
        code, text, told = ray_host.berthline(*words)
        assert code == 0, told
        assert without_times(json.loads(text)) == without_times(run_cli(*words))


@pytest.fixture
def run_cli(capsys: pytest.CaptureFixture[str]) -> Any:
    from berthline.cli.main import main

    def run(*words: str) -> Any:
        assert main(list(words)) == 0
        return json.loads(capsys.readouterr().out)

    return run


def without_times(found: Any) -> Any:
    """Return results without wall-clock times."""
    if isinstance(found, dict):
        return {k: without_times(v) for k, v in found.items() if k != "wall_seconds"}
    return [without_times(one) for one in found] if isinstance(found, list) else found


def pool(host: RayHost, *messages: Any, timeout: float = 0.0) -> Any:
    """Let a pool of three workers do these messages."""
    words = [json.dumps(message) for message in messages]
    program = ("-W", "ignore", "-m", "tests.engines.ray_worker", host.address, str(timeout))
    code, text, told = host.say("run", sys.executable, *program, *words)
    assert code == 0, told
    return json.loads(text)


def test_a_worker_that_ends_is_replaced(ray_host: RayHost) -> None:
    found = pool(ray_host, 1, "end", 2, 3, 4, "many")
    assert sorted(found["found"]) == sorted([10, 20, 30, 40, *range(1000)])
    assert len(found["lost"]) == 1
    assert "Actor" in found["lost"][0]


def test_a_worker_that_hangs_is_replaced(ray_host: RayHost) -> None:
    found = pool(ray_host, "sleep", 1, 2, timeout=2.0)
    assert sorted(found["found"]) == [10, 20]
    assert found["lost"] == ["no answer for 2 s"]


def test_what_listens_is_no_ray(ray_host: RayHost) -> None:
    code, _, told = ray_host.say(
        "run", sys.executable, "-m", "berthline", "suite", "core", "--engine", "ray",
        "--address", "127.0.0.1:1",
    )  # fmt: skip
    assert code == 1
    assert "nothing listens at the address" in told
    assert "127.0.0.1:1" in told


@pytest.mark.slow
def test_seeds_of_a_training(ray_host: RayHost, tmp_path: Path) -> None:
    import berthline as bl

    small: dict[str, Any] = {"envs": 4, "steps": 1500, "episodes": 2, "seeds": 2}
    bl.train("ppo", out=tmp_path / "local", env="Gate", hidden=(8,), **small)
    words = [word for key, value in small.items() for word in (f"--{key}", str(value))]
    out = ("--out", str(tmp_path / "ray"))
    code, _, told = ray_host.berthline(
        "train", "ppo", "--env", "Gate", "--hidden", "8", *words, *out
    )
    assert code == 0, told
    for name in ("summary.json", "seed-0/curve.csv", "seed-1/curve.csv"):
        assert (tmp_path / "local" / name).read_bytes() == (tmp_path / "ray" / name).read_bytes()
