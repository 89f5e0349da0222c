"""Columns: what an agent sees of jobs, nodes, running jobs and the cluster, each a formula.

An observation has four tables. A set of columns names the formulas of each; users can give their
own as a mapping, or as a list for the table of waiting jobs. Values should be of order 1: the
native core clips them to plus or minus a million, and writes 0 for NaN.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from berthline.env import option_types
from berthline.errors import ConfigError, unknown_name
from berthline.policies.formulas import OF_JOBS, OF_PLACES, Formula
from berthline.registry import Registry, keywords_of

TABLES = ("jobs", "nodes", "running", "globals")

_OF_NODES = frozenset({"node", "cluster"})
_OF_CLUSTER = frozenset({"cluster"})


@dataclasses.dataclass(frozen=True)
class Columns:
    """The formulas of each table; an empty table is left out of observations.

    Attributes:
        jobs: of the waiting jobs in the window.
        nodes: of all nodes.
        running: of the running jobs that are shown.
        globals: of the cluster as a whole.
    """

    jobs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    globals: tuple[str, ...] = ()

    def formulas(self, table: str, *, has_job_at_hand: bool = False) -> list[Formula]:
        """Return the checked formulas of a table.

        Args:
            table: one of TABLES.
            has_job_at_hand: whether columns about nodes may also be about the job to be placed.

        Raises:
            PolicyError: a text is not a formula, or uses a word without a value in this table.
        """
        scopes = {
            "jobs": OF_JOBS,
            "running": OF_JOBS,
            "nodes": OF_PLACES if has_job_at_hand else _OF_NODES,
            "globals": _OF_CLUSTER,
        }[table]
        return [Formula.parse(text, scopes=scopes) for text in getattr(self, table)]


_NODES = (
    "node_free_gpus / node_total_gpus",
    "node_total_gpus / max_node_gpus",
    "node_speed",
)
_GLOBALS = (
    "utilization",
    "fragmentation",
    "queue_len / (queue_len + 32)",
    "running_jobs / (running_jobs + 32)",
    "arrival_rate * 60",
)


def lsf_columns(*, most_gpus: int = 4, most_memory_mib: int = 4096) -> Columns:
    """Return the LSF host picker's columns, scaled by the largest job."""
    return Columns(
        jobs=(f"gpus / {most_gpus}", f"memory_mib / {most_memory_mib}"),
        nodes=(
            "1 - node_free_gpus / node_total_gpus",
            "1 - node_free_memory_mib / node_total_memory_mib",
            "node_total_gpus / max_node_gpus",
            "node_total_memory_mib / max_node_memory_mib",
        ),
    )


def lookahead_columns(*, longest: float = 10_000.0) -> Columns:
    """Return the look-ahead system's columns, scaled by the longest run time."""
    return Columns(
        jobs=(
            f"estimate / {longest:.15g}",
            "priority / 10",
            "gpus / total_gpus",
            f"wait / (wait + {longest:.15g})",
        ),
        globals=("free_gpus / total_gpus", "busy_gpus / total_gpus"),
    )


_OWN = {
    "default": Columns(
        jobs=(
            "wait / (wait + 3600)",
            "log10(1 + estimate) / 6",
            "log2(1 + gpus) / 10",
            "log10(1 + work) / 9",
            "priority / max_priority",
            "can_start",
            "gpus / (gpus + free_gpus)",
            "wait / (wait + estimate)",
        ),
        nodes=_NODES,
        running=(
            "remaining / (remaining + 3600)",
            "log2(1 + gpus) / 10",
            "attained / (attained + 36000)",
            "restarts / (restarts + 1)",
        ),
        globals=_GLOBALS,
    ),
    # The same without anything that depends on run times.
    "blind": Columns(
        jobs=(
            "wait / (wait + 3600)",
            "wait / (wait + 60)",
            "log2(1 + gpus) / 10",
            "attained / (attained + 36000)",
            "priority / max_priority",
            "can_start",
            "gpus / (gpus + free_gpus)",
            "user_jobs / (user_jobs + 8)",
        ),
        nodes=_NODES,
        running=(
            "attained / (attained + 36000)",
            "log2(1 + gpus) / 10",
            "priority / max_priority",
            "restarts / (restarts + 1)",
        ),
        globals=_GLOBALS,
    ),
    # Whether to hold a job back: the job, what it would leave free, and how much work waits.
    "gate": Columns(
        jobs=(
            "log10(1 + estimate) / 6",
            "log2(1 + gpus) / 10",
            "(pool_free_gpus - gpus) / pool_total_gpus",
            "wait / (wait + estimate)",
            "wait / (wait + 3600)",
        ),
        globals=(
            "utilization",
            "queue_len / (queue_len + 32)",
            "log2(1 + queued_work / total_gpus / 60) / 12",
            "arrival_rate * 60",
        ),
    ),
    # Those of the reference systems; presets.py says what differs from the originals.
    "rltune": Columns(
        jobs=(
            "min(wait / 43200, 1)",
            "min(gpus / max_node_gpus, 1)",
            "min(gpus / pool_free_gpus / pool_total_gpus, 1)",
            "clip((pool_free_gpus - pool_queued_gpus + pool_total_gpus) / (2 * pool_total_gpus),"
            " 0, 1)",
            "pool_fragmentation",
            "(ways_tier1 + min(ways_tier2, 1)) / 3",
            "ways_tier1 / 2",
        ),
    ),
    "drl-scheduler": Columns(
        jobs=(
            "priority / 5",
            "min(wait / 15000, 1)",
            "gpus / total_gpus",
            "min(estimate / 15000, 1)",
        ),
        globals=("free_gpus / total_gpus", "queue_len / 200"),
    ),
    "rlmetadqn": Columns(
        globals=(
            "arrival_rate * 60 / 10",
            "tanh(arrival_burstiness / 4)",
            "utilization",
            "(total_gpus - 2) / 14",
            "tanh(queue_len / 50)",
        ),
    ),
    "lsf": lsf_columns(),
    "lsf-busy": lsf_columns(most_gpus=32, most_memory_mib=16384),
    "lookahead": lookahead_columns(),
}


