"""GPUs that LSF jobs request, from resource requirements and `bsub -gpu` texts.

    select[type == any] order[r15s:pg] rusage[ngpus_physical=2.00/host]
    num=2/task:mode=exclusive_process:j_exclusive=yes

A number counts for each host the job runs on, unless `/task` (or `/slot`) or `/job` follows it.
"""

from __future__ import annotations

import dataclasses
import re

# ngpus_physical, and names in older releases and at some sites: ngpus, ngpus_shared, ngpus_excl_p.
_USAGE = re.compile(r"\bngpus(?:_\w+)?\s*=\s*(\d+(?:\.\d+)?)(?:/(\w+))?")
_USAGE_PART = re.compile(r"rusage\[([^\]]*)\]")
_GPU_OPTION = re.compile(r"(?:^|:)num=(\d+)(?:/(\w+))?(?=:|$)")

MOST_GPUS = 2**31 - 1
"""GPUs of a job: the limit of the workload's column."""


@dataclasses.dataclass(frozen=True)
class GpuRequest:
    """A number of GPUs per host, task or job.

    Attributes:
        number: GPUs; may be a fraction.
        per: `host`, `task` or `job`.
        terms: how many requests the text had; the first one counts.
    """

    number: float
    per: str
    terms: int = 1

    def total(self, *, hosts: int, tasks: int) -> float:
        """Return the GPUs of a job with this many hosts and tasks; may be a fraction."""
        times = {"host": hosts, "task": tasks, "job": 1}[self.per]
        return self.number * max(times, 1)


def requested_gpus(text: str) -> GpuRequest | None:
    """Return the GPUs that a resource requirement or `-gpu` text requests; None = no GPUs."""
    found = [
        match for part in _USAGE_PART.findall(text) for match in _USAGE.findall(part)
    ] or _GPU_OPTION.findall(text)
    if not found:
        return None
    number, unit = found[0]
    per = {"task": "task", "slot": "task", "job": "job"}.get(unit, "host")
    return GpuRequest(float(number), per, len(found))
