"""What tuning in the simulator gains over heuristics, express lanes and random search;
`make results RESULTS=tuned_schedulers` runs it."""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import TYPE_CHECKING

from benchmarks.log_page import run_page
from benchmarks.paired_windows import in_words

import berthline as bl
from berthline.errors import TraceError
from berthline.evaluate.statistics.paired import Ratio
from berthline.learn.tuning.search import Search, SearchConfig
from berthline.learn.tuning.search_rivals import HEURISTICS, LANES, usable_rivals
from berthline.learn.tuning.search_space import SPACES
from berthline.learn.tuning.search_windows import SearchWindows
from berthline.learn.tuning.search_workers import SearchWorkers
from berthline.traces.offered_load import scale_to_load
from berthline.worker_pool import usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.result_files import Row

PAGE = "tuned-schedulers"

EVALUATIONS, SEEDS, WINDOWS, DAY = 240, (0, 1), 12, 86_400.0


@dataclasses.dataclass(frozen=True)
class Setting:
    """A setting: the file of a log, or none for the generator `synthetic`."""

    name: str
    file: str
    cluster: str
    load: float
    space: str
    knowledge: str
    window_jobs: int


_VENUS = "helios_venus/venus_gpu_jobs_2020-03-18_2020-08-31.csv.gz"
SETTINGS = (
    Setting(
        "HPC2N, exact", "swf/HPC2N-2002-2.2-cln.swf.gz", "uniform:1x240", 1.0, "gate", "exact", 1500
    ),
    Setting("Venus, exact", _VENUS, "uniform:40x8", 1.0, "gate", "exact", 1200),
    Setting("synthetic, estimates", "", "uniform:8x8", 1.0, "gate", "estimate", 1500),
    Setting(
        "Venus, preemptive, nothing known", _VENUS, "uniform:40x8", 1.0, "preempt", "none", 800
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Search, and write the CSV file and the page."""
    return run_page(PAGE, __doc__, measure=measure, parts=parts, argv=argv)


def measure(folder: Path) -> Iterator[Row]:
    """Yield a row for each search of each setting."""
    for setting in SETTINGS:
        yield from searches(setting, folder)


def searches(setting: Setting, folder: Path) -> Iterator[Row]:
    """Yield a row for each search.

    Raises:
        TraceError: a log is not there.
    """
    cluster = bl.Cluster.parse(setting.cluster)
    for seed in SEEDS:
        windows = windows_of(setting, cluster, folder, seed)
        with SearchWorkers(
            windows.window, cluster, knowledge=setting.knowledge, processes=usable_cores()
        ) as workers:
            for how in ("cma", "random"):
                summary = Search(
                    SearchConfig(search=how, evaluations=EVALUATIONS, seed=seed),
                    SPACES[setting.space],
                    windows,
                    workers,
                    rivals=usable_rivals(
                        [*HEURISTICS, *LANES],
                        setting.knowledge,
                        preemptive=SPACES[setting.space].preempts,
                    ),
                ).run()
                assert summary is not None
                print(f"{setting.name}, {how}, seed {seed}: {summary['seconds']:.0f} s", flush=True)
                yield row_of(setting, how, seed, summary)


def windows_of(setting: Setting, cluster: bl.Cluster, folder: Path, seed: int) -> SearchWindows:
    """Return the windows of a setting."""
    if not setting.file:
        return SearchWindows.generated(
            lambda one: bl.generate(
                "synthetic", cluster=cluster, jobs=setting.window_jobs, load=setting.load, seed=one
            ),
            cluster,
            seed=seed,
            train=24,
            judged=WINDOWS,
        )
    if not (folder / setting.file).exists():
        raise TraceError("the log is not there", where=str(folder / setting.file))
    log = bl.load_trace(folder / setting.file)
    jobs = bl.Workload.from_columns(
        submit=log.submit,
        run=log.run,
        gpus=log.gpus.clip(max=cluster.total_gpus),
        name=setting.name,
    )
    return SearchWindows.of_trace(
        scale_to_load(jobs, cluster, setting.load),
        cluster,
        train=24,
        judged=WINDOWS,
        window_jobs=setting.window_jobs,
        gap_seconds=DAY,
    )


def row_of(setting: Setting, how: str, seed: int, summary: dict) -> Row:
    """Return a row of the CSV file."""
    report = summary["report"]
    found = {
        "setting": setting.name,
        "search": how,
        "seed": str(seed),
        "val_loss": repr(summary["val"]["loss"]),
        "report_loss": repr(report["loss"]),
        "rival_report_loss": repr(report["rival_loss"]),
        "lane_report_loss": "" if report["lane_loss"] is None else repr(report["lane_loss"]),
        "rival": summary["rival"],
        "lane": summary["lane"] or "",
        "scheduler": summary["scheduler"],
    }
    for role in ("rival", "lane"):
        for metric in ("mean_bounded_slowdown", "mean_jct"):
            judged = report["against"].get(role, {}).get(metric, {})
            for end in ("ratio", "low", "high"):
                found[f"{role}_{metric}_{end}"] = repr(judged[end]) if judged else ""
    return found


def parts(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the computed parts of the page, by name."""
    table = [
        "| setting | search | seed | VAL loss | REPORT loss | slowdown against the rival"
        " | mean JCT against it | slowdown against the lane | mean JCT against it |",
        "| --- | --- | ---: |" + " ---: |" * 6,
    ]
    found = []
    for row in rows:
        cells = [
            f"{100 * math.expm1(float(row[key])):+z.1f} %" for key in ("val_loss", "report_loss")
        ]
        for role in ("rival", "lane"):
            cells += [
                _ratio(row, f"{role}_{metric}") for metric in ("mean_bounded_slowdown", "mean_jct")
            ]
        name = f"{row['setting']} | {row['search']} | {row['seed']}"
        table.append(f"| {name} | " + " | ".join(cells) + " |")
        if row["search"] == "cma":
            rival = f"rival `{row['rival']}`" + (f", lane `{row['lane']}`" if row["lane"] else "")
            found.append(f"- {row['setting']}, seed {row['seed']}; {rival}: `{row['scheduler']}`")
    return {"searches": table, "schedulers": found}


def _ratio(row: Row, key: str) -> str:
    if not row[f"{key}_ratio"]:
        return "-"
    ends = {end: float(row[f"{key}_{end}"]) for end in ("ratio", "low", "high")}
    return in_words(Ratio(**ends, windows=WINDOWS))


if __name__ == "__main__":
    sys.exit(main())
