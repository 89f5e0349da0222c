"""The generated tables about schedulers: formulas, rules, and what there is to tune or to take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markdown_text import code, mark, options, table

if TYPE_CHECKING:
    from collections.abc import Callable


def words(scope: str) -> str:
    """Return the words of a job, of a node, or of the cluster."""
    from berthline.policies.vocabulary import VOCABULARY

    return table(
        ("word", "unit", "meaning", "changes", "run times"),
        (
            (code(word.name), word.unit, word.meaning, word.changes, mark(needed=word.estimate))
            for word in VOCABULARY.values()
            if word.scope == scope
        ),
    )


FUNCTION_MEANINGS = {
    "log2": "logarithm to base 2",
    "log10": "logarithm to base 10",
    "ln": "natural logarithm",
    "sqrt": "square root",
    "exp": "e to the power x",
    "abs": "x without its sign",
    "floor": "the largest whole number not above x",
    "tanh": "hyperbolic tangent",
    "min": "the smallest; of equals, and beside what is not a number, the earlier",
    "max": "the largest; of equals, and beside what is not a number, the earlier",
    "clip": "x, but at least low and at most high: `min(max(x, low), high)`",
    "where": "a if c is not 0, else b; both are worked out",
}
"""What each function does; the registry has only names and numbers of arguments."""

FUNCTION_ARGUMENTS = {"clip": "x, low, high", "where": "c, a, b"}


def functions() -> str:
    """Return the functions of formulas."""
    from berthline.policies.formulas import FUNCTIONS

    def arguments(name: str, at_least: int, at_most: int) -> str:
        if name in FUNCTION_ARGUMENTS:
            return FUNCTION_ARGUMENTS[name]
        return "x" if at_least == at_most == 1 else "a, b, ..."

    return table(
        ("function", "value"),
        (
            (code(f"{name}({arguments(name, *counts)})"), FUNCTION_MEANINGS[name])
            for name, counts in FUNCTIONS.items()
        ),
    )


def orders() -> str:
    """Return the named orderings."""
    from berthline.policies.formulas import Formula
    from berthline.policies.orders import ORDERS

    return table(
        ("order", "formula, smallest first", "run times", "what it is, or where it comes from"),
        (
            (
                code(order.name),
                code(order.formula),
                mark(needed=Formula.parse(order.formula).uses_estimate),
                order.reference,
            )
            for order in ORDERS.values()
        ),
    )


def disciplines() -> str:
    """Return the disciplines of the queue."""
    from berthline.policies.rules import DISCIPLINES, NEEDS_RUN_TIMES, ROUND_SECONDS

    return table(
        ("discipline", "run times", "options, with defaults", "meaning"),
        (
            (
                code(name),
                mark(needed=name in NEEDS_RUN_TIMES),
                options({"T": ROUND_SECONDS} if name == "rounds" else {}),
                meaning,
            )
            for name, meaning in DISCIPLINES.items()
        ),
    )


def placements() -> str:
    """Return the placements."""
    from berthline.policies.rules import PLACEMENT_FORMULAS, PLACEMENTS

    return table(
        ("placement", "meaning", "formula, smallest first"),
        ((code(k), v, code(PLACEMENT_FORMULAS.get(k, ""))) for k, v in PLACEMENTS.items()),
    )


def gates() -> str:
    """Return the named gates."""
    from berthline.policies.rules import GATES

    return table(
        ("gate", "open while this is 0 or more", "options, with defaults", "meaning"),
        ((code(g.name), code(g.formula), options(g.options), g.meaning) for g in GATES.values()),
    )


def preemptions() -> str:
    """Return the preemption rules."""
    from berthline.cli.policies.command import preemptions as rows
    from berthline.policies.rules import PREEMPTIONS

    return table(
        ("rule", "index; the largest yields", "run times", "options, with defaults", "meaning"),
        (
            (
                code(row["name"]),
                code(row["index"]),
                mark(needed=row["needs_run_times"]),
                options(PREEMPTIONS[row["name"]].options),
                row["meaning"],
            )
            for row in rows()
        ),
    )


def spaces() -> str:
    """Return the search spaces, each with its numbers and their ranges."""
    from berthline.learn.tuning.search_space import SPACES

    def numbers(space: Any) -> str:
        return "; ".join(
            f"{code(f'{p.name}={p.low:g}:{p.high:g}' + (':log' if p.is_log else ''))} {p.meaning}"
            for p in space.parameters
        )

    return table(
        ("`--space`", "what is tuned", "its numbers", "scheduler"),
        ((code(s.name), s.meaning, numbers(s), code(s.text)) for s in SPACES.values()),
    )


def shipped() -> str:
    """Return the shipped policies, with what they do to whole logs, the worst first."""
    from berthline.evaluate.metrics.starvation import wait_words
    from berthline.policies.shipped_policies import card_of, shipped_names

    cards = [card_of(name) for name in shipped_names()]
    heads = ("name", "log", "mean JCT", "p99 JCT", "slowdown", "longest wait", "left behind")
    return table(
        (*heads, "ratios to, and its longest wait"),
        (
            (
                code(card.name),
                f"{run.log}, {run.estimates} estimates",
                *(f"{ratio:.2f}" for ratio in (run.jct, run.p99, run.slowdown)),
                wait_words(run.longest_wait),
                f"{run.left_behind:,}",
                f"{code(run.rival)}, {wait_words(run.rival_longest_wait)}",
            )
            for card in cards
            for run in card.continuous
        ),
    )


def bandits() -> str:
    """Return the schedulers that learn within the run."""
    from berthline.policies.bandits import BANDITS, PREFIX

    return table(
        ("scheduler", "options, with defaults", "chooses"),
        (
            (
                code(f"{PREFIX}{name}"),
                options({option: default for option, (default, _, _) in kind.options.items()}),
                kind.meaning,
            )
            for name, kind in BANDITS.items()
        ),
    )


def perturbations() -> str:
    """Return the kinds of perturbations."""
    from berthline.experiments.perturbations import KINDS

    return table(
        ("kind", "value", "meaning", "in the suite `robustness`"),
        (
            (code(name), kind.form, kind.meaning, ", ".join(map(code, kind.shipped)))
            for name, kind in KINDS.items()
        ),
    )


PARTS: dict[str, Callable[[], str]] = {
    "words of a job": lambda: words("job"),
    "words of a node": lambda: words("node"),
    "words of the cluster": lambda: words("cluster"),
    "functions": functions,
    "orders": orders,
    "disciplines": disciplines,
    "placements": placements,
    "gates": gates,
    "preemptions": preemptions,
    "spaces": spaces,
    "shipped": shipped,
    "bandits": bandits,
    "perturbations": perturbations,
}
"""Each generated part and what makes it."""
