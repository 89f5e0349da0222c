"""GPUs that LSF jobs request, from resource requirements and `bsub -gpu` texts.

    select[type == any] order[r15s:pg] rusage[ngpus_physical=2.00/host]
    num=2/task:mode=exclusive_process:j_exclusive=yes

A number counts for each host the job runs on, unless `/task` (or `/slot`) or `/job` follows it.
`gmodel=` names the model that the job must have, with or without its memory:

    num=1:gmodel=TeslaV100_SXM2_32GB    num=1:gmodel=K80-12G
"""

from __future__ import annotations

import dataclasses
import re

from berthline.model.gpu_types import GPU_TYPES, canonical_name

# ngpus_physical, and names in older releases and at some sites: ngpus, ngpus_shared, ngpus_excl_p.
_USAGE = re.compile(r"\bngpus(?:_\w+)?\s*=\s*(\d+(?:\.\d+)?)(?:/(\w+))?")
_USAGE_PART = re.compile(r"rusage\[([^\]]*)\]")
_MODEL = re.compile(r"\bgmodel=[\"']?(\w*[A-Za-z]\w*(?:-\d+[GM])?)")
_MAKER = re.compile(r"^(?:nvidia|tesla)[_-]?(?=\w)", re.IGNORECASE)
_MEMORY = re.compile(r"^([A-Z]+\d+)\b.*-(\d+)GB?$", re.IGNORECASE)
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


def requested_model(text: str) -> str | None:
    """Return the GPU model that a `-gpu` text names, in Berthline's spelling if known; None = any.

    Example:
        >>> requested_model("num=2:gmodel=TeslaV100_SXM2_32GB:mode=shared")
        'V100-32'
        >>> requested_model("num=1:gmodel=K80-12G")
        'K80-12G'
    """
    found = _MODEL.search(text)
    if found is None:
        return None
    model = _MAKER.sub("", found[1].replace("_", "-"))
    known = canonical_name(model)
    memory = _MEMORY.match(model)
    if known not in GPU_TYPES and memory is not None:
        known = canonical_name(f"{memory[1]}-{memory[2]}")
    return known if known in GPU_TYPES else model
