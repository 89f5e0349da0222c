"""Writing a cluster as a file that `Cluster.parse` reads back: the layout of cluster_file.py."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np

from berthline.model.gpu_types import GPU_TYPES

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from berthline.model.cluster import Cluster

_Value = str | float | bool | list[int]


def write_cluster_file(cluster: Cluster, path: str | os.PathLike[str]) -> Path:
    """Write a cluster file, which is replaced if it exists, and return its path."""
    from berthline.atomic_write import write_atomically

    return write_atomically(path, cluster_text(cluster).encode())


def cluster_text(cluster: Cluster) -> str:
    """Return a cluster as TOML: node ids, names and rules are the same when it is read back.

    Adjacent equal nodes form one group.
    """
    parts = [f"name = {_written(cluster.name)}\n"]
    parts += [_table("[nodes]", group) for group in _groups(cluster)]
    for kind in cluster.types:
        if GPU_TYPES.get(kind.name) != kind:
            figures: dict[str, _Value | None] = {
                "tflops": kind.tflops,
                "memory_mib": kind.memory_mib,
                "idle_w": kind.idle_w,
                "peak_w": kind.peak_w,
                "tflops_fp32": kind.tflops_fp32,
                "source": kind.source,
                "is_guess": kind.is_guess,
                "speed": kind.measured_speed,
            }
            parts.append(_table(f"gpu_types.{_written(kind.name)}", figures))
    if cluster.conditions.changed():
        parts.append(_table("conditions", dict(cluster.conditions.changed())))
    for quota in cluster.quotas:
        texts = {"pool": quota.pool, "user": quota.user, "gpu_type": quota.gpu_type}
        named = {key: text for key, text in texts.items() if text}
        parts.append(_table("[quotas]", {"gpus": quota.gpus, **named}))
    for name, rules in cluster.pool_rules.items():
        parts.append(
            _table(f"pools.{_written(name)}", {"borrow": rules.borrow, "lend": rules.lend})
        )
    for outage in cluster.outages:
        up = outage.up if math.isfinite(outage.up) else None
        nodes = list(outage.nodes)
        parts.append(_table("[outages]", {"down": outage.down, "up": up, "nodes": nodes}))
    return "\n".join(parts)


def _groups(cluster: Cluster) -> list[dict[str, _Value | None]]:
    columns = np.stack(
        [
            cluster.gpus,
            cluster.gpu_type,
            cluster.cpus,
            cluster.memory_mib,
            cluster.pool,
            cluster.rack,
            cluster.mtbf,
            cluster.mttr,
        ]
    ).astype(np.float64)
    begins = np.flatnonzero((np.diff(columns, axis=1, prepend=-2.0) != 0).any(axis=0))
    counts = np.diff(begins, append=cluster.num_nodes)
    groups = []
    for first, count in zip(begins.tolist(), counts.tolist(), strict=True):
        pool = int(cluster.pool[first])
        group: dict[str, _Value | None] = {
            "count": count,
            "gpus": int(cluster.gpus[first]),
            "gpu_type": cluster.types[int(cluster.gpu_type[first])].name,
            "cpus": int(cluster.cpus[first]),
            "memory_mib": int(cluster.memory_mib[first]),
            "pool": cluster.pool_names[pool] if pool >= 0 else "",
            "rack": cluster.rack_names[int(cluster.rack[first])],
            "mtbf": float(cluster.mtbf[first]),
            "mttr": float(cluster.mttr[first]),
        }
        groups.append({key: value for key, value in group.items() if value not in (0, "")})
    return groups


def _table(name: str, content: dict[str, _Value | None]) -> str:
    lines = [f"{key} = {_written(value)}\n" for key, value in content.items() if value is not None]
    return f"[{name}]\n{''.join(lines)}"


def _written(value: _Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(str, value)) + "]"
    if isinstance(value, int | float):
        return repr(value)
    # A JSON string is a TOML string, except for the one control character that JSON keeps.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
