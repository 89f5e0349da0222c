"""The word list of `make lint`: it finds bad sentences, and the tree is clean."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.docs.pages import ROOT

from docs import plain_english

PROGRAM = ROOT / "docs" / "plain_english.py"


def found(text: str, path: str = "page.md") -> list[tuple[int, str]]:
    return [(finding.line, finding.phrase) for finding in plain_english.findings(text, path)]


@pytest.mark.parametrize(
    ("sentence", "phrase"),
    [
        ("Judge a scheduler on windows.", "Judge"),
        ("Windows that nobody has seen.", "nobody"),
        ("The file is no text.", "is no text"),
        ("It ends after so many seconds.", "so many"),
        ("Leave --resume away.", "Leave --resume away"),
        ("The mean work of who waits.", "who waits"),
        ("Windows which have chosen nothing.", "have chosen nothing"),
    ],
)
def test_finds_a_bad_sentence(sentence, phrase):
    assert found(sentence) == [(1, phrase)]


@pytest.mark.parametrize(
    "sentence",
    [
        "There is no file, and it is no longer read.",
        "So many jobs wait that the queue is long.",
        "It is no slower than users who wait expect.",
        "Leave GPUs idle.",
    ],
)
def test_leaves_a_plain_sentence_alone(sentence):
    assert found(sentence) == []


def test_finds_a_phrase_across_lines():
    assert found("One.\n\nThe file is\nno text.") == [(3, "is no text")]


def test_skips_what_a_program_writes():
    page = "<!-- generated: a -->\nnobody\n<!-- end: a -->\n\n```console\nnobody\n```\nlikewise\n"
    assert found(page) == [(8, "likewise")]


def test_reads_comments_and_strings_of_python_not_its_names():
    program = (
        '"""For ever."""\n'
        "nobody = 1  # it is\n"
        "# no text\n"
        'text = (f"so {nobody} "\n'
        '    f"so "\n'
        '    "many")\n'
        "other = r'told apart'\n"
    )
    assert sorted(found(program, "a.py")) == [
        (1, "For ever"),
        (2, "is no text"),
        (5, "so many"),
        (7, "told apart"),
    ]


def test_skips_keys_names_arguments_and_paths_of_python():
    program = (
        'row["judged"] = run("--judge-only")\n'
        'users = ("all", "nobody")\n'
        'text = "evaluate/judge.py and import evaluate.judge"\n'
        '"""Args:\\n    judged: number of windows."""\n'
        'text = "It was " "judged."\n'
    )
    assert found(program, "a.py") == [(5, "judged")]


def test_reads_comments_and_strings_of_cxx_not_its_names():
    program = '// It is\n// no text.\nint nobody = 0; /* likewise */\nthrow Error("for ever");\n'
    for name in ("a.h", "a.cpp"):
        assert sorted(found(program, name)) == [
            (1, "is no text"),
            (3, "likewise"),
            (4, "for ever"),
        ]


def test_command_names_place_phrase_and_suggestion(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Plain.\nFor ever.\n", encoding="utf-8")
    outcome = _run(str(tmp_path))
    expected = f"{page}:2: For ever -> forever, indefinitely, without end\n"
    assert (outcome.returncode, outcome.stdout) == (1, expected), outcome.stderr


def test_tree_is_clean():
    outcome = _run()
    assert (outcome.returncode, outcome.stdout) == (0, ""), outcome.stdout + outcome.stderr


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, check=False
    )
