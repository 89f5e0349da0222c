"""Damaged files of every format: always a workload or a TraceError that names the file.

The seeds are in `tests/traces/seeds.py`. All damage is chosen by fixed random seeds, so a failure
comes back; its name says which format and which damage.
"""

from __future__ import annotations

import gzip
import itertools
import re
import signal
import zlib
from pathlib import Path

import numpy as np
import pytest
from tests.traces.seeds import COMPANIONS, SEEDS

from berthline.errors import TraceError
from berthline.model.workload import Workload
from berthline.traces.formats.format_table import FORMATS, detect_format
from berthline.traces.load import load_trace
from berthline.traces.reading.files import read_head

HANG = 120  # seconds; far more than any of these files takes, on any machine
LONG = 5_000_000
NUMBER = re.compile(rb"\d+(?:\.\d+)?")
WRONG_VALUES = (
    *(b"", b"abc", b"NaN", b"nan", b"inf", b"-inf", b"-1", b"-5", b"-0", b"0", b"0.3"),
    *(b"1e18", b"1000000000000000000", b"-1000000000000000000", b"1e400", b"-1e-400"),
    *(b"99999999999999999999999999", b"4294967295", b"2147483648", b"0x10", b"1_000", b"true"),
    *("٣".encode(), b"\xff\xfe", b"null", b"None", b'"', b"'", b"[1]", b"2020-13-45 99:99:99"),
)
SOURCES = [
    *((name, None) for name in FORMATS),
    *((name, option) for name in COMPANIONS for option in COMPANIONS[name]),
]


