"""Scheduler: a rule for every seat, `order[+discipline][@placement][?gate][!preemption]`.

Every seat but the discipline takes a name or a formula in brackets; options follow after colons:

    sjf                                   sjf+strict@first-fit, the defaults written out
    sjf+easy@best-fit?express-lane:T=7200:r=0.2
    [estimate * sqrt(gpus)]+easy@[node_free_gpus]?[free_gpus - gpus - 8]
    las+skip!las:q1=3600:q2=36000
    fcfs+skip![log2(attained + 60)]:margin=1:every=60

A learned policy is a scheduler too, written as a path: see `policies/learned.py`. So is a shipped
one, written as its name: see `policies/shipped_policies.py`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from typing import TYPE_CHECKING

from berthline.errors import PolicyError, unknown_name
from berthline.model.conditions import MIN_TICK
from berthline.policies.formulas import OF_PLACES, Formula
from berthline.policies.learned import Learned
from berthline.policies.orders import ORDERS, order_formula
from berthline.policies.rules import (
    COMMON_OPTIONS,
    DISCIPLINES,
    GATES,
    NEEDS_RUN_TIMES,
    PLACEMENT_FORMULAS,
    PLACEMENTS,
    PLAN_OPTIONS,
    PREEMPTIONS,
    ROUND_SECONDS,
    SAVES_FIRST,
)
from berthline.policies.shipped_policies import card_of, shipped_names
from berthline.text_or_path import text_of

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from berthline.text_or_path import TextOrPath

FORM = "order[+discipline][@placement][?gate][!preemption], such as sjf+easy@best-fit"
_PART = r"\[[^\]]*\]|[^+@?!\[\]]+"
_OPTIONS = r"(?::[^+@?!\[\]]+)?"
_SCHEDULER = re.compile(
    rf"(?P<order>{_PART})(?:\+(?P<discipline>[^+@?!\[\]]+))?(?:@(?P<placement>{_PART}))?"
    r"(?:\?(?P<gate>\[[^\]]*\]|[^@?!\[\]]+))?"
    rf"(?:!(?P<preemption>\s*\[[^\]]*\]{_OPTIONS}|[^!\[\]]+))?"
)
_ANYTHING = (-math.inf, math.inf)
_FROM_ZERO = (0.0, math.inf)
_RANGES = {
    "min_run": (SAVES_FIRST, math.inf),
    "max_restarts": _FROM_ZERO,
    "every": _FROM_ZERO,
    "c": (1.0, math.inf),  # of the rule `index`: it is in a logarithm
}


@dataclasses.dataclass(frozen=True)
class PreemptionRule:
    """The preempt seat of a scheduler; see `policies/rules.py` for what the options mean."""

    name: str
    index: Formula | None
    margin: float
    min_run: float
    max_restarts: float
    every: float
    moves: int


@dataclasses.dataclass(frozen=True)
class Scheduler:
    """A rule for every seat. Its text form is canonical: equal schedulers, equal text.

    Attributes:
        name: the text form.
        order: which waiting job comes next.
        discipline: which jobs may start when the first in order cannot.
        placement: on which GPUs.
        node_order: the formula of a placement by formula; None = another rule.
        gate: whether a job may start now; None = always.
        preemption: which jobs must yield; None = none.
        round_seconds: length of a round, of the discipline `rounds`.
        plan_jobs: how many jobs the placement `milp` plans at once.
        plan_seconds: how long it may take for that.
        learned: the learned policy; None = rules only. With a policy the other fields mean nothing:
            what it does not decide is decided as in its training.
    """

    name: str
    order: Formula
    discipline: str
    placement: str
    node_order: Formula | None
    gate: Formula | None
    preemption: PreemptionRule | None
    round_seconds: float
    plan_jobs: int = 0
    plan_seconds: float = 0.0
    learned: Learned | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def formulas(self) -> list[Formula]:
        """The formulas of all seats."""
        index = self.preemption.index if self.preemption else None
        return [f for f in (self.order, self.node_order, self.gate, index) if f is not None]

    @property
    def needs_run_times(self) -> bool:
        """Whether any seat must know run times."""
        if self.learned is not None:
            return self.learned.knowledge != "none"
        moves = self.preemption is not None and self.preemption.name == "defrag"
        in_formulas = any(formula.uses_estimate for formula in self.formulas)
        return self.discipline in NEEDS_RUN_TIMES or moves or in_formulas

    @classmethod
    def parse(
        cls, text: TextOrPath, *, order: str | None = None, gate: str | None = None
    ) -> Scheduler:
        """Return the scheduler that `text` describes.

        Args:
            text: the SCHEDULER argument; a learned policy also as a path.
            order: a formula, or a name, that replaces the order of `text`.
            gate: a formula, or a name with its options, that replaces the gate of `text`.

        Raises:
            ConfigError: it is neither a text nor a path.
            PolicyError: a part is unknown or malformed.

        Example:
            >>> str(Scheduler.parse("sjf+easy"))
            'sjf+easy@first-fit'
        """
        text = text_of("scheduler", text)
        learned = Learned.find(text)
        if learned is not None:
            return cls._of_learned(learned, has_more=order is not None or gate is not None)
        if order is None and gate is None:
            return cls._of_rules(text)
        return cls._of_parts(text, order=order, gate=gate)

    @classmethod
    @functools.lru_cache(maxsize=1024)
    def _of_rules(cls, text: str) -> Scheduler:
        """Return the scheduler of a text that names no learned policy; names keep their meaning."""
        return cls._of_parts(text, order=None, gate=None)

    @classmethod
    def _of_parts(cls, text: str, *, order: str | None, gate: str | None) -> Scheduler:
        if text.strip() in shipped_names():
            card = card_of(text.strip())
            found = cls.parse(card.scheduler, order=order, gate=gate)
            is_changed = order is not None or gate is not None
            return found if is_changed else dataclasses.replace(found, name=card.name)
        match = _SCHEDULER.fullmatch(text.strip())
        if match is None:
            raise PolicyError(f"cannot read scheduler {text!r}", expected=FORM)
        parts = {seat: (part or "").strip() for seat, part in match.groupdict().items()}
        if order is not None:
            parts["order"] = _bracketed(order, ORDERS)
        if gate is not None:
            parts["gate"] = _bracketed(gate, (*GATES, "none"))
        where = f"scheduler {text!r}"
        discipline, round_seconds, discipline_name = _discipline(parts["discipline"], where)
        placement, node_order, plan, placement_name = _placement(parts["placement"], where)
        gate_formula, gate_name = _gate(parts["gate"], where)
        preemption, preemption_name = _preemption(parts["preemption"], where)
        if preemption is not None and discipline == "rounds":
            raise PolicyError(
                "rounds decide which jobs run",
                where=where,
                expected="no '!' part with the discipline rounds",
            )
        name = f"{parts['order']}+{discipline_name}@{placement_name}"
        name += f"?{gate_name}" if gate_name else ""
        name += f"!{preemption_name}" if preemption_name else ""
        return cls(
            name=name,
            order=_order(parts["order"]),
            discipline=discipline,
            placement=placement,
            node_order=node_order,
            gate=gate_formula,
            preemption=preemption,
            round_seconds=round_seconds,
            plan_jobs=int(plan.get("k", 0)),
            plan_seconds=plan.get("limit", 0.0),
        )

    @classmethod
    def _of_learned(cls, learned: Learned, *, has_more: bool) -> Scheduler:
        if has_more:
            raise PolicyError(
                "an order or a gate with a learned policy",
                where=learned.name,
                expected="the policy alone: all else is as in its training",
            )
        return dataclasses.replace(cls.parse("fcfs"), name=learned.name, learned=learned)


def split_schedulers(text: str) -> list[str]:
    """Split a comma-separated list of schedulers; commas inside [formulas] do not count."""
    parts = re.split(r",(?![^\[]*\])", text)
    return [part.strip() for part in parts if part.strip()]


def _bracketed(text: str, names: Container[str]) -> str:
    """Return a formula as written in a scheduler's text: in brackets, unless it is a name."""
    text = text.strip()
    is_name = text.partition(":")[0] in names
    return text if is_name or text.startswith("[") else f"[{text}]"


