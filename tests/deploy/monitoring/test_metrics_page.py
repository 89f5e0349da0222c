"""The metrics page, and that every expression of the dashboard and the alerts names its metrics."""

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from tests.deploy.simulated_systems import controller, generated, play, system

import berthline.deploy.monitoring
from berthline.deploy.monitoring.metrics_page import METRICS, PREFIX, MetricsPage, MetricsServer
from berthline.errors import OutputError

ROOM = Path(berthline.deploy.monitoring.__file__).parent
SAMPLE = re.compile(r"(\w+)(\{\w+=\"[^\"]*\"\})? (-?[0-9.e+-]+|inf|nan)")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    adapter = system(generated(2, 40, load=2.0))
    control = controller(adapter, tmp_path_factory.mktemp("m") / "j", "sjf+easy")
    found = MetricsPage(lambda: 0.5, lambda: 1)
    for _ in range(200):
        play(control, adapter, 1)
        found.update(control)
    return found, control


def test_page__is_in_the_format_of_prometheus(page):
    found, control = page
    samples = {}
    for line in found.text().splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP|TYPE) berthline_\w+ .+", line)
            continue
        name, label, value = SAMPLE.fullmatch(line).groups()
        samples[name + (label or "")] = float(value)
    assert samples["berthline_cycles_total"] == 200
    assert (
        samples['berthline_actions_total{action="start done"}']
        == control.totals.actions["start", "done"]
    )
    assert samples['berthline_mode{mode="act"}'] == 1
    assert samples["berthline_heartbeat_age_seconds"] == 0.5
    users = {job.record.user for job in control.last_jobs.values()}
    assert not any(user in found.text() for user in users)


def expressions():
    dashboard = json.loads((ROOM / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    alerts = yaml.safe_load((ROOM / "alerts.yml").read_text())
    for group in alerts["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["summary"]
            yield rule["expr"]


@pytest.mark.parametrize("expression", list(expressions()))
def test_expressions__name_metrics_of_the_page(page, expression):
    text = page[0].text()
    names = re.findall(r"berthline_\w+", expression)
    assert names
    for name in names:
        assert f"# TYPE {name} " in text
        if re.search(rf"(rate|increase)\({name}", expression):
            assert METRICS[name.removeprefix(PREFIX)].kind == "counter"
    for label in re.findall(r"\{(\w+)=", expression):
        assert label in {METRICS[name.removeprefix(PREFIX)].label for name in names}
    assert expression.count("(") == expression.count(")")


def test_every_metric__is_on_the_page_and_on_the_dashboard(page):
    shown = " ".join(expressions())
    for name in METRICS:
        assert f"# TYPE {PREFIX}{name} " in page[0].text()
        assert PREFIX + name in shown


def test_server__on_the_loopback_address(page):
    server = MetricsServer(page[0], 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
            assert answer.read().decode() == page[0].text()
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{server.port}/")
        with pytest.raises(OutputError, match="cannot be served"):
            MetricsServer(page[0], server.port)
    finally:
        server.close()