def register_columns(
    name: str,
    *,
    jobs: Sequence[str] = (),
    nodes: Sequence[str] = (),
    running: Sequence[str] = (),
    globals: Sequence[str] = (),  # noqa: A002 - the name of the table
) -> Columns:
    """Add a set of columns, usable at once as the option `features`.

    A package can add one by an entry point in the group `berthline.columns`: a mapping with these
    parameters.

    Args:
        name: lower-case words joined by hyphens.
        jobs: formulas about waiting jobs; a table without formulas is left out of observations.
        nodes: formulas about nodes, and in Place about the job at hand.
        running: formulas about running jobs.
        globals: formulas about the cluster as a whole.

    Raises:
        ConfigError: the name is taken or malformed, or there is no formula.
        PolicyError: a formula cannot be used.

    Example:
        register_columns("short-and-small", jobs=["estimate / 3600", "gpus / 8"])
    """
    given = {"jobs": jobs, "nodes": nodes, "running": running, "globals": globals}
    columns = Columns(**{table: _texts(table, texts) for table, texts in given.items()})
    if not any(columns.formulas(table, has_job_at_hand=True) for table in TABLES):
        raise ConfigError(f"the set of columns {name!r} is empty", expected="a formula or more")
    return COLUMN_SETS.add(name, columns)


COLUMN_SETS = Registry[Columns](
    "a set of columns",
    "berthline.columns",
    _OWN,
    lambda name, value: register_columns(
        name, **keywords_of("a set of columns", value, register_columns)
    ),
)
"""Named sets of columns."""

ColumnsArgument = str | Sequence[str] | Mapping[str, Sequence[str]] | Columns | None


def resolve_columns(given: ColumnsArgument, *, knowledge: str) -> Columns:
    """Return the columns that the option `features` means.

    Args:
        given: a name of COLUMN_SETS, formulas about waiting jobs, a mapping of tables to formulas
            (tables not named keep the default's), or None for the default.
        knowledge: with `none`, the default has no columns about run times.

    Raises:
        ConfigError: an unknown set or table.
    """
    default = COLUMN_SETS["blind" if knowledge == "none" else "default"]
    if given is None:
        return default
    if isinstance(given, Columns):
        return given
    if isinstance(given, str):
        if given not in COLUMN_SETS:
            what, expected, hint = unknown_name("set of columns", given, COLUMN_SETS)
            raise ConfigError(what, where="features", expected=expected, hint=hint)
        return COLUMN_SETS[given]
    if isinstance(given, Mapping):
        for table in given:
            if table not in TABLES:
                what, expected, hint = unknown_name("table", str(table), TABLES)
                raise ConfigError(what, where="features", expected=expected, hint=hint)
        return dataclasses.replace(
            default, **{table: _texts(table, texts) for table, texts in given.items()}
        )
    return dataclasses.replace(default, jobs=_texts("jobs", given))


_FORMULAS = option_types.OptionType(
    'a list of formulas, such as ["wait / 3600", "gpus"]', option_types.TEXTS.convert
)


def _texts(table: str, texts: Sequence[str]) -> tuple[str, ...]:
    found: tuple[str, ...] = _FORMULAS.take(f"features, table {table!r},", texts)
    return found
