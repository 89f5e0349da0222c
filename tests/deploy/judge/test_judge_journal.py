"""Verdicts on journals, and that acting needs one."""

import time

import msgspec
import pytest
from tests.deploy.simulated_systems import CLUSTER, controller, generated, play, system

import berthline as bl
from berthline.deploy.control.promotion import (
    BETTER,
    NOT_WORSE,
    TOO_EARLY,
    WORSE,
    Compared,
    check_promotion,
    keep_judgement,
)
from berthline.deploy.judge.judge_journal import _verdict, judge_journal
from berthline.errors import ConfigError, RefusedError
from berthline.policies.scheduler import Scheduler


def journal(directory, num_jobs, native, mode="shadow"):
    adapter = system(generated(5, num_jobs, load=1.0), native=native)
    control = controller(adapter, directory, "fcfs+easy", mode=mode)
    while not adapter.is_over:
        play(control, adapter, 50, every=60)
    control.journal.close()
    return directory


@pytest.fixture(scope="module")
def shadow(tmp_path_factory):
    return journal(tmp_path_factory.mktemp("shadow") / "j", 300, "fcfs+strict")


def test_native_scheduler__is_found_and_its_metrics_are_those_of_the_simulator(shadow):
    found = judge_journal(shadow, "fcfs+strict")
    assert found.native == "fcfs+strict"
    assert found.wait_error < 1.0
    assert found.wait_modelled == pytest.approx(found.wait_recorded, rel=0.02)
    assert found.verdict == NOT_WORSE
    assert found.jct_mean.ratio == 1.0
    metrics = bl.simulate(generated(5, 300, load=1.0), CLUSTER, "fcfs+strict").metrics()
    assert found.jct_mean.native == pytest.approx(metrics.jct.mean, rel=0.1)


def test_worse_scheduler__is_found(shadow):
    assert judge_journal(shadow, "ljf+strict").verdict in (WORSE, TOO_EARLY)
    assert judge_journal(shadow, "ljf+strict").jct_mean.ratio > 1


def compared(low, high):
    return Compared(ours=1.0, native=1.0, ratio=(low * high) ** 0.5, low=low, high=high)


@pytest.mark.parametrize(
    ("jct", "wait", "slowdown", "verdict"),
    [
        ((0.8, 0.9), (0.8, 1.05), (0.7, 1.0), BETTER),
        ((0.8, 1.01), (0.8, 1.05), (0.7, 1.0), NOT_WORSE),
        ((1.0, 1.0), (1.0, 1.0), (1.0, 1.0), NOT_WORSE),
        ((0.8, 1.03), (0.8, 1.05), (0.7, 1.0), TOO_EARLY),
        ((0.8, 0.9), (0.8, 1.5), (0.7, 1.0), TOO_EARLY),
        ((0.8, 0.9), (1.2, 1.5), (0.7, 1.0), WORSE),
        ((1.01, 1.3), (0.8, 1.0), (0.7, 1.0), WORSE),
        ((0.9, 1.3), (0.8, 1.0), (1.1, 1.2), WORSE),
    ],
)
def test_verdicts__from_intervals(jct, wait, slowdown, verdict):
    metrics = {
        "jct_mean": compared(*jct),
        "wait_p99": compared(*wait),
        "bounded_slowdown_mean": compared(*slowdown),
    }
    found, words, more = _verdict(metrics, 1000, 24.0)
    assert (found, words.startswith(verdict)) == (verdict, True)
    assert (more > 0) == (verdict == TOO_EARLY)


def test_short_journal__is_too_early(tmp_path):
    found = judge_journal(journal(tmp_path / "j", 30, "fcfs+easy"), "sjf+easy")
    assert found.verdict == TOO_EARLY
    assert found.more_hours > 0
    assert "more" in found.words


def test_journal_in_which_we_acted__needs_the_native_scheduler(tmp_path):
    directory = journal(tmp_path / "j", 100, "fcfs+easy", mode="act")
    with pytest.raises(ConfigError, match="acted in this journal"):
        judge_journal(directory)
    assert judge_journal(directory, native="fcfs+easy").native == "fcfs+easy"


def test_acting__needs_a_fresh_verdict_about_this_scheduler(shadow, tmp_path):
    ours = Scheduler.parse("sjf+easy")
    with pytest.raises(RefusedError, match="no verdict") as error:
        check_promotion(ours, tmp_path)
    assert error.value.exit_code == 3
    found = judge_journal(shadow, "sjf+easy")
    good = msgspec.structs.replace(found, verdict=NOT_WORSE)
    keep_judgement(tmp_path, good)
    check_promotion(ours, tmp_path)
    for changes, words in (
        ({"written": time.time() - 31 * 86400}, "31 days old"),
        ({"written": time.time() + 9 * 86400}, "-9 days old"),
        ({"scheduler": "fcfs+easy@first-fit"}, "about fcfs"),
        ({"verdict": WORSE, "words": "worse: all"}, "worse: all"),
        ({"verdict": TOO_EARLY, "words": "too early: wait"}, "too early"),
    ):
        keep_judgement(tmp_path, msgspec.structs.replace(good, **changes))
        with pytest.raises(RefusedError, match=words):
            check_promotion(ours, tmp_path)
    (tmp_path / "verdict.json").write_text("{}")
    with pytest.raises(RefusedError, match="no verdict"):
        check_promotion(ours, tmp_path)
