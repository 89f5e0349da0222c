"""Shadow, verdict, act, and a controller that is killed in the middle, on a simulated cluster.

Run it with `make demo-deploy`. It takes less than a minute and writes only into a temporary
directory.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from berthline.testing import simulated_system

DEPLOY = [sys.executable, "-m", "berthline", "deploy"]
CONFIG = "schema = 1\n[guard]\nheartbeat = 1.0\n"
SECONDS = 30.0
"""Longest wait for the guard."""


def deploy(*words: str) -> dict[str, object]:
    """Run a verb and return what it prints."""
    run = subprocess.run([*DEPLOY, *words, "--json"], stdout=subprocess.PIPE, check=True)
    found: dict[str, object] = json.loads(run.stdout)
    return found


def main() -> None:
    """Run the demo."""
    with tempfile.TemporaryDirectory() as room:
        journal = Path(room) / "journal"
        config = Path(room) / "deploy.toml"
        config.write_text(CONFIG)
        cluster = simulated_system(journal, jobs=600, load=0.95, speed=0.0)
        try:
            play(cluster, str(journal), str(config))
        finally:
            cluster.close()


def play(cluster: Any, journal: str, config: str) -> None:
    """Play the acts of the demo beside a cluster that is there all the time."""
    common = ["simulated", "synthetic", "--journal", journal, "--config", config]
    common += ["--scheduler", "sjf+easy", "--every", "120"]
    print("1. shadow: 600 cycles beside the cluster's own scheduler, which is not touched")
    found = deploy(*common, "--cycles", "600")
    print(f"   {found['native_starts']} native starts, actions of ours: {found['actions']}\n")
    print("2. the verdict over the journal's period")
    verdict = deploy("judge", journal)
    print(f"   {verdict['words']}\n   ({verdict['jobs']} jobs, native: {verdict['native']})\n")
    print("3. act: the same scheduler, now within rules")
    more = ["--mode", "act", "--override", "a demonstration"]
    if verdict["verdict"] in ("better", "not worse"):
        more = ["--mode", "act"]
    controller = subprocess.Popen(
        [*DEPLOY, *common, *more, "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert controller.stderr is not None
    for line in controller.stderr:
        if b" act: " in line and sum(job.held_by == "us" for job in cluster.look().jobs) > 2:
            break
    controller.send_signal(signal.SIGKILL)
    controller.stderr.close()
    controller.wait()
    print("4. the controller is killed (kill -9); its guard lifts our holds")
    log, until = Path(journal) / "guard.log", time.monotonic() + SECONDS
    while not log.exists() and time.monotonic() < until:
        time.sleep(0.1)
    print(f"   {log.read_text().strip()}\n")
    print("5. the same command continues the same journal")
    found = deploy(*common, *more, "--cycles", "100")
    print(f"   actions: {found['actions']}, still held by us: {found['left_held']}\n")
    print("6. all decisions again, from the journal alone")
    found = deploy("replay", journal)
    print(f"   {found['decisions']} decisions, difference: {found['difference'] or 'none'}")


if __name__ == "__main__":
    main()
