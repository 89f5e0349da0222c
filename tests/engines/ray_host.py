"""A Ray cluster of a head and two nodes, in a process of its own, that runs commands for tests.

Started as a program in a network namespace with nothing but the loopback device: Ray would
otherwise rewrite the address of the head. Commands come as JSON lines on standard input, answers
leave on the descriptor given as argument.

    ["run", WORD...]        run a program to its end: its exit code, output, errors
    ["start", WORD...]      start a program: its number
    ["wait", NUMBER]        wait for it: as `run`
    ["kill", NUMBER]        kill -9
    ["remove_node", IDS]    remove a node with such an id, as if its machine were switched off:
                            whether there is one besides the head
    ["add_node"]            add one
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from typing import IO, Any


def main() -> None:
    """Serve commands until the input ends."""
    with contextlib.suppress(OSError):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    answers = os.fdopen(int(sys.argv[1]), "w")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.pop("RAY_ADDRESS", None)
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    nodes = [cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)]
    _tell(answers, cluster.address)
    started: list[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]] = []
    for line in sys.stdin:
        what, *words = json.loads(line)
        if what in ("run", "start"):
            files = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
            process = subprocess.Popen(words, stdout=files[0], stderr=files[1])
            started.append((process, *files))
            _tell(answers, len(started) - 1 if what == "start" else _finished(started[-1]))
        elif what == "wait":
            _tell(answers, _finished(started[words[0]]))
        elif what == "kill":
            started[words[0]][0].kill()
            _tell(answers, _finished(started[words[0]]))
        elif what == "remove_node":
            found = [one for one in nodes if one.node_id[:8] in words[0]][:1]
            for node in found:
                nodes.remove(node)
                cluster.remove_node(node, allow_graceful=False)
            _tell(answers, bool(found))
        elif what == "add_node":
            nodes.append(cluster.add_node(num_cpus=1))
            _tell(answers, None)
    cluster.shutdown()


def _finished(one: tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]) -> list[Any]:
    process, *files = one
    code = process.wait()
    texts = []
    for file in files:
        file.seek(0)
        texts.append(file.read().decode(errors="replace"))
    return [code, *texts]


def _tell(answers: IO[str], value: Any) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
