"""Escape sequences in names are shown as text, in every verb and in errors."""

from __future__ import annotations

import json
import re

import pytest

EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture
def log(tmp_path):
    rows = [
        f"{10 * i},500,1,u{EVIL}{i % 3},p{EVIL}{i % 2},j{EVIL}{i},900" for i in range(40)
    ]  # fmt: skip
    path = tmp_path / "log.csv"
    head = "submit,run,gpus,user,pool,name,estimate"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    pools = "".join(
        f"[[nodes]]\ncount = 1\ngpus = 4\npool = {json.dumps(f'p{EVIL}{i}')}\n" for i in range(2)
    ).replace("\x9b", "\\u009b")
    (tmp_path / "cluster.toml").write_text(pools, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("sim", "{log}", "--by", "user,pool"),
        ("compare", "{log}", "--by", "user,pool", "--schedulers", "fcfs,sjf"),
        ("explain", "longest", "{log}"),
        ("sim", "{log}", "--json", "--by", "user,pool"),
        ("explain", "longest", "{log}", "--json"),
    ],
)
def test_names(run, log, words):
    words = [word.format(log=log) for word in words]
    outcome = run(*words, "--cluster", str(log.with_name("cluster.toml")))
    assert outcome.code == 0, outcome.err
    assert not CONTROL.search(outcome.out)
    assert not CONTROL.search(outcome.err)
    if "--json" in words:
        assert any(EVIL in text for text in texts_of(json.loads(outcome.out)))
    else:
        assert r"\x1b[2J" in outcome.out


def texts_of(value):
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        return [text for one in value for text in texts_of(one)]
    return [str(value)]


@pytest.mark.parametrize(
    "words",
    [
        ("sim", f"x{EVIL}"),
        ("sim", "synthetic", "--cluster", f"x{EVIL}"),
        ("sim", "synthetic", "--scheduler", f"x{EVIL}"),
        ("sim", "synthetic", f"--x{EVIL}"),
        (f"x{EVIL}",),
    ],
)
def test_errors(run, words):
    outcome = run(*words)
    assert outcome.code == 2
    assert not CONTROL.search(outcome.err)
    assert r"\x1b" in outcome.err


def test_line_breaks_in_names_stay_in_their_cell(run, tmp_path):
    """A name cannot begin a line of its own, and so forge a row of a table or a remark."""
    rows = [f'{10 * i},500,4,"eve\nroot 99 %\t{i % 2}","p\n{i % 2}","j\n{i}"' for i in range(40)]
    path = tmp_path / "log.csv"
    path.write_text("submit,run,gpus,user,pool,name\n" + "\n".join(rows) + "\n")
    for words in (
        ("sim", str(path), "--by", "user,pool"),
        ("compare", str(path), "--by", "user,pool", "--schedulers", "fcfs,largest-first"),
        ("explain", "longest", str(path), "--cluster", "uniform:1x4"),
    ):
        out = run(*words).out
        assert not re.search(r"^\s*(root|[01] |\d+\))", out, re.MULTILINE), words
        assert "\\n" in out, words
