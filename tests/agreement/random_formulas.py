"""Random formulas, as text: every operation, function and word, and numbers that make trouble.

The grammar is that of `policies/formulas.py`. Brackets are left out now and then, so that trees
take shapes the brackets do not say; both simulators read the tree that the parser makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.policies.formulas import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

NUMBERS = (
    *("0", "1", "2", "3", "10", "0.5", "0.1", "7.25", "100", "3600", "1e3"),
    *("1e16", "2147483648", "1e-9", "1e300", "1e-300", "5e-324", "1e308", "1e999"),
    "(0 / 0)",
)
_OPERATORS = ("+", "-", "*", "/", "**")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def random_formula(rng: np.random.Generator, words: Sequence[str], depth: int = 4) -> str:
    """Return a formula of at most `depth` levels over the given words."""
    if depth == 0 or rng.random() < 0.2:
        return str(rng.choice(words)) if rng.random() < 0.7 else str(rng.choice(NUMBERS))

    def part() -> str:
        text = random_formula(rng, words, depth - 1)
        return text if rng.random() < 0.15 else f"({text})"

    kind = rng.random()
    if kind < 0.45:
        return f"{part()} {rng.choice(_OPERATORS)} {part()}"
    if kind < 0.55:
        return f"-{part()}"
    if kind < 0.65:
        return f"({part()} {rng.choice(_COMPARISONS)} {part()})"
    name = str(rng.choice([*FUNCTIONS]))
    at_least, at_most = FUNCTIONS[name]
    count = int(rng.integers(at_least, min(at_most, 4) + 1))
    inner = [random_formula(rng, words, depth - 1) for _ in range(count)]
    return f"{name}({', '.join(inner)})"