@pytest.fixture(autouse=True)
def _no_hang():
    def give_up(number, frame):
        raise AssertionError("loading hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(HANG)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def random_for(name, damage):
    return np.random.default_rng(zlib.crc32(f"{name} {damage}".encode()))


def damaged(content, name, damage):
    """Yield files like `content` with one kind of damage."""
    random = random_for(name, damage)
    first_line, _, rest = content.partition(b"\n")

    def insert(what, at):
        return content[:at] + what + content[at:]

    def places(count):
        return random.integers(0, len(content), count).tolist()

    if damage == "truncated":
        yield from (content[:at] for at in range(0, len(content), max(1, len(content) // 40)))
        yield content.rstrip()[:-1]
    elif damage == "values":
        numbers = list(NUMBER.finditer(content))
        for value in WRONG_VALUES:
            for _ in range(4):
                match = numbers[random.integers(len(numbers))]
                yield content[: match.start()] + value + content[match.end() :]
    elif damage == "lines":
        lines = content.splitlines(keepends=True)
        yield first_line
        yield rest
        yield content + content
        yield b"\n\n\n" + content.replace(b"\n", b"\n\n")
        yield b"".join(reversed(lines))
        yield b"".join(lines[:1] + lines)
        yield first_line + b"\n" + b",,,\n" * 3 + rest
    elif damage == "delimiters":
        for old, new in ((b",", b";"), (b",", b"\t"), (b"|", b","), (b" ", b"\t"), (b"\t", b" ")):
            yield content.replace(old, new)
        for mark in (b",", b"|", b" ", b"\t", b'"', b":", b"{", b"["):
            for at in [found.start() for found in re.finditer(re.escape(mark), content)][:40:4]:
                yield content[:at] + content[at + 1 :]
                yield insert(mark, at)
    elif damage == "line endings":
        yield content.replace(b"\n", b"\r\n")
        yield content.replace(b"\n", b"\r")
        yield content.replace(b"\n", b" ")
        yield b"\xef\xbb\xbf" + content
        yield b"\xff\xfe" + content
        yield content.decode("utf-8", errors="replace").encode("utf-16")
    elif damage == "marks":
        for mark in (b'"', b"'", b"\0", b"\r", b"\n", b";", b"#", b"\x1a", b"\xc3", b"\\"):
            yield from (insert(mark, at) for at in places(6))
    elif damage == "flips":
        for _ in range(60):
            flipped = bytearray(content)
            for at in places(random.integers(1, 4)):
                flipped[at] = random.integers(256)
            yield bytes(flipped)
    elif damage == "noise":
        yield from (
            b"",
            b"\n",
            b" ",
            b"\0",
            b"PAR1",
            b"PAR1PAR1",
            b"{}",
            b"[]",
            b"[",
            b"null",
            b"0",
        )
        yield b"PAR1\x04\0\0\0PAR1"
        for size in (1, 100, 10_000):
            yield random.bytes(size)
            yield first_line + b"\n" + random.bytes(size)
            yield b"PAR1" + random.bytes(size) + b"PAR1"
            yield gzip.compress(content)[:-5] + random.bytes(size)
        yield gzip.compress(random.bytes(1000))
        yield gzip.compress(gzip.compress(content))
    elif damage == "long lines":
        for piece in (b"9", b"a", b",", b'"', b"[", b'{"a":', b" 1", b";", b"|", b"\t"):
            long = (piece * LONG)[:LONG]
            yield long
            yield content + long + b"\n"
            yield content.replace(b"\n", b"\n" + long + b"\n", 1)
        numbers = list(NUMBER.finditer(content))
        for match in numbers[:: max(1, len(numbers) // 4)]:
            yield content[: match.start()] + b"9" * LONG + content[match.end() :]


DAMAGES = (
    *("truncated", "values", "lines", "delimiters", "line endings", "marks", "flips", "noise"),
    "long lines",
)


def load(path, name, options):
    """Load a file that may be damaged; what comes back must be usable, what is said must help."""
    try:
        workload = load_trace(path, name, **options)
    except TraceError as error:
        text = str(error)
        workload = None
    if workload is None:
        given = [option for option in options.values() if isinstance(option, Path)]
        assert any(str(file) in text for file in (path, *given))
        assert len(text) < 5000
        return None
    assert isinstance(workload, Workload)
    assert len(workload) == workload.provenance["used"] > 0
    return workload


def files_for(name, directory):
    """Write a format's seed and companions; return its path and options."""
    path = directory / "seed"
    path.write_bytes(SEEDS[name])
    options = {}
    for option, content in COMPANIONS.get(name, {}).items():
        options[option] = directory / f"{option}.txt"
        options[option].write_bytes(content)
    return path, options


def test_every_format_has_a_seed():
    assert SEEDS.keys() == FORMATS.keys()
    for name, companions in COMPANIONS.items():
        assert companions.keys() <= FORMATS[name].options.keys()


@pytest.mark.parametrize("name", FORMATS)
def test_a_seed_is_recognised_and_all_its_jobs_are_used(tmp_path, name):
    path, options = files_for(name, tmp_path)
    found = detect_format(read_head(path), Path("anything"))
    assert found is not None
    assert found.name == name
    assert load(path, None, options).provenance["used"] >= 2


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(("name", "option"), SOURCES)
def test_damaged_files_load_or_are_refused_by_name(tmp_path, name, option, damage):
    check(tmp_path, name, option, damage, every=10 if damage == "long lines" else 4)


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(("name", "option"), SOURCES)
def test_all_damaged_files_load_or_are_refused_by_name(tmp_path, name, option, damage):
    check(tmp_path, name, option, damage, every=1)


def check(directory, name, option, damage, *, every):
    path, options = files_for(name, directory)
    target = path if option is None else options[option]
    first = zlib.crc32(name.encode()) % every  # so that formats do not all meet the same
    files = damaged(target.read_bytes(), f"{name} {option}", damage)
    keeps = "cpu_jobs" in FORMATS[name].options
    for number, content in enumerate(itertools.islice(files, first, None, every)):
        target.write_bytes(content)
        # Rows without GPUs, which damage makes too, become jobs in every second file.
        load(path, name, {**options, "cpu_jobs": "keep"} if keeps and number % 2 else options)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_are_recognised_or_not_without_a_crash(tmp_path, name):
    path, options = files_for(name, tmp_path)
    if options:  # options name the format, and nothing is left to recognise
        options = {}
    for damage in ("truncated", "flips", "noise", "line endings"):
        for content in itertools.islice(damaged(SEEDS[name], name, damage), 0, None, 3):
            path.write_bytes(content)
            load(path, None, options)
