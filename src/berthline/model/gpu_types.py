"""GPU types: what the simulator and the energy and utilisation metrics know about each.

Figures are the vendors' published ones for the server parts: dense half-precision (tensor core,
where there is one) TFLOPS, memory, board power limit. Idle power is the level at which the parts
rest with a driver loaded and no process running, rounded; measure your own and add a type to the
cluster file when it matters.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class GpuType:
    """One kind of GPU."""

    name: str
    tflops: float
    """Dense half-precision TFLOPS."""
    memory_mib: int
    idle_w: float
    peak_w: float


GPU_TYPES: dict[str, GpuType] = {
    kind.name: kind
    for kind in (
        GpuType("T4", 65.0, 16_384, 10.0, 70.0),
        GpuType("P100", 21.2, 16_384, 28.0, 300.0),
        GpuType("V100", 125.0, 32_768, 40.0, 300.0),
        GpuType("A10", 125.0, 24_576, 16.0, 150.0),
        GpuType("A100", 312.0, 81_920, 52.0, 400.0),
        GpuType("H100", 989.0, 81_920, 68.0, 700.0),
    )
}
