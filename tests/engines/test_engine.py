"""Engines: names, numbers of workers, this process, and errors that need no cluster."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import pytest

from berthline.engines import engine as engines
from berthline.engines.engine import Engine, ThisProcess
from berthline.errors import ClusterError, ConfigError, MissingExtraError
from berthline.worker_pool import WorkerPool, serve, usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def main() -> None:
    """Run as a worker."""
    serve(answers_of)


def answers_of(factor: int) -> Callable[[int], Iterator[int]]:
    """Return what multiplies by the setup; a negative message takes forever."""

    def answers(number: int) -> Iterator[int]:
        if number < 0:
            time.sleep(600)
        yield factor * number

    return answers


def not_lost(_: object, how: str) -> None:
    raise AssertionError(how)


@pytest.mark.parametrize("count", [1, 2])
def test_the_same_answers(count: int) -> None:
    left = [3, 1, 2]
    with Engine().pool(__name__, 10, count) as pool:
        assert isinstance(pool, ThisProcess if count == 1 else WorkerPool)
        found = pool.answers(lambda _: left.pop() if left else None, not_lost)
        assert sorted(answer for _, answer in found) == [10, 20, 30]
        assert len(pool.names()) == count


def test_the_number_of_workers() -> None:
    assert Engine().count(None) == usable_cores()
    assert Engine().count(5) == 5
    assert Engine().count(5, most=3) == 3
    assert Engine().count(5, most=0) == 1
    with pytest.raises(ConfigError, match="`workers` is 0"):
        Engine().count(0)


def test_a_worker_that_hangs_is_replaced() -> None:
    told: list[str] = []
    left = [-1]

    def lost(_: object, how: str) -> None:
        told.append(how)
        left.append(7)  # a slow machine may take longer than the timeout to start a worker

    with Engine(timeout=1.0).pool(__name__, 2, 1) as pool:
        found = pool.answers(lambda _: left.pop(0) if left else None, lost)
        assert [answer for _, answer in found] == [14]
    assert set(told) == {"no answer for 1 s"}


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="unknown engine 'rai'") as caught:
        Engine("rai")
    assert "'ray'" in caught.value.hint
    with pytest.raises(ConfigError, match="given for the engine local"):
        Engine(address="x:1")
    with pytest.raises(ConfigError, match="`timeout` is 0"):
        Engine(timeout=0)


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError) as caught:
        Engine("ray", "127.0.0.1:6379").connect()
    assert "pip install 'berthline[ray]'" in str(caught.value)


@pytest.mark.parametrize("address", ["ray://x:1", "x", "x:port", ":6379"])
def test_an_address_that_is_none(address: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(ConfigError, match="the address of the Ray cluster is"):
        Engine("ray", address).connect()


def test_an_address_where_nothing_listens() -> None:
    pytest.importorskip("ray")
    with pytest.raises(ClusterError, match="nothing listens") as caught:
        Engine("ray", "127.0.0.1:1").connect()
    assert caught.value.where == "127.0.0.1:1"
    assert caught.value.exit_code == 1


def test_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(ConfigError, match="has no address"):
        Engine("ray").connect()


def test_every_engine_is_explained() -> None:
    assert set(engines.ENGINES) == {engines.LOCAL, engines.RAY}
    assert os.getpid()
