"""Presets: named clusters of published traces and systems.

Only nodes with GPUs are listed. CPUs and memory are limits where the source states them. Node ids
follow the order of the groups, which decides ties: smaller nodes come first, so that a first-fit
rule keeps large nodes whole.
"""

from __future__ import annotations

import dataclasses

from berthline.model.cluster import Cluster, NodeGroup


@dataclasses.dataclass(frozen=True)
class Preset:
    """A cluster with a name.

    Attributes:
        name: its name as a CLUSTER argument.
        description: one line for lists: what it is, and which choice was made.
        source: where the figures are from.
        groups: its nodes.
    """

    name: str
    description: str
    source: str
    groups: tuple[NodeGroup, ...]

    @property
    def num_nodes(self) -> int:
        """How many nodes it has."""
        return sum(group.count for group in self.groups)

    @property
    def total_gpus(self) -> int:
        """How many GPUs it has."""
        return sum(group.count * group.gpus for group in self.groups)

    def cluster(self) -> Cluster:
        """Return the cluster itself."""
        return Cluster.from_groups(self.groups, name=self.name)


def _nodes(
    count: int, gpus: int, gpu_type: str, cpus: int = 0, memory_gib: int = 0, pool: str = ""
) -> NodeGroup:
    return NodeGroup(
        count=count,
        gpus=gpus,
        gpu_type=gpu_type,
        cpus=cpus,
        memory_mib=memory_gib * 1024,
        pool=pool,
    )


