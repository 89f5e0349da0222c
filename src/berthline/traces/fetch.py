"""fetch_trace: download the files of a public trace from their publisher to a folder.

A file is written under a temporary name and renamed when it is complete and its checksum is
correct, so files in the folder can be trusted. Existing files are not fetched again.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import urllib.error
import urllib.parse
import urllib.request
import zlib
from typing import IO, TYPE_CHECKING

from berthline.atomic_write import complete_file
from berthline.errors import BerthlineError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from berthline.traces.catalog import PublicTrace, TraceFile

TIMEOUT = 30.0
"""Seconds without data after which a download fails."""

_CHUNK_BYTES = 2**18


class FetchError(BerthlineError):
    """A file could not be fetched, because of the network, the publisher or the disk."""

    exit_code = 1


def fetch_trace(
    trace: PublicTrace,
    folder: Path,
    *,
    check: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[Path, str]:
    """Fetch the files of a trace, and return the outcome for each: `fetched` or `kept`.

    Args:
        trace: an entry of the catalog.
        folder: where to write the files; created if it does not exist.
        check: refuse a file whose checksum differs from the known one.
        progress: called with (bytes so far, total bytes or 0, file) during a download.

    Raises:
        FetchError: a file cannot be fetched, or differs from the one in the catalog. Files fetched
            before it are kept.
        OutputError: a file cannot be written.
    """
    outcome: dict[Path, str] = {}
    for file in trace.files:
        target = folder / file.address
        if target.exists():
            if check:
                _check_present(file, target)
            outcome[target] = "kept"
            continue
        _fetch(trace, file, folder, check=check, progress=progress)
        outcome[target] = "fetched"
    return outcome


def _fetch(
    trace: PublicTrace,
    file: TraceFile,
    folder: Path,
    *,
    check: bool,
    progress: Callable[[int, int, str], None] | None,
) -> None:
    target = folder / file.address
    with complete_file(target) as partial:
        _download(trace, file, folder, partial, progress)
        if check and file.sha256 and (found := _sha256(file, partial)) != file.sha256:
            raise FetchError(
                f"the checksum of {file.address} is wrong: {found}",
                where=trace.address_of(file),
                expected=f"sha256 {file.sha256}{' of the content' if file.unpacked else ''}",
                hint="fetch it again; if it is wrong again, the publisher has changed the file: "
                f"see {trace.page}, and accept it with `check=False`",
            )


def _download(
    trace: PublicTrace,
    file: TraceFile,
    folder: Path,
    partial: Path,
    progress: Callable[[int, int, str], None] | None,
) -> None:
    """Download a file to `partial`."""
    address = trace.address_of(file)
    request = urllib.request.Request(address, headers={"User-Agent": "berthline"})
    received = 0
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            stated = response.headers.get("Content-Length")
            total = int(stated) if stated and stated.isdigit() else 0
            with _opened(partial) as out:
                while chunk := response.read(_CHUNK_BYTES):
                    _write(out, chunk, partial)
                    received += len(chunk)
                    if progress:
                        progress(received, total or file.num_bytes or 0, file.address)
    except urllib.error.HTTPError as error:
        error.close()
        why = f"the publisher answers {error.code} {error.reason}"
        raise _unavailable(trace, file, folder, why) from None
    except (OSError, http.client.HTTPException) as error:
        # URLError and all network errors below it are OSErrors.
        reason = getattr(error, "reason", error)
        host = urllib.parse.urlsplit(address).netloc
        said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        why = f"no connection to {host} ({said}; is this machine offline?)"
        raise _unavailable(trace, file, folder, why) from None
    if total and received < total:
        why = f"the connection broke after {received:,} of {total:,} bytes"
        raise _unavailable(trace, file, folder, why)


# Disk errors are caught separately from network errors, because both are OSErrors.


def _opened(path: Path) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")
    except OSError as error:
        raise _unwritable(path, error) from None


def _write(out: IO[bytes], chunk: bytes, path: Path) -> None:
    try:
        out.write(chunk)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(f"cannot write the file: {error.strerror or error}", where=str(path))


def _unavailable(trace: PublicTrace, file: TraceFile, folder: Path, why: str) -> FetchError:
    load = folder / trace.load
    unpack = f"      unpack it there: {trace.unpack}\n" if trace.unpack else ""
    return FetchError(
        f"cannot fetch {file.address}: {why}",
        where=trace.address_of(file),
        expected="a network that reaches the publisher; Berthline contains no traces",
        hint=f"fetch it on another machine, or by hand: {trace.page}\n"
        f"      save it as: {folder / file.address}\n"
        f"{unpack}"
        f"      then: berthline traces import {load} --format {trace.format} "
        f"--out {trace.name}.parquet",
    )


def _check_present(file: TraceFile, target: Path) -> None:
    """Raise an error if an existing file differs from the one in the catalog."""
    if not file.sha256:
        return
    try:
        found = _sha256(file, target)
    except OSError as error:
        raise FetchError(
            f"cannot read the existing file: {error.strerror or error}", where=str(target)
        ) from None
    if found != file.sha256:
        raise FetchError(
            f"the existing file is a different one: sha256 {found}",
            where=str(target),
            expected=f"sha256 {file.sha256}{' of the content' if file.unpacked else ''}",
            hint="move it and fetch it again, or choose another `folder`",
        )


def _sha256(file: TraceFile, path: Path) -> str:
    """Return the checksum of a file, or of its unpacked content if the catalog has that one."""
    digest = hashlib.sha256()
    try:
        with gzip.open(path) if file.unpacked else path.open("rb") as content:
            while chunk := content.read(_CHUNK_BYTES):
                digest.update(chunk)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return "none, the gzip file is damaged"
    return digest.hexdigest()
