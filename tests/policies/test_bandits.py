"""The texts of bandits."""

from __future__ import annotations

import pickle

import pytest

from berthline.errors import PolicyError
from berthline.policies.bandits import BANDITS, find_bandit
from berthline.policies.scheduler import Scheduler


@pytest.mark.parametrize("kind", BANDITS)
def test_a_bandit_is_a_scheduler_with_a_canonical_text(kind):
    scheduler = Scheduler.parse(f" bandit:{kind}:every=600 ")
    assert str(scheduler) == f"bandit:{kind}"
    assert scheduler.learned is not None
    assert scheduler.learned.bandit is find_bandit(f"bandit:{kind}:every=600")
    assert scheduler.learned.seat == "meta"


def test_options_are_in_the_text_where_they_differ():
    text = "bandit:exp3:every=60:gamma=0.3:menu=rlmetadqn"
    assert str(Scheduler.parse(text)) == "bandit:exp3:menu=rlmetadqn:gamma=0.3:every=60"
    again = Scheduler.parse(str(Scheduler.parse(text)))
    assert again.learned.bandit.options == {"gamma": 0.3, "every": 60.0}


def test_it_goes_to_other_processes():
    scheduler = Scheduler.parse("bandit:linucb:alpha=2")
    again = pickle.loads(pickle.dumps(scheduler))
    assert str(again) == str(scheduler)
    assert again.learned.bandit.options == scheduler.learned.bandit.options


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bandit:exp", "did you mean 'exp3'"),
        ("bandit:exp3:epsilon=1", "gamma=NUMBER"),
        ("bandit:exp3:gamma=2", "1e-06 to 1"),
        ("bandit:exp3:gamma=x", "a number"),
        ("bandit:linucb:alpha=-1", "0 or more"),
        ("bandit:linucb:menu=pick", "menu=meta|rlmetadqn"),
    ],
)
def test_errors_name_what_is_accepted(text, says):
    with pytest.raises(PolicyError, match=text) as error:
        Scheduler.parse(text)
    assert says in str(error.value)


def test_nothing_follows_a_bandit():
    with pytest.raises(PolicyError, match="a learned policy"):
        Scheduler.parse("bandit:exp3", order="sjf")
