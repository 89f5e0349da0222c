"""Shipped policies: their names are schedulers, and their cards are correct."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

import berthline as bl
from berthline.errors import PolicyError
from berthline.policies import shipped_policies
from berthline.policies.scheduler import Scheduler
from berthline.policies.shipped_policies import FOLDER, card_of, shipped_names

NAMES = shipped_names()


def test_something_is_shipped():
    assert "holdback" in NAMES


def test_they_are_small():
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 1_000_000


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_scheduler(name):
    card = card_of(name)
    found, written = Scheduler.parse(f" {name} "), Scheduler.parse(card.scheduler)
    assert str(found) == card.name == name
    assert found == dataclasses.replace(written, name=name)
    assert found.learned is None  # so no network and no torch
    assert found.needs_run_times == (card.knowledge != "none")


@pytest.mark.parametrize("name", NAMES)
def test_the_name_does_what_the_text_does_in_both_simulators(name):
    cluster = bl.Cluster.parse("uniform:4x8")
    jobs = bl.generate("diurnal", cluster=cluster, jobs=150, load=1.2, seed=5, run_sigma=2.5)
    hashes = {
        bl.simulate(jobs, cluster, text, simulator=engine).log.sha256()
        for text in (name, card_of(name).scheduler)
        for engine in ("native", "reference")
    }
    assert len(hashes) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_complete(name):
    card = card_of(name)
    assert card.command.startswith("python -m benchmarks.")
    assert card.loses
    assert card.trained_on
    assert len(card.curve) > 1
    assert [loss for _, loss in card.curve] == sorted((x for _, x in card.curve), reverse=True)
    for measured in card.measured:
        for gain in (measured.slowdown, measured.jct, measured.p99, measured.makespan):
            assert gain.low <= gain.ratio <= gain.high
        assert str(Scheduler.parse(measured.rival))


def test_parts_can_be_replaced():
    whole = Scheduler.parse("holdback")
    ungated = Scheduler.parse("holdback", gate="none")
    assert ungated.gate is None
    assert ungated.order == whole.order
    assert str(ungated) != "holdback"


def test_a_policy_is_no_order():
    with pytest.raises(PolicyError, match="'holdback' is a whole scheduler, not an order"):
        Scheduler.parse("holdback+easy")


def test_a_loss_is_told():
    better, worse = (
        msgspec.convert({"ratio": x, "low": x, "high": x}, shipped_policies.Gain)
        for x in (0.9, 1.1)
    )
    first = card_of("holdback").measured[0]
    win = msgspec.structs.replace(first, slowdown=better, jct=better)
    assert not win.is_loss
    assert msgspec.structs.replace(win, jct=worse).is_loss
    assert msgspec.structs.replace(win, slowdown=worse).is_loss


def test_a_broken_card_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(shipped_policies, "FOLDER", tmp_path)
    (tmp_path / "broken.json").write_text('{"name": "broken"}')
    with pytest.raises(PolicyError, match="missing required field"):
        card_of("broken")
