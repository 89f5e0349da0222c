"""The configuration file: unknown keys and values out of range are named errors."""

import re

import pytest

from berthline.deploy.control.deploy_settings import read_settings_file
from berthline.errors import ConfigError


def read(tmp_path, text):
    file = tmp_path / "deploy.toml"
    file.write_text(text)
    return read_settings_file(file)


def test_file__replaces_defaults(tmp_path):
    settings = read(
        tmp_path, 'schema = 1\nfallback = "sjf"\n[rules]\nmax_wait = 10\n[guard]\nheartbeat = 1'
    )
    assert (settings.fallback, settings.rules.max_wait, settings.guard.heartbeat) == ("sjf", 10, 1)
    assert settings.rules.actions_per_minute == read_settings_file(None).rules.actions_per_minute


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "schema is missing"),
        ("schema = 2", "schema is 2"),
        ("schema = 1\nfallbak = 'x'", "unknown key 'fallbak'.*\n.*\n.*'fallback'"),
        ("schema = 1\n[rules]\nmax_waits = 1", r"unknown key 'max_waits'.*\[rules\]"),
        ("schema = 1\n[rules]\nmax_wait = -1", "max_wait is -1"),
        ("schema = 1\n[rules]\nmax_wait = nan", "max_wait is nan"),
        ("schema = 1\n[rules]\nmax_wait = 'long'", "max_wait is a text"),
        ("schema = 1\n[guard]\nheartbeat = 0", "heartbeat is 0"),
        ("schema = ", "invalid value"),
    ],
)
def test_mistakes__are_named(tmp_path, text, words):
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text)
    assert re.search(words, str(error.value)), str(error.value)


def test_missing_file(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        read_settings_file(tmp_path / "none.toml")
