"""Orderings: which waiting job comes next. Each is one formula; the smallest value goes first.

Ties go to the job submitted first; a value that is not a number sorts last. The native core, the
reference simulator, the command line and the docs all read this table: an ordering is written
once. Names: Carastan-Santos et al., "One can only gain by replacing EASY backfilling", CCGrid
2019, for the family of simple orderings; others as noted.
"""

from __future__ import annotations

import dataclasses
import re

from berthline.argument_types import check_arguments
from berthline.errors import PolicyError, unknown_name
from berthline.policies.formulas import Formula
from berthline.policies.rules import LAS_OPTIONS, LAS_QUEUE, with_options


@dataclasses.dataclass(frozen=True)
class Order:
    """A named ordering."""

    name: str
    formula: str
    reference: str


_SIMPLE = "Carastan-Santos et al., CCGrid 2019"
_LEARNED = "Carastan-Santos and de Camargo, SC 2017"
_META = "the five orderings of the RLMetaDQN meta-scheduler"

ORDERS: dict[str, Order] = {
    order.name: order
    for order in (
        Order("fcfs", "submit", "first come, first served"),
        Order("lcfs", "-submit", "last come, first served; starves old jobs"),
        Order("sjf", "estimate", "shortest job first; SPF in " + _SIMPLE),
        Order("ljf", "-estimate", "longest job first; LPF in " + _SIMPLE),
        Order("smallest-first", "gpus", "fewest GPUs first; SQF in " + _SIMPLE),
        Order("largest-first", "-gpus", "most GPUs first; LQF in " + _SIMPLE),
        Order(
            "smallest-area",
            "work",
            "smallest GPU-seconds first; starves large jobs; SAF in " + _SIMPLE,
        ),
        Order("largest-area", "-work", "largest GPU-seconds first; LAF in " + _SIMPLE),
        Order("srf", "estimate / gpus", "smallest ratio of run time to GPUs; SRF in " + _SIMPLE),
        Order("lrf", "-estimate / gpus", "largest ratio of run time to GPUs; LRF in " + _SIMPLE),
        Order(
            "sexp",
            "(wait + estimate) / estimate",
            "smallest expansion factor; SEXP in " + _SIMPLE,
        ),
        Order(
            "lexp",
            "-(wait + estimate) / estimate",
            "largest expansion factor; LEXP in " + _SIMPLE + "; the same order as hrrn",
        ),
        Order(
            "hrrn",
            "-(1 + wait / estimate)",
            "highest response ratio next; Brinch Hansen, BIT 1971",
        ),
        Order("sqrt-area", "estimate * sqrt(gpus)", "between sjf and smallest-area"),
        Order("wfp3", "-(wait / estimate)**3 * gpus", "Tang et al., IPDPS 2009"),
        Order(
            "unicep",
            "-wait / (log2(gpus + 1) * estimate)",
            "Tang et al., IPDPS 2009; there log2(gpus), which is 0 for one GPU",
        ),
        Order("f1", "log10(estimate) * gpus + 870 * log10(max(submit, 1))", _LEARNED),
        Order("f2", "sqrt(estimate) * gpus + 25600 * log10(max(submit, 1))", _LEARNED),
        Order("f3", "estimate * gpus + 6860000 * log10(max(submit, 1))", _LEARNED),
        Order("f4", "estimate * sqrt(gpus) + 530000 * log10(max(submit, 1))", _LEARNED),
        Order("edf", "deadline", "earliest deadline first; " + _META),
        Order("static-priority", "-priority", "highest priority first; " + _META),
        Order("static-equal", "submit", "all equal, so fcfs; " + _META),
        Order("dynamic-heuristic", "max(slack, 1) / (priority + 1)", _META),
        Order(
            "slurm-multifactor",
            "-(1000 * min(wait / 604800, 1) + 1000 * gpus / total_gpus"
            " + 1000 * 2**(-user_share * num_users) + 1000 * priority / max_priority)",
            "Slurm's priority/multifactor: age (full after 7 days), size, fair share without decay"
            " (equal shares), qos; equal weights",
        ),
        Order("srpt", "remaining", "shortest remaining run time first; with !srpt"),
        Order("srpt-area", "remaining * gpus", "smallest remaining GPU-seconds first; with ![...]"),
        Order(
            "las",
            with_options(LAS_QUEUE, LAS_OPTIONS),
            "least attained service, three queues, first come, first served in each; Tiresias, "
            "Gu et al., NSDI 2019; with !las",
        ),
        Order("gittins", "-gittins", "highest Gittins index; Gu et al., NSDI 2019; with !gittins"),
        Order("qssf", "predicted * gpus", "quasi-shortest service first; Hu et al., SC 2021"),
        Order("random", "random", "a random order, fixed by the seed"),
    )
}


def register_order(name: str, formula: str, *, reference: str = "") -> Order:
    """Add an ordering, usable at once wherever a scheduler is named.

    Args:
        name: lower-case words joined by hyphens.
        formula: the smallest value goes first.
        reference: where it comes from.

    Raises:
        PolicyError: the name is taken or malformed, or the formula is wrong.

    Example:
        >>> register_order("aged-area", "work / (1 + wait)").name
        'aged-area'
    """
    check_arguments(name=name, formula=formula)
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise PolicyError(
            f"bad name for an ordering {name!r}", expected="lower-case words joined by hyphens"
        )
    if name in ORDERS and ORDERS[name].formula != formula:
        raise PolicyError(f"the ordering {name!r} already exists", where=repr(ORDERS[name].formula))
    Formula.parse(formula)
    ORDERS[name] = Order(name, formula, reference)
    return ORDERS[name]


def order_formula(name: str) -> Formula:
    """Return the formula of a named ordering.

    Raises:
        PolicyError: there is no ordering of that name.
    """
    if name not in ORDERS:
        what, expected, hint = unknown_name(
            "ordering", name, ORDERS, list_command="berthline policies"
        )
        raise PolicyError(what, expected=expected, hint=hint)
    return Formula.parse(ORDERS[name].formula)
