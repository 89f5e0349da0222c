"""Pods of Alibaba's openb trace for packing: what each asks for, without its times.

`read_pods` reads them from the publisher's list; `generate_pods` draws pods of similar shapes if
the list is not available. CPUs are kept as the thousandths of a core that the trace states: most
pods ask for parts of a core, and rounding up to whole cores would fill the nodes too early.
`packing_cluster` therefore counts the CPUs of its nodes in thousandths too.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.cluster import Cluster
from berthline.model.workload import WHOLE_GPU, Workload
from berthline.traces.generators.pods import SHAPES, SIZE_SHARES, SIZES

if TYPE_CHECKING:
    from pathlib import Path

Ints = npt.NDArray[np.int64]

CLUSTER = "openb-2023"
MILLI = 1000
_NEVER_ENDS = 1e9
_COLUMNS = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


@dataclasses.dataclass(frozen=True, eq=False)
class Pods:
    """What pods ask for, one row each.

    Attributes:
        gpus: whole GPUs, or 1 for a part of one; 0 = none.
        gpu_milli: thousandths of each GPU; WHOLE_GPU for pods without one.
        cpu_milli: thousandths of CPU cores.
        memory_mib: memory.
        gpu_types: index into `gpu_type_sets`; -1 = any.
        gpu_type_sets: as in a Workload.
        source: where they come from.
    """

    gpus: Ints
    gpu_milli: Ints
    cpu_milli: Ints
    memory_mib: Ints
    gpu_types: npt.NDArray[np.int32]
    gpu_type_sets: tuple[str, ...]
    source: str

    def __len__(self) -> int:
        return len(self.gpus)

    @property
    def gpu_amount(self) -> npt.NDArray[np.float64]:
        """GPUs of each pod, parts included."""
        return self.gpus * self.gpu_milli / float(WHOLE_GPU)

    def workload(
        self, rows: Ints, *, submit: npt.ArrayLike | None = None, run: npt.ArrayLike | None = None
    ) -> Workload:
        """Return these rows as jobs.

        Args:
            rows: which pods, in order of submission.
            submit: when each is submitted; None = one every second.
            run: how long each runs; None = it never ends.
        """
        return Workload.from_columns(
            submit=np.arange(len(rows)) if submit is None else submit,
            run=_NEVER_ENDS if run is None else run,
            gpus=self.gpus[rows],
            gpu_milli=self.gpu_milli[rows],
            cpus=self.cpu_milli[rows],
            memory_mib=self.memory_mib[rows],
            gpu_types=self.gpu_types[rows],
            gpu_type_sets=self.gpu_type_sets,
            name="openb pods",
        )


def packing_cluster() -> Cluster:
    """Return the cluster of the trace, with CPUs counted in thousandths of a core."""
    cluster = Cluster.parse(CLUSTER)
    return dataclasses.replace(cluster, cpus=cluster.cpus * np.int32(MILLI))


def read_pods(path: Path) -> Pods:
    """Return all pods of a publisher's list, including those without GPUs.

    Raises:
        TraceError: the file is not a pod list, or a line makes no sense.
    """
    from berthline.traces.reading.csv.csv_table import CsvTable
    from berthline.traces.reading.request_columns import gpu_type_sets

    table = CsvTable(path, required=(*_COLUMNS, "gpu_spec"), numbers=_COLUMNS, words=("gpu_spec",))
    cpu_milli, memory_mib, gpus, gpu_milli = (
        table.numbers(name, lowest=0, highest=2**31 - 1, whole=True) for name in _COLUMNS
    )
    types, sets = gpu_type_sets(table.text("gpu_spec"), gpus=gpus)
    return Pods(
        gpus=gpus.astype(np.int64),
        gpu_milli=np.where(gpus > 0, gpu_milli, WHOLE_GPU).astype(np.int64),
        cpu_milli=cpu_milli.astype(np.int64),
        memory_mib=memory_mib.astype(np.int64),
        gpu_types=types,
        gpu_type_sets=sets,
        source=path.name,
    )


def generate_pods(count: int, seed: int) -> Pods:
    """Return pods drawn from `SHAPES`, some with more or fewer CPUs and memory (`SIZES`)."""
    weight, gpus, gpu_milli, cpu_milli, memory_mib = np.array(SHAPES, np.int64).T
    generator = np.random.Generator(np.random.Philox(seed))
    drawn = generator.choice(len(SHAPES), size=count, p=weight / weight.sum())
    size = generator.choice(SIZES, size=count, p=SIZE_SHARES)
    return Pods(
        gpus=gpus[drawn],
        gpu_milli=np.where(gpus > 0, gpu_milli, WHOLE_GPU)[drawn],
        cpu_milli=np.rint(cpu_milli[drawn] * size).astype(np.int64),
        memory_mib=np.rint(memory_mib[drawn] * size).astype(np.int64),
        gpu_types=np.full(count, -1, np.int32),
        gpu_type_sets=(),
        source=f"{count:,} generated pods",
    )
