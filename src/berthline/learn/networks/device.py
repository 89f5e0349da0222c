"""Where networks encode observations: on the CPU, or on a CUDA device.

The body of a network, which reads the tables, runs on the device. Environments, scores and losses
stay on the CPU: they are small, and every algorithm works with them as it is.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from berthline.errors import ConfigError
from berthline.learn.networks.packed_rows import Packed

if TYPE_CHECKING:
    from collections.abc import Iterator

CPU = "cpu"


class _Chosen:
    device = CPU


def check_device(text: str) -> None:
    """Raise unless networks can run on a device.

    Raises:
        ConfigError: it is neither cpu nor cuda, or torch finds no such device.
    """
    if text == CPU:
        return
    kind, _, number = text.partition(":")
    if kind != "cuda" or (number and not number.isdecimal()):
        raise ConfigError(f"the device is {text!r}", expected="cpu, cuda or cuda:NUMBER")
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= there:
        devices = f"{there} CUDA devices" if there else "no CUDA device"
        raise ConfigError(
            f"the device is {text!r}, and torch {torch.__version__} finds {devices}",
            expected="cpu" if not there else f"cpu, or cuda:0 to cuda:{there - 1}",
            hint="a torch built for CUDA and a driver are needed; see berthline doctor",
        )


@contextlib.contextmanager
def networks_on(device: str) -> Iterator[None]:
    """Let networks that are made meanwhile encode observations on a device."""
    before, _Chosen.device = _Chosen.device, device
    try:
        yield
    finally:
        _Chosen.device = before


def place(body: torch.nn.Module) -> None:
    """Move the body of a network to the chosen device, with its inputs and outputs."""
    device = _Chosen.device
    if device == CPU:
        return
    body.to(device)
    body.register_forward_pre_hook(lambda _, given: tuple(_moved(one, device) for one in given))
    body.register_forward_hook(lambda _, __, found: tuple(_moved(one, CPU) for one in found))


def _moved(given: Any, device: str) -> Any:
    return given.to(device) if isinstance(given, torch.Tensor | Packed) else given
