"""Signals that stop training: Ctrl-C (SIGINT) and SIGTERM."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SAVING = (
    b"\nstopping: the iteration is finished and saved; a second Ctrl-C stops at once, and training"
    b" resumes from the last checkpoint\n"
)


class StoppedError(BaseException):
    """A signal that ends the command; not an Exception, so that no code takes it for a fault.

    Attributes:
        signal: its number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


class StopRequest:
    """Whether a signal has asked training to stop; call it to find out.

    Attributes:
        signal: its number; None = none has come.
        is_polled: whether it has been called. Before that there is nothing to save.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self.is_polled = False

    def __call__(self) -> bool:
        """Return whether to save and stop."""
        self.is_polled = True
        return self.signal is not None


@contextmanager
def stop_signals(*, at_once: bool = False) -> Iterator[StopRequest]:
    """Yield a request that receives the stop signal; a second signal ends the run at once.

    Args:
        at_once: the first one does so too: there is nothing to save.

    Raises:
        StoppedError: the signal, if it ends the run at once.
    """
    request = StopRequest()

    def handle(number: int, _: object) -> None:
        is_first, request.signal = request.signal is None, number
        if at_once or not request.is_polled or not is_first:
            # Where Python cannot raise (in a destructor), the request still stands.
            raise StoppedError(number)
        os.write(2, _SAVING)  # not print: the signal may have come in the middle of one

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
