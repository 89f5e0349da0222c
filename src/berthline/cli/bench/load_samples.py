"""The files that `berthline bench load` loads: made-up jobs in the formats of public traces.

Every file has the publisher's columns, cells of the same length, and rows in order of submission,
nearly all of them usable. The numbers are arbitrary.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from berthline.cli.bench import samples_of_clusters as clusters
from berthline.cli.bench import samples_of_systems as systems
from berthline.cli.bench.sample_jobs import Sample, SampleJobs


def write_sample(name: str, rows: int, directory: Path) -> Sample:
    """Write the files of one of `SAMPLES` and return what to load."""
    return SAMPLES[name](SampleJobs(rows), directory)


SAMPLES: dict[str, Callable[[SampleJobs, Path], Sample]] = {
    "csv": systems.write_csv,
    "csv, dates": systems.write_dated_csv,
    "reduced-csv": clusters.write_reduced,
    "philly-reduced": clusters.write_philly_reduced,
    "helios": clusters.write_helios,
    "acme": clusters.write_acme,
    "slurm-sacct": systems.write_sacct,
    "slurm-database": systems.write_slurm_database,
    "lsf-csv": systems.write_lsf_csv,
    "alibaba-pai": clusters.write_pai_tasks,
    "alibaba-pai, joined": clusters.write_pai_joined,
    "alibaba-openb": clusters.write_openb,
    "alibaba-dlrm": clusters.write_dlrm,
    "alibaba-spot": clusters.write_spot,
    "alibaba-spot-reduced": clusters.write_spot_reduced,
    "google-2011, jobs": clusters.write_google_jobs,
    "google-2011, tasks": clusters.write_google_tasks,
    "rltune": systems.write_rltune,
    "tiresias": systems.write_tiresias,
    "muri": systems.write_muri,
    "pollux-sia": systems.write_pollux,
    "gavel": systems.write_gavel,
    "swf": systems.write_swf,
}
"""How to write each sample: the format, and after a comma what is special about the file."""
