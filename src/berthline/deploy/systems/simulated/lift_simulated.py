"""Calls to a simulated cluster in another process, with the standard library alone.

The guard of a controller uses `lift`; the adapter uses `call`.
"""

from __future__ import annotations

import json
import socket
from typing import Any


def call(path: str, request: bytes, *, timeout: float = 10.0) -> bytes:
    """Send one line and return the line that answers it.

    Raises:
        OSError: there is no answer, or only a part of one.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.settimeout(timeout)
        channel.connect(path)
        channel.sendall(request + b"\n")
        answer = bytearray()
        while not answer.endswith(b"\n"):
            part = channel.recv(1 << 20)
            if not part:
                raise OSError("the answer is cut off")
            answer += part
    return bytes(answer)


def lift(arguments: dict[str, Any]) -> tuple[int, int]:
    """Lift every hold of ours; return how many were lifted and how many are left.

    Args:
        arguments: `socket`: where the cluster listens.
    """
    answer = json.loads(call(str(arguments["socket"]), b'{"call": "lift"}'))
    return int(answer["lifted"]), int(answer["left"])
