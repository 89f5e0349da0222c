"""Formulas that can hardly be meant: without a word, or without a value whatever the words are.

They are not errors: both simulators give them a meaning (equal values are a tie, and what is not a
number goes last), and a formula with options may become constant at one of their values.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berthline.policies.formulas import Formula
    from berthline.policies.scheduler import Scheduler

_POINTS = 64
_LARGEST = 6.0
"""Words have values up to 10 to this power: seconds of a week, GPUs of a large cluster."""


def idle_formulas(scheduler: Scheduler) -> Iterator[str]:
    """Yield a sentence about each formula of a scheduler that cannot tell jobs or nodes apart."""
    for formula in scheduler.formulas:
        if remark := remark_on(formula):
            yield remark


def remark_on(formula: Formula) -> str:
    """Return what is odd about a formula; empty = nothing.

    Example:
        >>> from berthline.policies.formulas import Formula
        >>> remark_on(Formula.parse("wait / 0"))
        "the formula 'wait / 0' has no finite value: it divides by 0, or overflows"
    """
    if not formula.words:
        value = formula.evaluate(lambda _: math.nan)
        return f"the formula {formula.text!r} is always {value:g}: it uses no word of a job or node"
    # The same points each time: the remark does not depend on chance.
    draws = random.Random(formula.text)
    for _ in range(_POINTS):
        values = {word: 10 ** draws.uniform(-1.0, _LARGEST) for word in sorted(formula.words)}
        if math.isfinite(formula.evaluate(values.__getitem__)):
            return ""
    return f"the formula {formula.text!r} has no finite value: it divides by 0, or overflows"
