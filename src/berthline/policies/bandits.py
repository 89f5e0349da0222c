"""Bandits: schedulers that learn within the run which of several schedulers is best.

Nothing is trained before: a bandit begins to know nothing, chooses one scheduler of a menu at a
time, and learns from what it then observes. It fills the seat Meta. Here are the texts,
`bandit:NAME[:OPTION=VALUE]`; `deploy/bandit_policy.py` has the rules of learning.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from berthline.errors import PolicyError, unknown_name
from berthline.policies.given import Given

PREFIX = "bandit:"
ANY_KNOWLEDGE = ""
"""A bandit works with whatever the run knows of run times."""

MENUS = ("meta", "rlmetadqn")
"""Where a bandit's schedulers come from: the environment Meta, or the preset of this name."""


class BanditKind(NamedTuple):
    """A rule of learning.

    Attributes:
        meaning: how it chooses, in a sentence.
        options: its own, with defaults and the range of each.
    """

    meaning: str
    options: dict[str, tuple[float, float, float]]


EVERY = (600.0, 1.0, math.inf)
BANDITS: dict[str, BanditKind] = {
    "epsilon-greedy": BanditKind(
        "the scheduler with the highest mean reward so far, or with probability `epsilon` any; "
        "each is tried once first",
        {"epsilon": (0.1, 0.0, 1.0), "every": EVERY},
    ),
    "exp3": BanditKind(
        "at random, by weights that grow with rewards: exp(gamma r / (p K)) for a reward r after a "
        "choice of probability p among K; a share `gamma` is spread evenly",
        {"gamma": (0.1, 1e-6, 1.0), "every": EVERY},
    ),
    "linucb": BanditKind(
        "the scheduler with the highest upper confidence bound of its reward, linear in the state "
        "of the cluster; `alpha` is the width of the bound",
        {"alpha": (1.0, 0.0, math.inf), "every": EVERY},
    ),
}


class Bandit(Given):
    """A policy that learns within the run.

    Attributes:
        text: the canonical text.
        kind: a key of BANDITS.
        menu: one of MENUS.
        options: the numbers of the kind.
    """

    text: str
    kind: str
    menu: str
    options: dict[str, float]

    def __init__(self, text: str, kind: str, menu: str, options: dict[str, float]) -> None:
        super().__init__(
            name=text.removeprefix(PREFIX),
            seat="meta",
            knowledge=ANY_KNOWLEDGE,
            facts={"algorithm": "bandit", "config": {"options": {}, "metric": "jct_mean"}},
            load=_has_no_run,
            about=BANDITS[kind].meaning,
        )
        for name, value in (("text", text), ("kind", kind), ("menu", menu), ("options", options)):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> Any:
        return find_bandit, (self.text,)

    @property
    def sentence(self) -> str:
        """How it decides, in a sentence."""
        return f"{self.text} learns within the run: {self.about.replace('`', '')}"


def is_bandit(text: str) -> bool:
    """Whether a text names a bandit."""
    return text.strip().startswith(PREFIX)


def find_bandit(text: str) -> Bandit:
    """Return the bandit that a text names.

    Raises:
        PolicyError: the text is not one.

    Example:
        >>> find_bandit("bandit:exp3:gamma=0.1").text
        'bandit:exp3'
    """
    return _find(text.strip())


@functools.lru_cache(maxsize=64)
def _find(text: str) -> Bandit:
    kind, *settings = (part.strip() for part in text.removeprefix(PREFIX).split(":"))
    if kind not in BANDITS:
        what, expected, hint = unknown_name("bandit", kind, BANDITS)
        raise PolicyError(what, where=f"scheduler {text!r}", expected=expected, hint=hint)
    known = BANDITS[kind].options
    options = {name: default for name, (default, _, _) in known.items()}
    menu = MENUS[0]
    for setting in settings:
        name, equals, value = (part.strip() for part in setting.partition("="))
        if name == "menu" and value in MENUS:
            menu = value
        elif equals and name in known:
            options[name] = _number(value, name, *known[name][1:], where=text)
        else:
            raise PolicyError(
                f"unknown option {setting!r} of bandit {kind!r}",
                where=f"scheduler {text!r}",
                expected=" or ".join(
                    [f"menu={'|'.join(MENUS)}", *(f"{option}=NUMBER" for option in known)]
                ),
            )
    written = [f"{PREFIX}{kind}"]
    written += [f"menu={menu}"] if menu != MENUS[0] else []
    written += [f"{name}={value:g}" for name, value in options.items() if value != known[name][0]]
    return Bandit(":".join(written), kind, menu, options)


def _number(value: str, name: str, low: float, high: float, *, where: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not low <= number <= high or math.isinf(number):
        upper = "or more" if math.isinf(high) else f"to {high:g}"
        raise PolicyError(
            f"option {name} is {value!r}",
            where=f"scheduler {where!r}",
            expected=f"a number, {low:g} {upper}",
        )
    return number


def _has_no_run(_: Any) -> Any:
    raise PolicyError(
        "a bandit learns within a run, and there is none",
        expected="a whole run: simulate, compare or evaluate",
        hint="a snapshot does not hold what a bandit has learned",
    )
