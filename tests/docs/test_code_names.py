"""Files and names of code that CONTRIBUTING and the page on architecture mention exist."""

from __future__ import annotations

import re

import pytest
from tests.docs.pages import ROOT

PAGES = ("CONTRIBUTING.md", "docs/architecture.md")
ROOTS = (ROOT, ROOT / "src" / "berthline", ROOT / "native" / "src", ROOT / "native", ROOT / "tests")
MADE_UP = re.compile(r"FORMAT|VERB|NAME|^(build|dist)/")  # placeholders; what commands write
FILE = re.compile(r"`([\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|pyi|h|cpp|md|txt|toml|ipynb)))`")
NAMED_IN = re.compile(r"`(\w+)`\s+in\s+`([\w./-]+)`")
CODE_WORD = re.compile(r"`([A-Za-z_]+(?:\.[A-Za-z_]+)*)(?:\(.*?\))?`")
DEFINITION = (
    r"(?:^|\s)(?:def|class|struct|enum class|using|type)\s+{0}\b"
    r"|^\s*{0}\b\s*(?::[^=\n]+)?=|\b{0}\("
)
CODE = ("src/**/*.py", "native/src/**/*.h", "native/src/**/*.cpp", "tests/**/*.py", "docs/*.py")


def text_of(page: str) -> str:
    return re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)


def candidates(path: str, line: str) -> list[str]:
    """Return where a path may lead: from a root, or from a folder named in the same paragraph."""
    folders = [name for name in FILE.findall(line) if name.endswith("/")]
    folders += [name.rpartition("/")[0] + "/" for name in FILE.findall(line) if "/" in name]
    return [path, *(folder + path for folder in folders)]


def exists(path: str, line: str) -> bool:
    return any((root / name).exists() for root in ROOTS for name in candidates(path, line))


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(page: str) -> None:
    lines = re.split(r"\n(?=\n|\||[-*\d])", text_of(page))  # paragraphs, rows of tables, items
    named = [(path, line) for line in lines for path in FILE.findall(line)]
    missing = [path for path, line in named if not MADE_UP.search(path) and not exists(path, line)]
    assert len(named) > 30
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_names_are_defined_where_the_page_says(page: str) -> None:
    found = NAMED_IN.findall(text_of(page))
    wrong = []
    for name, path in found:
        files = [root / path for root in ROOTS if (root / path).is_file()]
        pattern = re.compile(DEFINITION.format(re.escape(name)), re.M)
        if not any(pattern.search(file.read_text(encoding="utf-8")) for file in files):
            wrong.append((name, path))
    assert wrong == []


@pytest.mark.parametrize("page", PAGES)
def test_names_of_code_are_defined(page: str) -> None:
    """What looks like a function, a class, a table (underscore or capital) or a module is one."""
    code = "\n".join(
        file.read_text(encoding="utf-8") for glob in CODE for file in sorted(ROOT.glob(glob))
    )
    words = {
        word.split(".")[-1]
        for word in CODE_WORD.findall(text_of(page))
        if not (ROOT / "src" / "berthline" / f"{word.replace('.', '/')}.py").is_file()
    }
    names = {word for word in words if re.search(r"_|[A-Z]", word) and not MADE_UP.search(word)}
    missing = [name for name in sorted(names) if not re.search(DEFINITION.format(name), code, re.M)]
    assert len(names) > 5
    assert missing == []


def test_comments_name_files_that_exist() -> None:
    """A file that moves takes its mentions in comments, docstrings and texts along."""
    known = {
        "/".join(path.relative_to(ROOT).parts[-depth:])
        for folder in ("src", "native", "tests", "docs", "benchmarks", "examples")
        for path in (ROOT / folder).rglob("*.*")
        for depth in range(1, 8)
    }
    named = [
        (path.relative_to(ROOT), name)
        for pattern in CODE[:3]
        for path in ROOT.glob(pattern)
        for name in re.findall(
            r"(?<![\w<./-])(?:\w+/)*\w+\.(?:py|cpp|h)\b", path.read_text("utf-8")
        )
    ]
    assert len(named) > 200
    written = ("pthread.h", "VERB.py", "VERB/command.py")  # the system's; placeholders
    assert [one for one in named if one[1] not in known and one[1] not in written] == []
