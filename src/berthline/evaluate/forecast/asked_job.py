"""A job that is asked about: `gpus=4,estimate=2h` as a workload of one job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError, unknown_name
from berthline.model.gpu_types import type_names
from berthline.model.workload import Workload
from berthline.time_text import FORM, seconds_in

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster

KEYS = {
    "gpus": "GPUs that start together",
    "gpu_milli": "thousandths of the GPU, of a job on part of one",
    "estimate": f"run time that the user states: {FORM}",
    "cpus": "CPU cores of the whole job",
    "memory_mib": "memory of the whole job, in MiB",
    "user": "who submits it",
    "pool": "the pool it must run in",
    "gpu_types": "the GPU types it may run on, such as A100|V100",
    "priority": "larger is more important",
}
"""What can be said about a job."""

_WHOLE = ("gpus", "gpu_milli", "cpus", "memory_mib")


def asked_job(text: str, cluster: Cluster) -> Workload:
    """Return the job that a text such as `gpus=4,estimate=2h` describes.

    Args:
        text: KEYS with values, between commas.
        cluster: where it would run; names of pools and GPU types are checked.

    Raises:
        ConfigError: a key or a value is wrong.
    """
    given: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in KEYS:
            what, expected, hint = unknown_name("key", key, KEYS)
            raise ConfigError(what, where=_where(text), expected=expected, hint=hint)
        if not equals or not value:
            raise ConfigError(f"{key} has no value", where=_where(text), expected=f"{key}=VALUE")
        if key in given:
            raise ConfigError(f"{key} is given twice", where=_where(text))
        given[key] = value
    if "gpus" not in given and "cpus" not in given:
        raise ConfigError("neither gpus nor cpus is given", where=_where(text), expected="gpus=N")
    columns: dict[str, Any] = {"gpus": [0]}
    columns |= {key: [_whole(text, key, given[key])] for key in _WHOLE if key in given}
    if "estimate" in given:
        columns["estimate"] = [_seconds(text, given["estimate"])]
    if "priority" in given:
        columns["priority"] = [_number(text, "priority", given["priority"])]
    if "pool" in given:
        _check_one(text, "pool", given["pool"], cluster.pool_names)
        columns |= {"pool": [0], "pool_names": (given["pool"],)}
    if "gpu_types" in given:
        known = [kind.name for kind in cluster.types]
        for name in given["gpu_types"].split("|"):
            if not type_names(name) & set(known):
                _check_one(text, "GPU type", name, known)
        columns |= {"gpu_types": [0], "gpu_type_sets": (given["gpu_types"],)}
    return Workload.from_columns(
        submit=[0.0],
        run=[1.0],  # never read: it is drawn
        user_names=(given.get("user", "-"),),
        name="asked",
        **columns,
    )


def _where(text: str) -> str:
    return f"job {text!r}"


def _check_one(text: str, kind: str, name: str, known: Any) -> None:
    if name not in known:
        what, expected, hint = unknown_name(kind, name, known)
        if not known:
            expected = f"a cluster with {kind}s"
        raise ConfigError(what, where=_where(text), expected=expected, hint=hint)


def _whole(text: str, key: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", value):
        raise ConfigError(f"{key} is {value!r}", where=_where(text), expected="a whole number")
    return int(value)


def _number(text: str, key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ConfigError(f"{key} is {value!r}", where=_where(text), expected="a number") from None


def _seconds(text: str, value: str) -> float:
    """Return a length of time in seconds."""
    found = seconds_in(value)
    if found is None or found <= 0:
        raise ConfigError(f"estimate is {value!r}", where=_where(text), expected=FORM)
    return found