_VENUS_NODES = {
    "vcEwI": 9,
    "vcWoR": 8,
    "vcHvQ": 8,
    "vcvGl": 20,
    "vc8Gr": 6,
    "vcKeu": 12,
    "vcKrE": 4,
    "vcYVn": 11,
    "vchbv": 9,
    "vcLTP": 8,
    "vcJLV": 2,
    "vchA3": 7,
    "vcJkd": 2,
    "vcsBT": 8,
    "vcefl": 10,
    "vcvlY": 8,
    "vcgkz": 1,
}
"""Nodes of each virtual cluster of Venus: its GPU quota on 2020-07-07, divided by 8. The quotas
change; of those that add up to the paper's 1,064 GPUs, these were in force longest."""

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "philly",
            "Microsoft Philly, 2017: the 552 machines of the publisher's list, the 2,490 GPUs of "
            "the paper; the GPU model is not stated, P100 is a guess",
            "machine list of msr-fiddle/philly-traces; Jeon et al., ATC 2019. A list inferred from "
            "the GPU log (Qinghao-Hu/Philly-Trace-Scripts) has 3,205 GPUs on 539 machines instead",
            (_nodes(321, 2, "P100"), _nodes(231, 8, "P100")),
        ),
        Preset(
            "philly-rltune",
            "the 192 GPUs on which RLTune replays Philly",
            "dshruti20/RLTune; there a job stays on one of the two kinds of nodes, and a job "
            "with more than 4 GPUs on the large kind",
            (_nodes(16, 2, "P100"), _nodes(20, 8, "P100")),
        ),
        Preset(
            "helios-venus",
            "SenseTime Helios, cluster Venus, 2020: 133 nodes of 8 V100, each owned by one of 17 "
            "virtual clusters, as of 2020-07-07; without them it is uniform:133x8:V100",
            "quota table of S-Lab-System-Group/HeliosData; Hu et al., SC 2021",
            tuple(_nodes(count, 8, "V100-32", pool=name) for name, count in _VENUS_NODES.items()),
        ),
        Preset(
            "helios-rltune",
            "the 136 GPUs on which RLTune replays Helios, in five virtual clusters named 0 to 4",
            "dshruti20/RLTune",
            tuple(
                _nodes(count, 8, "V100-32", pool=str(number))
                for number, count in enumerate((6, 4, 3, 2, 2))
            ),
        ),
        Preset(
            "alibaba-pai",
            "Alibaba PAI, 2020: 1,814 nodes with 6,742 GPUs of five types (MISC is a guess); the "
            "trace's V100 is the one with 16 GB",
            "machine table of Alibaba cluster-trace-gpu-v2020; Weng et al., NSDI 2022",
            (
                _nodes(798, 2, "P100", 64, 512),
                _nodes(497, 2, "T4", 96, 512),
                _nodes(280, 8, "MISC", 96, 512),
                _nodes(45, 8, "V100-16", 96, 384),
                _nodes(59, 8, "V100-16", 96, 512),
                _nodes(135, 8, "V100-32", 96, 384),
            ),
        ),
        Preset(
            "alibaba-pai-rltune",
            "the 254 GPUs of five types on which RLTune replays PAI",
            "dshruti20/RLTune",
            (
                _nodes(8, 2, "T4"),
                _nodes(8, 8, "MISC"),
                _nodes(15, 2, "P100"),
                _nodes(10, 8, "V100-16"),
                _nodes(8, 8, "V100-32"),
            ),
        ),
        Preset(
            "openb-2023",
            "Alibaba openb, 2023: 1,213 nodes with 6,212 GPUs of seven types (G2 and G3 are "
            "guesses)",
            "node list of Alibaba cluster-trace-gpu-v2023; Weng et al., ATC 2023",
            (
                _nodes(19, 1, "V100-16", 8, 32),
                _nodes(3, 1, "P100", 8, 60),
                _nodes(2, 1, "A10", 128, 1024),
                _nodes(2, 2, "P100", 8, 60),
                _nodes(107, 2, "P100", 16, 120),
                _nodes(22, 2, "P100", 64, 256),
                _nodes(387, 2, "T4", 104, 512),
                _nodes(28, 4, "V100-16", 32, 128),
                _nodes(9, 4, "V100-32", 48, 368),
                _nodes(17, 4, "T4", 96, 384),
                _nodes(7, 8, "V100-16", 64, 256),
                _nodes(1, 8, "V100-16", 82, 336),
                _nodes(21, 8, "V100-32", 96, 768),
                _nodes(549, 8, "G2", 96, 384),
                _nodes(39, 8, "G3", 128, 768),
            ),
        ),
        Preset(
            "openb-small",
            "a hundredth of openb-2023: 11 nodes with 58 GPUs of four types",
            "node list of Alibaba cluster-trace-gpu-v2023, scaled down",
            (
                _nodes(1, 2, "P100", 16, 120),
                _nodes(4, 2, "T4", 104, 512),
                _nodes(1, 8, "V100-32", 96, 768),
                _nodes(5, 8, "G2", 96, 384),
            ),
        ),
        Preset(
            "spot-2026",
            "Alibaba spot, 2026: 4,278 nodes with 10,412 GPUs of six types (the two series are "
            "guesses)",
            "node list of Alibaba cluster-trace-v2026-spot-gpu",
            (
                _nodes(2, 1, "A10", 126),
                _nodes(2492, 1, "A10", 128),
                _nodes(1, 1, "GPU-series-1", 128),
                _nodes(901, 1, "GPU-series-1", 192),
                _nodes(10, 4, "GPU-series-1", 192),
                _nodes(77, 8, "GPU-series-1", 192),
                _nodes(122, 8, "GPU-series-2", 192),
                _nodes(432, 8, "A100-80", 128),
                _nodes(22, 8, "A800", 128),
                _nodes(219, 8, "H800", 192),
            ),
        ),
        Preset(
            "acme-seren",
            "Acme, cluster Seren, 2023: 286 nodes of 8 A100 for language models",
            "Hu et al., NSDI 2024; from memory, not checked against a copy",
            (_nodes(286, 8, "A100-80", 128, 1024),),
        ),
        Preset(
            "acme-kalos",
            "Acme, cluster Kalos, 2023: 302 nodes of 8 A100 for language models",
            "Hu et al., NSDI 2024; from memory, not checked against a copy",
            (_nodes(302, 8, "A100-80", 128, 2048),),
        ),
        Preset(
            "drl-scheduler",
            "the 56 GPUs of four types of the D3QN and SAC scheduler; the original has no nodes, "
            "here nodes have 4 GPUs; fastest type (single precision) first, as the original "
            "fills them",
            "HenryAJX/DRL_Scheduler",
            (
                _nodes(3, 4, "RTX4090"),
                _nodes(4, 4, "A100-80"),
                _nodes(4, 4, "V100-32"),
                _nodes(3, 4, "T4"),
            ),
        ),
        Preset(
            "drl-scheduler-types",
            "the same 56 GPUs without nodes, as in the original: each type is one node",
            "HenryAJX/DRL_Scheduler",
            (
                _nodes(1, 12, "RTX4090"),
                _nodes(1, 16, "A100-80"),
                _nodes(1, 16, "V100-32"),
                _nodes(1, 12, "T4"),
            ),
        ),
        Preset(
            "four-types",
            "32 GPUs of four types whose speeds differ by a factor of up to ten, on nodes of 4",
            "made for the tasks of Berthline",
            (
                _nodes(2, 4, "T4"),
                _nodes(3, 4, "V100-32"),
                _nodes(2, 4, "A100-80"),
                _nodes(1, 4, "H100"),
            ),
        ),
        Preset(
            "thrifty-types",
            "24 GPUs of three types on nodes of 4; the slowest does most work per watt",
            "made for the tasks of Berthline",
            (
                _nodes(2, 4, "T4"),
                _nodes(2, 4, "V100-32"),
                _nodes(2, 4, "A100-80"),
            ),
        ),
        Preset(
            "lsf",
            "50 hosts of the LSF host picker, with its CPU cores as GPUs: 16 to 32 of them and "
            "64 to 128 GiB; the original draws its hosts at random, here all sizes are about "
            "equally frequent",
            "LoboShao/lsf_autohost, first generation",
            tuple(
                _nodes(count, cores, "V100-32", memory_gib=memory)
                for cores in (16, 20, 24, 28, 32)
                for memory, count in ((64, 4), (96, 3), (128, 3))
            ),
        ),
        Preset(
            "lsf-15",
            "15 such hosts, each size once; they are listed in mixed order, so that the first is "
            "not the smallest",
            "LoboShao/lsf_autohost, first generation",
            tuple(
                _nodes(1, cores, "V100-32", memory_gib=memory)
                for memory in (96, 128, 64)
                for cores in (24, 32, 16, 28, 20)
            ),
        ),
    )
}
"""Every preset by its name."""
