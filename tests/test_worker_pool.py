"""A worker pool: setup, answers, errors as text, and processes that end."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError
from berthline.worker_pool import Attempts, ErrorText, Worker, WorkerPool, serve

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


def not_lost(_: Worker, how: str) -> None:
    raise AssertionError(how)


def _next(left: list[int]) -> int | None:
    return left.pop(0) if left else None


def only_for(one: Worker) -> Callable[[Worker], Any]:
    left = iter([1])
    return lambda worker: next(left, None) if worker is one else None


def test_every_message_is_answered_by_one_worker() -> None:
    with WorkerPool(__name__, 10, 2) as pool:
        answers = [answer for _, answer in pool.answers(given([3, 1, 0, 2]), not_lost)]
        assert sorted(answers) == [0, 0, 0, 10, 10, 20]
        # The processes keep running, with their setup.
        assert [answer for _, answer in pool.answers(given([2]), not_lost)] == [0, 10]
        assert all(worker.process.poll() is None for worker in pool.workers)
    assert all(worker.process.poll() is not None for worker in pool.workers)


def test_a_worker_that_ends_is_replaced_and_its_message_can_be_sent_again() -> None:
    told: list[tuple[Worker, str]] = []
    left = [2, -1, 3]
    with WorkerPool(__name__, 1, 1) as pool:
        [first] = pool.workers

        def lost(worker: Worker, how: str) -> None:
            told.append((worker, how))
            left.insert(0, 1)

        answers = [answer for _, answer in pool.answers(lambda _: _next(left), lost)]
        assert answers == [0, 1, 0, 0, 1, 2]
        assert told == [(first, "exit code 7")]
        assert pool.workers != [first]


def test_a_worker_that_ended_while_idle_is_replaced() -> None:
    with WorkerPool(__name__, 1, 2) as pool:
        ended, other = pool.workers
        ended.process.kill()
        for _ in range(20):  # its end arrives between the answers of the other one
            list(pool.answers(only_for(other), not_lost))
            if ended not in pool.workers:
                break
        answers = [answer for _, answer in pool.answers(given([1, 1, 1]), lambda *_: None)]
        assert set(answers) == {0}
        assert ended not in pool.workers


def test_work_is_given_up_after_three_attempts() -> None:
    attempts = Attempts()
    found = [attempts.lost("a run", "signal 9", name="its name") for _ in range(3)]
    assert found[:2] == [None, None]
    assert "ended 3 times" in str(found[2])
    assert "its name" in str(found[2])
    assert attempts.lost("another", "signal 9", name="") is None


def test_no_worker_has_no_answers() -> None:
    with WorkerPool(__name__, 1, 0) as pool:
        assert not list(pool.answers(lambda _: next(itertools.count()), not_lost))


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
