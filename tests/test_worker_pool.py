"""A worker pool: setup, answers, errors as text, and processes that end."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

import pytest

from berthline.errors import ConfigError, SimulationError
from berthline.worker_pool import ErrorText, Worker, WorkerPool, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def main() -> None:
    """Run as a worker that multiplies by its setup."""
    serve(_multiplier)


def _multiplier(factor: int) -> Callable[[int], Iterator[int]]:
    def answers(count: int) -> Iterator[int]:
        if count < 0:
            os._exit(7)
        for number in range(count):
            print("not an answer")
            yield factor * number

    return answers


def given(messages: list[Any]) -> Callable[[Worker], Any]:
    left = iter(messages)
    return lambda _: next(left, None)


def only_for(one: Worker) -> Callable[[Worker], Any]:
    left = iter([1])
    return lambda worker: next(left, None) if worker is one else None


def test_every_message_is_answered_by_one_worker() -> None:
    with WorkerPool(__name__, 10, 2) as pool:
        answers = [answer for _, answer in pool.answers(given([3, 1, 0, 2]))]
        assert sorted(answers) == [0, 0, 0, 10, 10, 20]
        # The processes keep running, with their setup.
        assert [answer for _, answer in pool.answers(given([2]))] == [0, 10]
        assert all(worker.process.poll() is None for worker in pool.workers)
    assert all(worker.process.poll() is not None for worker in pool.workers)


def test_a_worker_that_ends_is_an_error() -> None:
    with (
        WorkerPool(__name__, 1, 1) as pool,
        pytest.raises(SimulationError, match=r"a worker process ended .*\(exit code 7\)"),
    ):
        list(pool.answers(given([2, -1])))


def test_a_worker_that_ended_while_idle_is_an_error() -> None:
    with WorkerPool(__name__, 1, 2) as pool:
        ended, other = pool.workers
        ended.process.kill()
        for _ in range(20):  # its end arrives between the answers of the other one
            list(pool.answers(only_for(other)))
            if ended.has_ended:
                break
        with pytest.raises(SimulationError, match="signal 9"):
            list(pool.answers(given([1, 1, 1])))


def test_no_worker_has_no_answers() -> None:
    with WorkerPool(__name__, 1, 0) as pool:
        assert not list(pool.answers(lambda _: next(itertools.count())))


def test_errors_arrive_as_they_were() -> None:
    sent = ConfigError("what", where="where", expected="expected", hint="hint")
    arrived = ErrorText.of(sent).error()
    assert isinstance(arrived, ConfigError)
    assert str(arrived) == str(sent)


def test_unexpected_errors_keep_their_traceback() -> None:
    try:
        raise ZeroDivisionError("of this test")
    except ZeroDivisionError as error:
        arrived = ErrorText.of(error).error()
    assert str(arrived) == "ZeroDivisionError in a worker process"
    assert "of this test" in arrived.__notes__[0]
