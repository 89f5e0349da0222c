"""The files of a run directory, and which kinds of run have which of them.

    config.toml       every setting, resolved
    meta.json         version, command, seed, machine, time; the workload and what was left out
    metrics.jsonl     one line for each run; in training, for each iteration and validation
    summary.json      the object that `--json` prints; a directory that has it is complete
    events.parquet    the schedule log; for a comparison, the logs of its first window
    jobs.parquet      one row for each run and job
    cluster.toml      the cluster; for a comparison, that of the first window
    workload.parquet  the jobs; for a comparison, those of the first window
    decisions.parquet an exported journal: what was decided in each cycle
    start.json        of a run that begins in the middle: what its log does not say (start_file.py)
    tuning.json       demo: the summary of its search
    curve.csv         training and search: the validations
    checkpoints/      training: last-STEP to resume from, best-STEP by VAL
    tensorboard/      training: event files
    state.json        search: all losses, to resume from
    runs.partial      unfinished comparison: the finished runs (kept_runs.py)
    report.html       written by `berthline report`
    figures/          written by `berthline report`

File names of a run directory appear in this module only.
"""

from __future__ import annotations

from typing import NamedTuple

CONFIG, META, METRICS, SUMMARY = "config.toml", "meta.json", "metrics.jsonl", "summary.json"
EVENTS, JOBS, CLUSTER, WORKLOAD = (
    "events.parquet",
    "jobs.parquet",
    "cluster.toml",
    "workload.parquet",
)
START = "start.json"
DECISIONS = "decisions.parquet"
TUNING = "tuning.json"
CURVE, CHECKPOINTS, TENSORBOARD, STATE = "curve.csv", "checkpoints", "tensorboard", "state.json"
CHECKPOINT_FACTS, CHECKPOINT_TENSORS = "checkpoint.json", "tensors.safetensors"
"""The files of a checkpoint."""
UNFINISHED = "runs.partial"
FIGURES, REPORT = "figures", "report.html"
SEED_PREFIX = "seed-"
"""Training with several seeds writes a run directory for each: `seed-0`, `seed-1`, ..."""

TRIAL_PREFIX = "trial-"
"""A sweep writes a run directory for each trial: `trial-000`, `trial-001`, ..."""

_ALWAYS = (CONFIG, META, METRICS, SUMMARY)
_TABLES = (EVENTS, JOBS, CLUSTER, WORKLOAD)


class RunKind(NamedTuple):
    """A kind of run.

    Attributes:
        verb: the verb of the command line that writes it, as meta.json names it.
        meaning: what such a run is.
        files: the files it writes, besides a report.
    """

    verb: str
    meaning: str
    files: tuple[str, ...]


RUN_KINDS = {
    "sim": RunKind("sim", "one workload under one scheduler", (*_ALWAYS, *_TABLES, START)),
    "compare": RunKind("compare", "the same jobs under several schedulers", (*_ALWAYS, *_TABLES)),
    "demo": RunKind("demo", "the comparison of the demo", (*_ALWAYS, *_TABLES, TUNING)),
    "eval": RunKind("eval", "a scheduler on held-out windows", (*_ALWAYS, *_TABLES)),
    "whatif": RunKind("whatif", "other schedulers on a recorded log", (*_ALWAYS, CLUSTER)),
    "train": RunKind("train", "training of a policy", (*_ALWAYS, CURVE, CHECKPOINTS, TENSORBOARD)),
    "search": RunKind("train", "tuning of a scheduler (train es)", (*_ALWAYS, CURVE, STATE)),
    "deploy": RunKind(
        "deploy", "what a journal says that happened", (*_ALWAYS, *_TABLES, DECISIONS)
    ),
    "bench": RunKind("bench", "a benchmark", _ALWAYS),
}
"""All kinds of run, by name."""


def kind_of(verb: str, algorithm: str) -> str | None:
    """Return the kind of a run; None = unknown.

    Args:
        verb: of meta.json.
        algorithm: of config.toml; only training runs have one.
    """
    if verb == "train" and algorithm == "es":
        return "search"
    return verb if verb in RUN_KINDS and RUN_KINDS[verb].verb == verb else None


def files_of(verb: str) -> frozenset[str]:
    """Return every name that a run of a verb may hold, including its report."""
    kinds = [kind for kind in RUN_KINDS.values() if kind.verb == verb]
    return frozenset((FIGURES, REPORT, *(name for kind in kinds for name in kind.files)))
