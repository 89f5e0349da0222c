"""The native CSV reader against polars: CPU time, memory, and how each reads odd tables.

Prints the tables of docs/decisions/0017-csv-reader.md. Three readers load the same files through
the same formats:

- `native`: as shipped; plain pieces go to the native core, others to polars
- `polars`: polars alone, piece by piece, with the same checks
- `bare`: polars alone, the whole text at once, without checks
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.winning_settings import TRACES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from berthline.traces.reading.csv.csv_columns import Column
    from berthline.traces.reading.csv.csv_reader import CsvReader

READERS = ("native", "polars", "bare")
ROUNDS = 3

LOGS = (
    "mit_supercloud_slurm/slurm_log_sample_2021-01-01_2021-02-14.csv.gz",
    "alibaba_dlrm_v2025/disaggregated_DLRM_trace.csv.gz",
    "alibaba_pai_v2020/pai_gpu_tasks_sample_day00-41.csv.gz",
    "philly/philly_2017-09-04_2017-11-14.csv.gz",
    "helios_venus/venus_gpu_jobs_2020-03-18_2020-08-31.csv.gz",
    "alibaba_spot_v2026/jobs_reduced_batch_1.csv.gz",
)
SAMPLES = ("csv", "reduced-csv", "helios", "acme", "slurm-sacct", "lsf-csv", "alibaba-pai")

HEADER = "job_id,submit_time,duration,num_gpus,user\n"
ODD_TABLES: Mapping[str, bytes] = {
    "separator in quotes": b'1,0,60,2,"a,b"\n',
    "quote in quotes": b'1,0,60,2,"a""b"\n',
    "line end in quotes": b'1,0,60,2,"a\nb"\n',
    "blanks around cells": b"1, 0 ,60, 2,a\n",
    "carriage returns": b"1,0,60,2,a\r\n2,5,60,2,b\r\n",
    "blank lines": b"1,0,60,2,a\n\n\n2,5,60,2,b\n",
    "Latin-1 name": b"1,0,60,2,J\xfcrgen\n",
    "text for a number": b"1,0,60,2,a\n2,5,6o,2,b\n",
    "a cell too few": b"1,0,60,2,a\n2,5,60,2\n3,6,60,2,c\n",
    "a cell too many": b"1,0,60,2,a\n2,5,60,2,b,9\n3,6,60,2,c\n",
    "a lost separator": b"1,0,60,2,a\n2,560,2,b\n3,6,60,2,c\n",
    "quote not closed": b'1,0,60,2,a\n2,5,60,2,"b\n3,6,60,2,c\n',
    "cut short": b"1,0,60,2,a\n2,5,6",
    "infinity": b"1,0,inf,2,a\n2,5,60,2,b\n",
}


def use_reader(name: str) -> None:
    """Read every table with one of `READERS`."""
    from berthline.traces.reading.csv.csv_native import NativeReader
    from berthline.traces.reading.csv.csv_reader import CsvReader

    if name == "polars":
        NativeReader.read = lambda _, piece: False  # type: ignore[method-assign]  # noqa: ARG005
    if name == "bare":
        CsvReader.read = read_whole  # type: ignore[method-assign]


def read_whole(
    self: CsvReader, wanted: Mapping[str, Column]
) -> tuple[int, dict[str, list[pl.Series]]]:
    """Read columns with one call of polars, instead of `CsvReader.read`."""
    import polars as pl

    from berthline.traces.reading.csv.csv_columns import CellType, converted
    from berthline.traces.reading.files import PIECE_BYTES

    text = b"".join(self._rows(PIECE_BYTES))

    def parse(numbers: set[str]) -> pl.DataFrame:
        return pl.read_csv(
            text,
            has_header=False,
            columns=[self.names.index(name) for name in wanted],
            separator=self._form.separator,
            quote_char=self._form.quote,
            comment_prefix=self._form.comment,
            schema={name: pl.Float64 if name in numbers else pl.String for name in self.names},
            truncate_ragged_lines=True,
            encoding="utf8" if text.isascii() else "utf8-lossy",
        )

    try:
        frame = parse({name for name in wanted if wanted[name].kind is CellType.NUMBER})
    except pl.exceptions.PolarsError:
        frame = parse(set())
    return frame.height, {name: [converted(frame[name], column)] for name, column in wanted.items()}


def load_and_print(reader: str, path: str, format_name: str | None, options: dict) -> None:
    """Load a file; print rows, CPU seconds and MB."""
    import polars as pl

    from berthline.cli.bench.speed import peak_memory_mb
    from berthline.traces.load import load_trace

    use_reader(reader)
    pl.read_csv(b"a\n1\n")  # one-time work of polars in a process
    started = time.process_time()
    workload = load_trace(path, format_name, **options)
    seconds = time.process_time() - started
    print(json.dumps([workload.provenance["rows"], seconds, peak_memory_mb() or 0.0]))


def measured(
    label: str, path: Path, format_name: str | None = None, options: dict | None = None
) -> str:
    """Return a row of the table of speeds; each cell is measured in new processes."""
    cells = []
    for reader in READERS:
        task = json.dumps([reader, str(path), format_name, options or {}])
        runs = [
            json.loads(
                subprocess.run(
                    [sys.executable, "-m", "benchmarks.csv_reader", "--load", task],
                    capture_output=True,
                    check=True,
                ).stdout
            )
            for _ in range(ROUNDS)
        ]
        rows = runs[0][0]
        seconds = min(run[1] for run in runs)
        cells += [f"{seconds:.3f}" if seconds < 0.1 else f"{seconds:.2f}"]
        cells += [f"{max(run[2] for run in runs):,.0f}"]
    return f"| {label} | {rows:,} | " + " | ".join([*cells[0::2], *cells[1::2]]) + " |"


def speeds(traces: Path, sizes: list[int]) -> Iterator[str]:
    """Yield the table of speeds."""
    from berthline.cli.bench.load_samples import write_sample

    yield (
        "| file | rows | "
        + " | ".join([f"{name}, CPU s" for name in READERS] + [f"{name}, MB" for name in READERS])
        + " |"
    )
    yield "| --- |" + " ---: |" * 7
    for log in LOGS:
        if (traces / log).is_file():
            yield measured(f"`{log.partition('/')[0]}`, gzip", traces / log)
    for size in sizes:
        for name in SAMPLES:
            with tempfile.TemporaryDirectory() as folder:
                sample = write_sample(name, size, Path(folder))
                yield measured(
                    f"generated `{name}`", sample.path, name.partition(",")[0], sample.options
                )


def outcomes() -> Iterator[str]:
    """Yield the table of odd files: how each reader reads them."""
    yield "| table | " + " | ".join(READERS) + " |"
    yield "| --- |" + " --- |" * len(READERS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.csv"
        for label, rows in ODD_TABLES.items():
            path.write_bytes(HEADER.encode() + rows)
            cells = [
                subprocess.run(
                    [sys.executable, "-m", "benchmarks.csv_reader", "--odd", reader, str(path)],
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout.strip()
                for reader in READERS
            ]
            yield f"| {label} | " + " | ".join(cells) + " |"


def print_outcome(reader: str, path: Path) -> None:
    """Print how a reader reads a table: its jobs, or the error."""
    from berthline.errors import TraceError
    from berthline.traces.load import load_trace

    use_reader(reader)
    try:
        workload = load_trace(path, "csv")
    except TraceError as error:
        print(f"{error.where.removeprefix(f'{path}').strip(', ') or 'file'}: {error.what}")
    else:
        users = ", ".join(repr(name) for name in workload.user_names)
        print(f"run {workload.run.tolist()}, users {users}")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="csv_reader", description=__doc__)
    parser.add_argument("traces", type=Path, nargs="?", default=TRACES, help="where the logs are")
    parser.add_argument(
        "--rows", type=int, nargs="*", default=[1_000_000, 4_000_000], help="of a sample"
    )
    parser.add_argument("--load", help=argparse.SUPPRESS)
    parser.add_argument("--odd", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        load_and_print(*json.loads(options.load))
    elif options.odd:
        print_outcome(options.odd[0], Path(options.odd[1]))
    else:
        for line in speeds(options.traces, options.rows):
            print(line, flush=True)
        print()
        for line in outcomes():
            print(line, flush=True)


if __name__ == "__main__":
    main()
