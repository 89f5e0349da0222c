"""The reference of deployment names every rule, setting and metric, and the defaults are true."""

import re
import tomllib
from pathlib import Path

import msgspec

from berthline.deploy.control.deploy_settings import GuardSettings, RuleSettings, Settings
from berthline.deploy.control.safety_rules import RULES
from berthline.deploy.monitoring.metrics_page import METRICS, PREFIX

PAGE = (Path(__file__).parents[2] / "docs/reference/deploy.md").read_text()


def test_page__has_every_rule_and_metric():
    for name, rule in RULES.items():
        row = re.search(rf"^\| `{name}` \|(.*)\|", PAGE, re.MULTILINE)
        assert row, name
        assert rule.setting in row[1]
    for name in METRICS:
        assert f"`{PREFIX}{name}`" in PAGE


def test_page__has_the_defaults():
    shown = tomllib.loads(re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)[1])
    assert shown == msgspec.to_builtins(
        Settings(schema=1, rules=RuleSettings(), guard=GuardSettings())
    )
