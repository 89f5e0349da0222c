"""Find words and phrases that slow readers down, and say what to write instead.

It reads Markdown pages, and the comments, docstrings and string literals of Python and C++. Code
blocks of pages, and parts that a program writes, are skipped: their text is checked in the program.
A string of Python without a blank is a name or a key, not prose, and is skipped too.

`make lint` checks the whole tree; `python docs/plain_english.py PATH ...` checks these files and
folders. Each finding is a line `file:line: phrase -> suggestion`; with findings the exit code is 1.
"""

from __future__ import annotations

import bisect
import dataclasses
import io
import itertools
import re
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent

CHECKED = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs",
    "examples",
    "src",
    "native/src",
    "benchmarks",
    "tests",
)
"""The files and folders that `make lint` checks."""

SKIPPED = ("docs/plain_english.py", "tests/docs/test_plain_english.py")
"""Files that contain the phrases themselves."""

SUGGESTIONS = {
    r"whoever": "name the actor: the caller, users who ..., you",
    r"whosever": "whose, or name the owner",
    r"nobody": "no one, no job, no user; or what follows from it: unused, held-out",
    r"somebody": "someone, a user, another job",
    r"for ever": "forever, indefinitely, without end",
    # "There is no file" and "is no longer" are plain; "it is no file" is not.
    r"(?<!there )(?:is|are|was|were|be) no (?!longer|more|less|worse|\w+er\b)\w+": "is not a ...",
    # "So many jobs that" is plain; "after so many seconds" means N seconds.
    r"(?:so many|so much)(?! (?:\w+ ){0,4}that)(?! (?:more|less|as))": "N, up to N, as many",
    r"likewise": "also, too, the same",
    r"(?:go|goes|going|gone|went) on with": "resume, continue",
    r"(?:leave|leaves|leaving|left) (?:\S+ ){1,4}away": "omit",
    r"clock on the wall": "wall-clock time",
    r"(?<!those )(?<!users )(?<!people )who (?:wait|waits|waited)": "waiting jobs",
    r"told apart": "distinguishable, distinguished",
    r"longest ago": "longest-waiting, oldest",
    r"no matter how": "regardless of, however",
    r"not never": "instead of never ending",
    # Not in paths (compare/judge.py), modules (compare.judge) and arguments ("judged: windows").
    # A model may have the grade "cannot be judged". `deploy judge` is a command.
    r"(?<![/.])(?<!cannot be )(?<!deploy )judg(?:e|es|ed|ing)(?!:)": "evaluate, assess, compare",
    r"(?<!chosen )anew": "again, from scratch",
    r"the very same": "the same",
    r"(?:has|have|had) chosen (?:nothing|anything)": "held-out; played no part in the selection",
}
"""Each phrase, as a regular expression for whole words, and what to write instead.

A blank matches any white space, also the end of a line.
"""

_PHRASES = [
    (re.compile(rf"\b(?:{phrase})(?!\w)", re.IGNORECASE), advice)
    for phrase, advice in SUGGESTIONS.items()
]
_NOT_PROSE = re.compile(
    r"<!-- generated: ([\w -]+) -->\n.*?<!-- end: \1 -->"
    r"|<!-- computed: ([\w -]+) -->\n.*?<!-- end computed: \2 -->"
    r"|^ *```.*?^ *```$",
    re.DOTALL | re.MULTILINE,
)
_CXX_PROSE = re.compile(
    r"""//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|"(?P<text>(?:\\.|[^"\\\n])*)"|'(?:\\.|[^'\\])'""",
    re.DOTALL,
)
_QUOTES = re.compile(r"""(?i)^(?P<prefix>[rbuf]*)('''|\"\"\"|'|")(?P<text>.*)\2$""", re.DOTALL)
_CODE = "\0"


@dataclasses.dataclass(frozen=True)
class Finding:
    """A phrase that should be replaced, and where it is."""

    path: str
    line: int
    phrase: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.phrase} -> {self.advice}"


