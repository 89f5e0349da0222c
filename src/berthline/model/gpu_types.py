"""GPU types: what the simulator and the energy and utilisation metrics know about each.

Figures are the vendor's published ones for the server parts: dense TFLOPS (half precision on
tensor cores where there are any, and single precision), memory, board power limit. Datasheets do
not state idle power: it is the rounded level with a driver loaded and no process running. Types
that a publisher hides behind a made-up name carry the figures of a likely part and `is_guess`.
Measure your own and add a type to the cluster file when it matters.

One GPU has many spellings. `gpu_type` finds a type under any of them, and `type_names` reads a
job's set of types, so that a job's `V100M32` finds a node's `V100`.
"""

from __future__ import annotations

import dataclasses
import math

from berthline.errors import ConfigError, unknown_name


@dataclasses.dataclass(frozen=True)
class GpuType:
    """One kind of GPU.

    Attributes:
        name: its name, the same in clusters, workloads and reports.
        tflops: dense half-precision TFLOPS; weighs utilisation.
        memory_mib: memory of one GPU.
        idle_w: power at rest.
        peak_w: power limit of one GPU.
        tflops_fp32: single-precision TFLOPS outside tensor cores; None = not stated.
        source: where the figures are from; for a guess, why this one.
        is_guess: the publisher of the trace does not say what the GPU is.
        measured_speed: how fast jobs run on it, V100 = 1, where it was measured.
    """

    name: str
    tflops: float
    memory_mib: int
    idle_w: float
    peak_w: float
    tflops_fp32: float | None = None
    source: str = ""
    is_guess: bool = False
    measured_speed: float | None = None

    @property
    def speed(self) -> float:
        """How fast jobs run on it; V100 = 1.

        Unless measured, the geometric mean of its half- and single-precision TFLOPS relative to a
        V100: training gains less from tensor cores than their TFLOPS promise, and more than from
        single precision alone.
        """
        if self.measured_speed is not None:
            return self.measured_speed
        half = self.tflops / _V100_TFLOPS
        if self.tflops_fp32 is None:
            return half
        return math.sqrt(half * (self.tflops_fp32 / _V100_TFLOPS_FP32))


_V100_TFLOPS, _V100_TFLOPS_FP32 = 125.0, 15.7
_A800 = "NVIDIA A100 datasheet, SXM 80 GB: the A800 differs in its NVLink only"
_H800 = "NVIDIA H100 datasheet, SXM5: the H800 differs in its NVLink and double precision only"
_RTX4090 = "NVIDIA Ada architecture whitepaper; half precision with single-precision accumulation"
_G2 = (
    "guess: the openb trace hides the model; 8 of them beside 96 cores and 384 GiB look like"
    " inference hosts, so these are the figures of the A10"
)
_G3 = (
    "guess: the openb trace hides the model; its few nodes have the most cores and memory, so"
    " these are the figures of the A100 40 GB"
)
_MISC = (
    "guess: the PAI trace puts older generations under one name; these are the figures of one of"
    " the two GPUs of a Tesla M60, which is no faster in half precision"
)
_SERIES_1 = (
    "guess: the spot trace hides the model; mostly single GPUs in recent 192-core hosts, so these"
    " are the figures of the L20"
)
_SERIES_2 = (
    "guess: the spot trace hides the model; 8 of them in recent 192-core hosts, as the H800, so"
    " these are the figures of the H20"
)

