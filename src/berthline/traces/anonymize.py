"""Anonymising a workload: names become keyed hashes, so that a log can be published.

The code of a name depends only on the key, the salt and the name, not on the order of rows or on
other names. The same user therefore has the same code in every file made with the same key and
salt. Without the key, codes cannot be checked against a list of likely names. Codes made with
different salts cannot be matched with each other.

Not changed: submissions relative to the first, run times, estimates, deadlines, GPUs, CPUs,
memory, priorities and GPU types. A scheduler needs them. A reader who knows a job's exact times
and size can still find it, so publish with care.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError
from berthline.model.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterable

Clock = Literal["keep", "shift", "drop"]

SHORTEST_KEY = 16
"""Characters. A key that can be guessed protects nothing."""

_PLACEHOLDERS = frozenset({"", "all", "unknown"})  # what readers write where there is no name
_KEPT_PROVENANCE = ("format", "rows", "used", "dropped", "rounded")
_WEEK = 7 * 86_400
_MOST_WEEKS = 520
_CODE_BYTES = 8


def anonymize(
    workload: Workload,
    *,
    key: str | None = None,
    salt: str = "",
    clock: Clock = "drop",
    name: str = "anonymized",
) -> Workload:
    """Return the workload with codes for users, pools and jobs, and without its origin.

    `provenance["anonymized"]` says what was done. Otherwise, provenance keeps only the format and
    the row counts, because anything else may name places and people.

    Args:
        workload: the jobs.
        key: a secret text; None = a random key that is not kept, so that no other file can get
            the same codes.
        salt: any text; files with different salts cannot be matched with each other.
        clock: what to do with the date of time 0: `"drop"` = remove it; `"shift"` = move it into
            the past by a number of whole weeks that depends on the key, up to ten years, which
            preserves time of day and day of the week; `"keep"` = keep it.
        name: the name of the new workload in reports.

    Raises:
        ConfigError: the key is too short, or the clock is unknown.
    """
    if key is not None and len(key) < SHORTEST_KEY:
        raise ConfigError(
            f"the key for anonymising has {len(key)} characters",
            expected=f"{SHORTEST_KEY} or more, hard to guess",
        )
    if clock not in ("keep", "shift", "drop"):
        raise ConfigError(f"unknown clock {clock!r}", expected="one of keep, shift, drop")
    secret = secrets.token_bytes(32) if key is None else hashlib.sha256(key.encode()).digest()
    coder = _Coder(secret, salt)
    user, user_names = coder.recode("user", workload.user, workload.user_names)
    pool, pool_names = coder.recode("pool", workload.pool, workload.pool_names)
    names = None if workload.names is None else coder.codes("job", workload.names.tolist())
    provenance: dict[str, Any] = {
        known: workload.provenance[known]
        for known in _KEPT_PROVENANCE
        if known in workload.provenance
    }
    provenance |= _clock(workload, clock, coder)
    provenance["anonymized"] = {
        "hashed": "users, pools, jobs",
        "key": "random, not kept" if key is None else "given",
        "salted": bool(salt),
        "clock": clock,
        "kept": "times since the first submission, run times, estimates, deadlines, GPUs, CPUs, "
        "memory, priorities, GPU types",
    }
    return Workload.from_columns(
        submit=workload.submit,
        run=workload.run,
        gpus=workload.gpus,
        gpu_milli=workload.gpu_milli,
        estimate=workload.estimate,
        cpus=workload.cpus,
        memory_mib=workload.memory_mib,
        priority=workload.priority,
        deadline=workload.deadline,
        user=user,
        pool=pool,
        gpu_types=workload.gpu_types,
        ran_on=workload.ran_on,
        user_names=user_names,
        pool_names=pool_names,
        gpu_type_sets=workload.gpu_type_sets,
        ran_on_types=workload.ran_on_types,
        reference_type=workload.reference_type,
        names=names,
        name=name,
        provenance=provenance,
        rebase=False,
    )


class _Coder:
    """Turns names into codes."""

    def __init__(self, secret: bytes, salt: str) -> None:
        self._secret = secret
        self._salt = hashlib.sha256(salt.encode()).digest()[: hashlib.blake2b.SALT_SIZE]

    def digest(self, kind: str, name: str) -> bytes:
        """Return the hash of a name; a user and a pool of the same name have different hashes."""
        return hashlib.blake2b(
            name.encode(),
            key=self._secret,
            salt=self._salt,
            person=kind.encode(),
            digest_size=_CODE_BYTES,
        ).digest()

    def codes(self, kind: str, names: Iterable[str]) -> list[str]:
        return [
            name if name in _PLACEHOLDERS else f"{kind}-{self.digest(kind, name).hex()}"
            for name in names
        ]

    def recode(
        self, kind: str, column: npt.NDArray[np.int32], names: tuple[str, ...]
    ) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
        """Return the recoded column and the codes, sorted so that their order reveals nothing."""
        codes = self.codes(kind, names)
        order = np.argsort(np.array(codes, dtype=np.str_), kind="stable")
        position = np.empty(len(codes) + 1, dtype=np.int32)
        position[order] = np.arange(len(codes))
        position[-1] = -1  # no pool
        return position[column], tuple(codes[at] for at in order.tolist())


def _clock(workload: Workload, clock: Clock, coder: _Coder) -> dict[str, Any]:
    """Return the provenance entries for the date of time 0."""
    origin, zone = (workload.provenance.get(key) for key in ("origin_unix_time", "time_zone"))
    if clock == "drop" or origin is None:
        return {"origin_unix_time": None, "time_zone": zone if clock == "keep" else None}
    if clock == "shift":
        weeks = 1 + int.from_bytes(coder.digest("clock", "")) % _MOST_WEEKS
        origin -= weeks * _WEEK
    return {"origin_unix_time": origin, "time_zone": zone}
