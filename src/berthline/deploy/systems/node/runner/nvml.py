"""NVML, NVIDIA's management library, by ctypes: what the GPUs of this node are and do."""

from __future__ import annotations

import ctypes
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
_NAME_BYTES = 96
_GPU_TEMPERATURE = 0


class NvmlError(Exception):
    """NVML is not there, or a call failed."""


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class Nvml:
    """NVML, initialised.

    Raises:
        NvmlError: there is no library, no driver or no permission.
    """

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise NvmlError(f"{LIBRARY} cannot be loaded: {error}") from None
        self._call("nvmlInit_v2")
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        self._handles = []
        for index in range(count.value):
            handle = ctypes.c_void_p()
            self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            self._handles.append(handle)

    def _call(self, name: str, *arguments: Any) -> None:
        function = getattr(self._library, name, None)
        if function is None:
            raise NvmlError(f"{name} is not in {LIBRARY}")
        if code := function(*arguments):
            raise NvmlError(f"{name} failed with {code}")

    def _text(self, name: str, handle: ctypes.c_void_p) -> str:
        text = ctypes.create_string_buffer(_NAME_BYTES)
        try:
            self._call(name, handle, text, ctypes.c_uint(_NAME_BYTES))
        except NvmlError:
            return ""
        return text.value.decode("utf-8", "replace")

    def names(self) -> list[tuple[str, str]]:
        """Return (name, UUID) of each GPU; empty texts where it does not tell."""
        return [
            (self._text("nvmlDeviceGetName", handle), self._text("nvmlDeviceGetUUID", handle))
            for handle in self._handles
        ]

    def sample(self) -> list[dict[str, float | None]]:
        """Return what each GPU does now; None where it does not tell."""
        return [self._sample(handle) for handle in self._handles]

    def _sample(self, handle: ctypes.c_void_p) -> dict[str, float | None]:
        use, memory = _Utilization(), _Memory()
        power, heat = ctypes.c_uint(), ctypes.c_uint()
        has_use = self._asks("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(use))
        has_memory = self._asks("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
        has_power = self._asks("nvmlDeviceGetPowerUsage", handle, ctypes.byref(power))
        has_heat = self._asks(
            "nvmlDeviceGetTemperature", handle, _GPU_TEMPERATURE, ctypes.byref(heat)
        )
        return {
            "utilization": use.gpu / 100 if has_use else None,
            "memory_used_mib": float(memory.used >> 20) if has_memory else None,
            "memory_total_mib": float(memory.total >> 20) if has_memory else None,
            "power_w": power.value / 1000 if has_power else None,
            "temperature_c": float(heat.value) if has_heat else None,
        }

    def _asks(self, name: str, *arguments: Any) -> bool:
        try:
            self._call(name, *arguments)
        except NvmlError:
            return False
        return True