def _order(text: str) -> Formula:
    if text.startswith("["):
        return Formula.parse(text[1:-1])
    if not re.fullmatch(r"[a-z0-9-]+", text):
        raise PolicyError(
            f"unknown ordering {text!r}",
            expected="a name, or a formula in brackets",
            hint=f"a formula is written [{text}]; names: berthline policies",
        )
    if text in shipped_names():
        raise PolicyError(
            f"{text!r} is a whole scheduler, not an order",
            expected=f"{text} alone",
            hint="to change its parts, see: berthline policies shipped",
        )
    return order_formula(text)


def _discipline(text: str, where: str) -> tuple[str, float, str]:
    """Return the discipline, the length of its rounds, and its canonical text."""
    name, *settings = (text or "strict").split(":")
    if name not in DISCIPLINES:
        what, expected, hint = unknown_name("discipline", name, DISCIPLINES)
        raise PolicyError(what, where=where, expected=expected, hint=hint)
    known = {"T": ROUND_SECONDS} if name == "rounds" else {}
    options = _options(f"discipline {name!r}", settings, known, {"T": (1.0, math.inf)}, where)
    return name, options.get("T", 0.0), _written(name, options)


def _placement(text: str, where: str) -> tuple[str, Formula | None, dict[str, float], str]:
    """Return the placement's rule, its formula if any, its options and canonical text."""
    text = text or "first-fit"
    if text.startswith("["):
        return "formula", Formula.parse(text[1:-1], scopes=OF_PLACES), {}, text
    name, *settings = text.split(":")
    if name not in PLACEMENTS:
        what, expected, hint = unknown_name("placement", name, PLACEMENTS)
        raise PolicyError(
            what, where=where, expected=f"{expected}, or a formula in brackets", hint=hint
        )
    known = PLAN_OPTIONS if name == "milp" else {}
    ranges = {"k": (1.0, 64.0), "limit": (0.001, 3600.0)}
    options = _options(f"placement {name!r}", settings, known, ranges, where)
    written = _written(name, options)
    if name in PLACEMENT_FORMULAS:
        return "formula", Formula.parse(PLACEMENT_FORMULAS[name], scopes=OF_PLACES), {}, written
    return name, None, options, written


