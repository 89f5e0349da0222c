"""Lists of commands for one node, generated: six classes of jobs, with deadlines and priorities.

The columns, the classes and the spread of deadlines are those of the RLMetaDQN traces; run times
are 1 to 30 s, so that a list is played in minutes. Everything depends on the seed alone.
"""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import NamedTuple

from berthline.atomic_write import complete_directory
from berthline.errors import ConfigError
from berthline.random_streams import stream_key, uniform

SCRIPT = "load_job.py"
COLUMNS = ("name", "command", "est_runtime_s", "deadline_s", "priority", "submit_time", "gpus")
_DEADLINE = (1.2, 2.0)
_PRIORITIES = 4
_MOST_FILES, _MOST_JOBS = 1000, 100_000


class JobClass(NamedTuple):
    """A class of jobs.

    Attributes:
        share: of all jobs.
        shortest: run time in seconds.
        longest: run time in seconds.
        gpus: GPUs of some of its jobs; the others have one.
        share_of_gangs: how many of its jobs have `gpus`.
    """

    share: float
    shortest: float
    longest: float
    gpus: int = 1
    share_of_gangs: float = 0.0


CLASSES = {
    "LLM_TRAIN": JobClass(0.10, 15, 30, 2, 0.5),
    "LLM_FT": JobClass(0.20, 8, 20),
    "LLM_INFER": JobClass(0.25, 1, 4),
    "VISION_TRAIN": JobClass(0.20, 6, 18, 2, 0.25),
    "DATA_PREP": JobClass(0.15, 2, 8),
    "EVAL": JobClass(0.10, 1, 6),
}
"""The classes of jobs. Run times are spread evenly over the logarithm of their range."""


class ListSettings(NamedTuple):
    """What is generated.

    Attributes:
        files: lists.
        jobs: jobs in each.
        slots: GPUs or slots of the node that they are for.
        load: GPU-seconds that are submitted in each second, as a share of the slots.
        seed: of all random numbers.
        cpu: share of its time that a job computes.
        gpu_load: jobs compute on the GPU.
    """

    files: int = 10
    jobs: int = 50
    slots: int = 4
    load: float = 0.9
    seed: int = 0
    cpu: float = 1.0
    gpu_load: bool = False


def write_command_lists(out: str | Path, settings: ListSettings) -> list[Path]:
    """Write the lists and the program that they run into a new directory; return the lists.

    Raises:
        ConfigError: a number is out of range, or something is there already.
        OutputError: the directory cannot be written.
    """
    _check(settings)
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(
            "`out` exists and is not empty", where=str(out), expected="a new directory"
        )
    names = [f"node-{number:02d}.csv" for number in range(settings.files)]
    with complete_directory(folder, what="the lists") as staging:
        (staging / SCRIPT).write_bytes(Path(__file__).with_name(SCRIPT).read_bytes())
        for number, name in enumerate(names):
            (staging / name).write_text(_list(settings, number), encoding="utf-8")
    return [folder / name for name in names]


def _check(settings: ListSettings) -> None:
    for name, value, low, high in (
        ("`files`", settings.files, 1, _MOST_FILES),
        ("`jobs`", settings.jobs, 1, _MOST_JOBS),
        ("`slots`", settings.slots, 1, 1024),
        ("`load`", settings.load, 0.01, 100),
        ("`cpu`", settings.cpu, 0, 1),
    ):
        if not low <= value <= high:
            raise ConfigError(f"{name} is {value:g}", expected=f"{low:g} to {high:g}")


def _list(settings: ListSettings, number: int) -> str:
    key = stream_key(settings.seed, f"commands/{number}")
    rows: list[dict[str, object]] = []
    gaps: list[float] = []
    work = 0.0
    for row in range(settings.jobs):

        def draw(column: int, row: int = row) -> float:
            return uniform(key, row, column)

        name, kind = _class(draw(0))
        run = round(kind.shortest * (kind.longest / kind.shortest) ** draw(1), 2)
        gpus = min(kind.gpus if draw(2) < kind.share_of_gangs else 1, settings.slots)
        low, high = _DEADLINE
        work += run * gpus
        command = f"python3 {SCRIPT} --runtime {run:g}"
        command += f" --cpu {settings.cpu:g}" if settings.cpu < 1 else ""
        rows.append(
            {
                "name": f"{name}-{row:02d}",
                "command": command + (" --gpu-load" if settings.gpu_load else ""),
                "est_runtime_s": run,
                "deadline_s": round(run * (low + (high - low) * draw(3)), 2),
                "priority": int(draw(4) * _PRIORITIES),
                "gpus": gpus,
            }
        )
        gaps.append(-math.log(1 - draw(5)))
    mean_gap = work / settings.jobs / (settings.slots * settings.load)
    time = -gaps[0] * mean_gap  # the first job is submitted at 0
    for one, gap in zip(rows, gaps, strict=True):
        time += gap * mean_gap
        one["submit_time"] = round(time, 2)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _class(draw: float) -> tuple[str, JobClass]:
    found = next(iter(CLASSES.items()))
    for found in CLASSES.items():
        draw -= found[1].share
        if draw < 0:
            break
    return found
