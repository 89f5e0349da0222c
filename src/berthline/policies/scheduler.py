"""Scheduler: a rule for every seat, written `order[+discipline][@placement][?gate]`.

The order and the gate are names from the registries or formulas in brackets; options of a named
gate follow it after colons:

    sjf                                   sjf+strict@first-fit, the defaults written out
    sjf+easy@best-fit?express-lane:T=7200:r=0.2
    [estimate * sqrt(gpus)]+easy?[free_gpus - gpus - 8]
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import TYPE_CHECKING

from berthline.errors import PolicyError, unknown_name
from berthline.policies.formulas import Formula
from berthline.policies.orders import ORDERS, order_formula
from berthline.policies.rules import DISCIPLINES, GATES, NEEDS_RUN_TIMES, PLACEMENTS

if TYPE_CHECKING:
    from collections.abc import Container

FORM = "order[+discipline][@placement][?gate], such as sjf+easy@best-fit"
_PART = r"\[[^\]]*\]|[^+@?!\[\]]+"
_SCHEDULER = re.compile(
    rf"(?P<order>{_PART})(?:\+(?P<discipline>[^+@?!]+))?(?:@(?P<placement>[^+@?!]+))?"
    r"(?:\?(?P<gate>\[[^\]]*\]|[^@?!\[\]]+))?(?:!(?P<preemption>.+))?"
)


@dataclasses.dataclass(frozen=True)
class Scheduler:
    """A rule for every seat. Its text form is canonical: equal schedulers, equal text."""

    name: str
    order: Formula
    discipline: str
    placement: str
    gate: Formula | None

    def __str__(self) -> str:
        return self.name

    @property
    def needs_run_times(self) -> bool:
        """Whether any seat must know run times."""
        formulas = [self.order] if self.gate is None else [self.order, self.gate]
        return self.discipline in NEEDS_RUN_TIMES or any(f.uses_estimate for f in formulas)

    @classmethod
    def parse(cls, text: str, *, order: str | None = None, gate: str | None = None) -> Scheduler:
        """Return the scheduler that `text` describes.

        Args:
            text: the SCHEDULER argument.
            order: a formula, or a name, that replaces the order of `text`.
            gate: a formula, or a name with its options, that replaces the gate of `text`.

        Raises:
            PolicyError: a part is unknown or malformed.

        Example:
            >>> str(Scheduler.parse("sjf+easy"))
            'sjf+easy@first-fit'
        """
        match = _SCHEDULER.fullmatch(text.strip())
        if match is None:
            raise PolicyError(f"cannot read scheduler {text!r}", expected=FORM)
        parts = match.groupdict()
        if parts["preemption"]:
            raise PolicyError(
                f"unknown preemption rule {parts['preemption']!r}",
                where=f"scheduler {text!r}",
                expected="no '!' part: this version has no preemption rules",
            )
        order_text = _bracketed(order, ORDERS) if order is not None else parts["order"].strip()
        gate_text = (
            _bracketed(gate, (*GATES, "none"))
            if gate is not None
            else (parts["gate"] or "").strip()
        )
        discipline = (parts["discipline"] or "strict").strip()
        placement = (parts["placement"] or "first-fit").strip()
        for kind, value, known in (
            ("discipline", discipline, DISCIPLINES),
            ("placement", placement, PLACEMENTS),
        ):
            if value not in known:
                what, expected, hint = unknown_name(kind, value, known)
                raise PolicyError(what, where=f"scheduler {text!r}", expected=expected, hint=hint)
        gate_formula, gate_name = _gate(gate_text, text) if gate_text else (None, "")
        return cls(
            name=f"{order_text}+{discipline}@{placement}" + (f"?{gate_name}" if gate_name else ""),
            order=_order(order_text),
            discipline=discipline,
            placement=placement,
            gate=gate_formula,
        )


def split_schedulers(text: str) -> list[str]:
    """Split a comma-separated list of schedulers; commas inside [formulas] do not count."""
    parts = re.split(r",(?![^\[]*\])", text)
    return [part.strip() for part in parts if part.strip()]


def _bracketed(text: str, names: Container[str]) -> str:
    """Return a formula as it stands in a scheduler's text: in brackets, unless it is a name."""
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
    return order_formula(text)


def _gate(text: str, scheduler: str) -> tuple[Formula | None, str]:
    """Return the gate's formula and its canonical text."""
    where = f"scheduler {scheduler!r}"
    if text.startswith("["):
        return Formula.parse(text[1:-1]), text
    name, *settings = text.split(":")
    if name == "none" and not settings:
        return None, ""
    if name not in GATES:
        what, expected, hint = unknown_name("gate", name, [*GATES, "none"])
        raise PolicyError(
            what, where=where, expected=f"{expected}, or a formula in brackets", hint=hint
        )
    gate = GATES[name]
    options = dict(gate.options)
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in options:
            raise PolicyError(
                f"unknown option {setting!r} of gate {name!r}",
                where=where,
                expected=" or ".join(f"{option}=NUMBER" for option in options),
            )
        try:
            options[key] = _finite(value)
        except ValueError:
            raise PolicyError(
                f"option {key} of gate {name!r} is {value!r}", where=where, expected="a number"
            ) from None
    canonical = ":".join([name, *(f"{key}={_digits(value)}" for key, value in options.items())])
    return Formula.parse(gate.formula, parameters=options), canonical


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _digits(number: float) -> str:
    """Return the shortest text that reads as the same number, without a plus sign."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else f"{number!r}"
