"""Ctrl-C and SIGTERM as a wish to stop: work is brought to a point it can be gone on from."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether somebody wants an end; a second Ctrl-C is not waited for.

    In another thread than the first nothing is caught, since Python allows it nowhere else.
    """
    asked = threading.Event()

    def ask(number: int, _: FrameType | None) -> None:
        if asked.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
