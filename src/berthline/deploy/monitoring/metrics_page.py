"""MetricsPage: what a controller does, in the text format of Prometheus, on the loopback address.

Base units; no job and no user in labels. The page is made after each cycle, so that reading it
costs the controller nothing.
"""

from __future__ import annotations

import http.server
import threading
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from berthline.deploy.journal.journal_records import MODES
from berthline.deploy.systems.contract import BY_US, HELD, RUNNING, WAITING
from berthline.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from berthline.deploy.control.controller import Controller

PREFIX = "berthline_"


class Metric(NamedTuple):
    """A metric.

    Attributes:
        kind: `counter` or `gauge`.
        meaning: its line of help.
        label: the name of its label; empty = none.
    """

    kind: str
    meaning: str
    label: str = ""


METRICS: dict[str, Metric] = {
    "cycles_total": Metric("counter", "cycles since the controller began"),
    "faults_total": Metric("counter", "cycles in which nothing could be done", "fault"),
    "fallbacks_total": Metric("counter", "decisions that the fallback made", "reason"),
    "rule_hits_total": Metric("counter", "how often a rule changed something", "rule"),
    "actions_total": Metric("counter", "actions, by kind and outcome", "action"),
    "step_seconds_total": Metric("counter", "time spent in a step of all cycles", "step"),
    "step_seconds_last": Metric("gauge", "time spent in a step of the last cycle", "step"),
    "jobs": Metric("gauge", "jobs in the last look", "state"),
    "held_jobs": Metric("gauge", "jobs that are held by us"),
    "longest_wait_seconds": Metric("gauge", "since the first submission of a job that waits"),
    "gpus": Metric("gauge", "GPUs of all nodes", "state"),
    "native_starts_total": Metric("counter", "jobs that the system started by itself"),
    "agreed_starts_total": Metric("counter", "of these, jobs that we would have started too"),
    "mode": Metric("gauge", "1 for the mode of the controller", "mode"),
    "awaited_actions": Metric("gauge", "actions whose effect no look has shown yet"),
    "heartbeat_age_seconds": Metric("gauge", "since the controller's last sign of life"),
    "guards_started_total": Metric("counter", "guards that were started"),
}
"""Every metric, without its prefix."""


class MetricsPage:
    """The page of a controller.

    Args:
        heartbeat_age: returns the age of its last sign of life.
        guards_started: returns how many guards were started.
    """

    def __init__(
        self,
        heartbeat_age: Callable[[], float] = lambda: 0.0,
        guards_started: Callable[[], int] = lambda: 0,
    ) -> None:
        self._age, self._guards = heartbeat_age, guards_started
        self._lines: tuple[str, ...] = ()
        self._steps: Counter[str] = Counter()

    def update(self, controller: Controller) -> None:
        """Follow a cycle."""
        if controller.last_cycle is not None:
            self._steps.update(controller.last_cycle.seconds)
        self._lines = tuple(self._written(controller))

    def text(self) -> str:
        """Return the page."""
        lines = [
            *self._lines,
            *_lines_of("heartbeat_age_seconds", {"": self._age()}),
            *_lines_of("guards_started_total", {"": self._guards()}),
        ]
        return "\n".join(lines) + "\n"

    def _written(self, controller: Controller) -> Iterator[str]:
        totals, cycle = controller.totals, controller.last_cycle
        records = [job.record for job in controller.last_jobs.values()]
        seen = controller.last_seen
        states = Counter(record.state for record in records)
        waits = [
            seen.look.time - job.known.submitted
            for job in controller.last_jobs.values()
            if seen is not None and job.record.ours and job.record.state in (WAITING, HELD)
        ]
        nodes = () if seen is None else seen.look.nodes
        in_use = sum(node.gpus_in_use or 0 for node in nodes)
        yield from _lines_of("cycles_total", {"": totals.cycles})
        yield from _lines_of("faults_total", totals.faults)
        yield from _lines_of("fallbacks_total", totals.fallbacks)
        yield from _lines_of("rule_hits_total", controller.rules.count)
        yield from _lines_of(
            "actions_total", {" ".join(key): number for key, number in totals.actions.items()}
        )
        yield from _lines_of("step_seconds_total", self._steps)
        yield from _lines_of("step_seconds_last", cycle.seconds if cycle else {})
        yield from _lines_of("jobs", {name: states[name] for name in (WAITING, HELD, RUNNING)})
        held = sum(r.state == HELD and r.held_by == BY_US for r in records)
        yield from _lines_of("held_jobs", {"": held})
        yield from _lines_of("longest_wait_seconds", {"": max(waits, default=0.0)})
        yield from _lines_of("gpus", {"all": sum(n.gpus for n in nodes), "in use": in_use})
        yield from _lines_of("native_starts_total", {"": totals.native_starts})
        yield from _lines_of("agreed_starts_total", {"": totals.agreed_starts})
        yield from _lines_of("mode", {mode: int(mode == controller.mode) for mode in MODES})
        yield from _lines_of("awaited_actions", {"": len(controller.intents.of)})


def _lines_of(name: str, values: dict[str, float] | dict[str, int] | Counter[str]) -> list[str]:
    """Return a metric as lines; the values by its label."""
    metric, full = METRICS[name], PREFIX + name
    lines = [f"# HELP {full} {metric.meaning}", f"# TYPE {full} {metric.kind}"]
    for label, value in sorted(values.items()):
        text = label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        shown = f'{{{metric.label}="{text}"}}' if metric.label else ""
        lines.append(f"{full}{shown} {float(value)!r}")
    return lines


class MetricsServer:
    """Serves a page on 127.0.0.1.

    Args:
        page: the page.
        port: 0 = a free one.

    Raises:
        OutputError: the port is taken.
    """

    def __init__(self, page: MetricsPage, port: int) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = page.text().encode()
                found = self.path.split("?")[0] == "/metrics"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(body if found else b"see /metrics\n")

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        try:
            self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise OutputError(f"metrics cannot be served: {reason}", where=f"port {port}") from None
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