def _gate(text: str, where: str) -> tuple[Formula | None, str]:
    """Return the gate's formula and its canonical text."""
    if not text:
        return None, ""
    if text.startswith("["):
        return Formula.parse(text[1:-1]), text
    name, *settings = (part.strip() for part in text.split(":"))
    if name == "none" and not settings:
        return None, ""
    if name not in GATES:
        what, expected, hint = unknown_name("gate", name, [*GATES, "none"])
        raise PolicyError(
            what, where=where, expected=f"{expected}, or a formula in brackets", hint=hint
        )
    gate = GATES[name]
    options = _options(f"gate {name!r}", settings, gate.options, gate.ranges, where)
    return Formula.parse(gate.formula, parameters=options), _written(name, options)


def _preemption(text: str, where: str) -> tuple[PreemptionRule | None, str]:
    """Return the preemption rule and its canonical text."""
    if not text or text == "none":
        return None, ""
    if text.startswith("["):
        name, _, rest = text.partition("]")
        name += "]"
        settings = rest.lstrip(":").split(":") if rest else []
        formula, own = name[1:-1], {}
        Formula.parse(formula)
    else:
        name, *settings = (part.strip() for part in text.split(":"))
        if name not in PREEMPTIONS:
            what, expected, hint = unknown_name("preemption rule", name, [*PREEMPTIONS, "none"])
            raise PolicyError(
                what, where=where, expected=f"{expected}, or a formula in brackets", hint=hint
            )
        formula, own = PREEMPTIONS[name].index, dict(PREEMPTIONS[name].options)
    known = {**COMMON_OPTIONS, **own}
    ranges = {**_RANGES, "moves": (1.0, 64.0)}
    options = _options(f"preemption rule {name!r}", settings, known, ranges, where)
    if not float(options.get("moves", 0)).is_integer():
        raise PolicyError(
            f"option moves of preemption rule {name!r} is {options['moves']:g}",
            where=where,
            expected="a whole number",
        )
    if 0 < options["every"] < MIN_TICK:
        raise PolicyError(
            f"option every of preemption rule {name!r} is {options['every']:g}",
            where=where,
            expected=f"0, or {MIN_TICK:g} or more",
        )
    rule = PreemptionRule(
        name="index" if formula else name,
        index=Formula.parse(formula, parameters=options) if formula else None,
        margin=options["margin"],
        min_run=options["min_run"],
        max_restarts=options["max_restarts"],
        every=options["every"],
        moves=int(options.get("moves", 0)),
    )
    changed = {key: value for key, value in options.items() if value != known[key]}
    return rule, _written(name, changed)


def _options(
    what: str,
    settings: list[str],
    known: Mapping[str, float],
    ranges: Mapping[str, tuple[float, float]],
    where: str,
) -> dict[str, float]:
    """Return the options with those given in `settings` replaced."""
    options = dict(known)
    for setting in settings:
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not equals or key not in options:
            raise PolicyError(
                f"unknown option {setting!r} of {what}",
                where=where,
                expected=" or ".join(f"{option}=NUMBER" for option in options) or "no options",
            )
        low, high = ranges.get(key, _ANYTHING)
        try:
            number = _finite(value)
        except ValueError:
            raise PolicyError(
                f"option {key} of {what} is {value!r}", where=where, expected="a number"
            ) from None
        if not low <= number <= high:
            raise PolicyError(
                f"option {key} of {what} is {value}",
                where=where,
                expected=f"{low:g} or more" if high == math.inf else f"{low:g} to {high:g}",
            )
        options[key] = number
    return options


def _written(name: str, options: Mapping[str, float]) -> str:
    return ":".join([name, *(f"{key}={_digits(value)}" for key, value in options.items())])


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _digits(number: float) -> str:
    """Return the shortest text that reads as the same number, without a plus sign."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else f"{number!r}"