def findings(text: str, path: str) -> Iterator[Finding]:
    """Yield what should be replaced in the text of a file, whose name tells its language."""
    prose = _PROSE[Path(path).suffix](text)
    words = list(re.finditer(r"\S+", prose))
    # One blank between words, so that phrases are found across the ends of lines.
    joined = " ".join(word[0] for word in words)
    starts = [0, *itertools.accumulate(len(word[0]) + 1 for word in words)]
    for phrase, advice in _PHRASES:
        for match in phrase.finditer(joined):
            word = words[bisect.bisect_right(starts, match.start()) - 1]
            yield Finding(path, text.count("\n", 0, word.start()) + 1, match[0], advice)


def _markdown(text: str) -> str:
    """Return a page with code blocks and generated parts masked."""
    return _NOT_PROSE.sub(lambda match: _masked(match[0]), text)


def _cxx(text: str) -> str:
    """Return the comments and string literals of a C++ file, with the code masked."""
    found = _CXX_PROSE.finditer(text)
    return _keep(text, [match.span(match.lastgroup) for match in found if match.lastgroup])


def _python(text: str) -> str:
    """Return the comments and string literals of a Python file, with the code masked."""
    lines = [0, *itertools.accumulate(len(line) + 1 for line in text.split("\n"))]
    kept = []
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type != tokenize.NL
    ]
    for number, token in enumerate(tokens):
        begin = lines[token.start[0] - 1] + token.start[1]
        if token.type == tokenize.COMMENT:
            kept.append((begin + 1, begin + len(token.string)))
        elif token.type == tokenize.STRING and (match := _QUOTES.match(token.string)):
            if _is_name(match["text"], tokens[max(number - 1, 0)], tokens[number + 1]):
                continue
            part = begin + match.start("text")
            if "f" in match["prefix"].lower():  # one token up to Python 3.11
                for value in re.finditer(r"\{[^{}]*\}", match["text"]):
                    kept.append((part, begin + match.start("text") + value.start()))
                    part = begin + match.start("text") + value.end()
            kept.append((part, begin + match.end("text")))
        elif tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            kept.append((begin, lines[token.end[0] - 1] + token.end[1]))
    return _keep(text, kept)


def _is_name(text: str, before: tokenize.TokenInfo, after: tokenize.TokenInfo) -> bool:
    """Return whether a string is a name or a key: no blank, and not part of a longer string."""
    parts = {tokenize.tok_name[before.type], tokenize.tok_name[after.type]}
    return not re.search(r"\s", text) and parts.isdisjoint(
        {"STRING", "FSTRING_START", "FSTRING_END"}
    )


_PROSE = {".md": _markdown, ".py": _python, ".cpp": _cxx, ".h": _cxx}


def _keep(text: str, spans: list[tuple[int, int]]) -> str:
    """Return a text in which all but these spans is masked, quotes and comment marks blank."""
    parts, end = [], 0
    for begin, until in spans:
        parts += [_masked(text[end:begin]), text[begin:until]]
        end = until
    return "".join(parts) + _masked(text[end:])


def _masked(code: str) -> str:
    """Return blanks for what may interrupt a sentence, and a mark for every other character."""
    blank = re.sub(r"""[rbfu]*["']+|[#/*]""", lambda match: " " * len(match[0]), code)
    return re.sub(r"\S", _CODE, blank)


def files(names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files to check at and below these paths of the project, with their names in it."""
    for path in (ROOT / name for name in names):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            name = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else str(file)
            if file.suffix in _PROSE and not any(map(Path(name).match, SKIPPED)):
                yield name, file


def check(argv: list[str]) -> int:
    """Print all findings in the files and folders named, or in those of `make lint`."""
    found = [
        finding
        for name, file in files(argv or CHECKED)
        for finding in findings(file.read_text(encoding="utf-8"), name)
    ]
    for finding in sorted(found, key=lambda finding: (finding.path, finding.line)):
        sys.stdout.write(f"{finding}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(check(sys.argv[1:]))