GPU_TYPES: dict[str, GpuType] = {
    kind.name: kind
    for kind in (
        GpuType("T4", 65.0, 16_384, 10.0, 70.0, 8.1, "NVIDIA T4 datasheet"),
        GpuType("P100", 21.2, 16_384, 28.0, 300.0, 10.6, "NVIDIA Tesla P100 datasheet, NVLink"),
        GpuType("V100-16", 125.0, 16_384, 40.0, 300.0, 15.7, "NVIDIA V100 datasheet, SXM2 16 GB"),
        GpuType("V100-32", 125.0, 32_768, 40.0, 300.0, 15.7, "NVIDIA V100 datasheet, SXM2 32 GB"),
        GpuType("A10", 125.0, 24_576, 16.0, 150.0, 31.2, "NVIDIA A10 datasheet"),
        GpuType("A100-40", 312.0, 40_960, 52.0, 400.0, 19.5, "NVIDIA A100 datasheet, SXM 40 GB"),
        GpuType("A100-80", 312.0, 81_920, 52.0, 400.0, 19.5, "NVIDIA A100 datasheet, SXM 80 GB"),
        GpuType("A800", 312.0, 81_920, 52.0, 400.0, 19.5, _A800),
        GpuType("H100", 989.0, 81_920, 68.0, 700.0, 67.0, "NVIDIA H100 datasheet, SXM5"),
        GpuType("H800", 989.0, 81_920, 68.0, 700.0, 67.0, _H800),
        GpuType("RTX4090", 165.2, 24_576, 20.0, 450.0, 82.6, _RTX4090),
        GpuType("G2", 125.0, 24_576, 16.0, 150.0, 31.2, _G2, is_guess=True),
        GpuType("G3", 312.0, 40_960, 52.0, 400.0, 19.5, _G3, is_guess=True),
        GpuType("MISC", 4.8, 8_192, 15.0, 150.0, 4.8, _MISC, is_guess=True),
        GpuType("GPU-series-1", 119.5, 49_152, 20.0, 275.0, 59.8, _SERIES_1, is_guess=True),
        GpuType("GPU-series-2", 148.0, 98_304, 60.0, 400.0, 44.0, _SERIES_2, is_guess=True),
    )
}
"""Every GPU type by its name. Other spellings are in `ALIASES`."""

REFERENCE_TYPE = "V100-32"
"""The GPU type of a workload's run times, unless it says otherwise."""

RECORDED = "recorded"
"""In place of a GPU type: it is not known, so run times are those of whatever GPUs jobs run on."""

ALIASES: dict[str, str] = {
    "V100": "V100-32",
    "A100": "A100-80",
    "V100M16": "V100-16",
    "V100M32": "V100-32",
    "V100-SXM2-16GB": "V100-16",
    "V100-SXM2-32GB": "V100-32",
    "A100-SXM4-40GB": "A100-40",
    "A100-SXM4-80GB": "A100-80",
    "A800-SXM4-80GB": "A800",
    "H100-SXM5-80GB": "H100",
    "H800-SXM5-80GB": "H800",
    "RTX-4090": "RTX4090",
    "P100-SXM2-16GB": "P100",
}
"""Other spellings, from traces and node lists. Where `V100` in a trace means the V100 with 16 GB
(Alibaba PAI), its reader writes `V100-16`."""

_BY_FOLDED_NAME = {name.casefold(): name for name in (*GPU_TYPES, *ALIASES)}
_VENDOR_PREFIXES = ("nvidia-", "tesla-", "geforce-")


def canonical_name(name: str) -> str:
    """Return the name in `GPU_TYPES` of a GPU under any spelling; an unknown name is kept.

    Case, blanks and a vendor's name in front do not matter.

    Example:
        >>> canonical_name("NVIDIA A100-SXM4-80GB")
        'A100-80'
    """
    folded = "-".join(name.casefold().split())
    for prefix in _VENDOR_PREFIXES:
        folded = folded.removeprefix(prefix)
    found = _BY_FOLDED_NAME.get(folded, name)
    return ALIASES.get(found, found)


def gpu_type(name: str) -> GpuType:
    """Return the GPU type of that name, under any spelling.

    Raises:
        ConfigError: there is no such type.
    """
    found = GPU_TYPES.get(canonical_name(name))
    if found is None:
        what, expected, hint = unknown_name("GPU type", name, (*GPU_TYPES, *ALIASES))
        raise ConfigError(what, expected=expected, hint=hint)
    return found


def type_names(text: str) -> frozenset[str]:
    """Return the GPU types in a set such as `"A100|V100M32"`: as written, and by canonical name.

    A node is in the set if its type's name is among the returned names: this finds the types of the
    table and those that a cluster file defines.
    """
    written = [name.strip() for name in text.split("|")]
    return frozenset(written) | frozenset(map(canonical_name, written))
