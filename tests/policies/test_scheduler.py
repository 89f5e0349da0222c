"""The SCHEDULER argument: every form, its canonical text, and the errors for wrong ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berthline.errors import PolicyError
from berthline.policies.formulas import Formula
from berthline.policies.orders import ORDERS
from berthline.policies.rules import DISCIPLINES, PLACEMENT_FORMULAS, PLACEMENTS, PREEMPTIONS
from berthline.policies.scheduler import FORM, Scheduler, split_schedulers

PARTS = st.tuples(
    st.sampled_from(
        ["fcfs", "f1", "dynamic-heuristic", "[estimate * sqrt(gpus)]", "[-(wait + 1)]"]
    ),
    st.sampled_from(["", *DISCIPLINES]),
    st.sampled_from(["", *PLACEMENTS]),
    st.sampled_from(["", "none", "express-lane", "express-lane:r=0.3:T=60", "[free_gpus - 8]"]),
    st.sampled_from(["", "none", *PREEMPTIONS, "las:q1=1:every=2", "[attained]:margin=0.5"]),
).filter(lambda parts: parts[1] != "rounds" or parts[4] in ("", "none"))


def text_of(order: str, discipline: str, placement: str, gate: str, preemption: str) -> str:
    parts = (("+", discipline), ("@", placement), ("?", gate), ("!", preemption))
    return order + "".join(symbol + part for symbol, part in parts if part)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("sjf", "sjf+strict@first-fit"),
        ("sjf+easy", "sjf+easy@first-fit"),
        ("sjf@best-fit", "sjf+strict@best-fit"),
        ("sjf+skip@scatter", "sjf+skip@scatter"),
        ("  sjf + easy @ best-fit ", "sjf+easy@best-fit"),
        ("fcfs?none", "fcfs+strict@first-fit"),
        ("fcfs?express-lane", "fcfs+strict@first-fit?express-lane:T=3600:r=0.1"),
        ("fcfs?express-lane:r=0.25", "fcfs+strict@first-fit?express-lane:T=3600:r=0.25"),
        ("fcfs?express-lane:r=.5:T=60", "fcfs+strict@first-fit?express-lane:T=60:r=0.5"),
        ("[gpus + wait]+easy", "[gpus + wait]+easy@first-fit"),
        ("fcfs?[free_gpus - gpus]", "fcfs+strict@first-fit?[free_gpus - gpus]"),
        (
            "[max(gpus, 2)]+conservative@worst-fit?[wait >= 5]",
            "[max(gpus, 2)]+conservative@worst-fit?[wait >= 5]",
        ),
        ("fcfs+rounds", "fcfs+rounds:T=360@first-fit"),
        ("fcfs+rounds:T=60@best-fit", "fcfs+rounds:T=60@best-fit"),
        ("fcfs@[node_free_gpus - node_speed]", "fcfs+strict@[node_free_gpus - node_speed]"),
        ("fcfs!none", "fcfs+strict@first-fit"),
        ("srpt!srpt", "srpt+strict@first-fit!srpt"),
        ("srpt!srpt:margin=0:min_run=0", "srpt+strict@first-fit!srpt"),
        ("las+skip!las:q2=36000:q1=3600", "las+skip@first-fit!las:q1=3600:q2=36000"),
        (
            "fcfs ! index:margin=1.5: max_restarts=3",
            "fcfs+strict@first-fit!index:margin=1.5:max_restarts=3",
        ),
        (
            "fcfs?[wait]! [attained * 2]:every=60",
            "fcfs+strict@first-fit?[wait]![attained * 2]:every=60",
        ),
        ("fcfs+easy!defrag:moves=2", "fcfs+easy@first-fit!defrag:moves=2"),
    ],
)
def test_parse__every_form(text: str, canonical: str) -> None:
    assert str(Scheduler.parse(text)) == canonical


@given(PARTS)
def test_canonical_text__parses_to_the_same_scheduler(parts: tuple[str, ...]) -> None:
    scheduler = Scheduler.parse(text_of(*parts))
    assert Scheduler.parse(str(scheduler)) == scheduler
    assert scheduler.discipline == (parts[1] or "strict")
    is_formula = parts[2] in PLACEMENT_FORMULAS
    assert scheduler.placement == ("formula" if is_formula else parts[2] or "first-fit")
    assert (scheduler.node_order is not None) == is_formula
    assert (scheduler.gate is None) == (parts[3] in ("", "none"))
    assert (scheduler.preemption is None) == (parts[4] in ("", "none"))


@pytest.mark.parametrize("seconds", ["1000000", "1234567", "86400.5", "1e6", "0.1234567", "1e-7"])
def test_canonical_text__keeps_every_digit_of_an_option(seconds: str) -> None:
    scheduler = Scheduler.parse(f"fcfs?express-lane:T={seconds}")
    again = Scheduler.parse(str(scheduler))
    assert again == scheduler
    assert again.gate == Formula.parse(
        "where(estimate > T, pool_free_gpus - gpus - r * pool_total_gpus, 0)",
        parameters={"T": float(seconds), "r": 0.1},
    )


def test_canonical_text__different_options_give_different_text() -> None:
    one, other = (str(Scheduler.parse(f"fcfs?express-lane:T={t}")) for t in (1234567, 1234568))
    assert one != other


@pytest.mark.parametrize("name", list(ORDERS))
def test_parse__every_registered_order(name: str) -> None:
    scheduler = Scheduler.parse(name)
    assert scheduler.order == Formula.parse(ORDERS[name].formula)
    assert Scheduler.parse(str(scheduler)) == scheduler


def test_express_lane__options_reach_the_formula() -> None:
    gate = Scheduler.parse("fcfs?express-lane:T=100:r=0.5").gate
    assert gate is not None
    words = {"pool_free_gpus": 10.0, "gpus": 2.0, "pool_total_gpus": 16.0}

    def value(estimate: float) -> float:
        return gate.evaluate((words | {"estimate": estimate}).__getitem__)

    assert value(100.0) == 0.0
    assert value(101.0) == 10 - 2 - 0.5 * 16


def test_parse__order_and_gate_formulas_replace_those_of_the_text() -> None:
    scheduler = Scheduler.parse("sjf+easy@best-fit?express-lane", order="-gpus", gate="wait - 60")
    assert str(scheduler) == "[-gpus]+easy@best-fit?[wait - 60]"
    assert scheduler == Scheduler.parse("[-gpus]+easy@best-fit?[wait - 60]")


@pytest.mark.parametrize(
    ("parts", "canonical"),
    [
        ({"order": "sjf"}, "sjf+easy@best-fit?[wait - 60]"),
        ({"order": "[gpus]"}, "[gpus]+easy@best-fit?[wait - 60]"),
        ({"gate": "none"}, "fcfs+easy@best-fit"),
        ({"gate": "express-lane:T=60"}, "fcfs+easy@best-fit?express-lane:T=60:r=0.1"),
        ({"gate": "wait - 5", "order": "-gpus"}, "[-gpus]+easy@best-fit?[wait - 5]"),
    ],
)
def test_parse__names_may_replace_those_of_the_text_too(
    parts: dict[str, str], canonical: str
) -> None:
    scheduler = Scheduler.parse("fcfs+easy@best-fit?[wait - 60]", **parts)
    assert str(scheduler) == canonical
    assert scheduler == Scheduler.parse(canonical)


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("fcfs", False),
        ("fcfs+skip@scatter", False),
        ("fcfs+easy", True),
        ("fcfs+conservative", True),
        ("sjf", True),
        ("smallest-area", True),
        ("fcfs?express-lane", True),
        ("fcfs?[free_gpus - gpus]", False),
        ("[queued_work]", True),
        ("fcfs+rounds", False),
        ("fcfs@[node_free_gpus * estimate]", True),
        ("las!las", False),
        ("fcfs!srpt", True),
        ("fcfs!defrag", True),
        ("fcfs![remaining]", True),
    ],
)
def test_needs_run_times__by_any_seat(text: str, needs: bool) -> None:
    assert Scheduler.parse(text).needs_run_times is needs


@pytest.mark.parametrize(
    ("text", "what", "expected", "hint"),
    [
        ("sjff", "unknown ordering 'sjff'", "sjf", "did you mean 'sjf'?"),
        ("SJF", "unknown ordering 'SJF'", "a name, or a formula in brackets", "[SJF]"),
        ("wait/gpus", "unknown ordering 'wait/gpus'", "a formula in brackets", "[wait/gpus]"),
        ("sjf+esy", "unknown discipline 'esy'", "easy", "did you mean 'easy'?"),
        ("sjf@bestfit", "unknown placement 'bestfit'", "best-fit", "did you mean 'best-fit'?"),
        ("sjf+best-fit", "unknown discipline 'best-fit'", "strict", ""),
        ("sjf?expres-lane", "unknown gate 'expres-lane'", "express-lane, none", "'express-lane'"),
        ("sjf?none:T=3", "unknown gate 'none'", "or a formula in brackets", ""),
        ("sjf?express-lane:T", "unknown option 'T' of gate 'express-lane'", "T=NUMBER", ""),
        ("sjf?express-lane:Q=1", "unknown option 'Q=1' of gate 'express-lane'", "r=NUMBER", ""),
        ("sjf?express-lane:T=", "option T of gate 'express-lane' is ''", "a number", ""),
        ("sjf?express-lane:T=x", "option T of gate 'express-lane' is 'x'", "a number", ""),
        ("sjf!lru", "unknown preemption rule 'lru'", "one of defrag, fair-share, gittins", ""),
        ("sjf!srtp", "unknown preemption rule 'srtp'", "srpt", "did you mean 'srpt'?"),
        ("sjf!srpt:q1=3", "unknown option 'q1=3' of preemption rule 'srpt'", "margin=NUMBER", ""),
        ("sjf!las:min_run=-2", "option min_run of preemption rule 'las' is -2", "-1 or more", ""),
        ("sjf+rounds!srpt", "rounds decide which jobs run", "no '!' part", ""),
        ("sjf+rounds:T=0", "option T of discipline 'rounds' is 0", "1 or more", ""),
        ("sjf+easy:T=5", "unknown option 'T=5' of discipline 'easy'", "no options", ""),
        ("", "cannot read scheduler ''", FORM, ""),
        ("sjf+", "cannot read scheduler 'sjf+'", FORM, ""),
        ("+easy", "cannot read scheduler '+easy'", FORM, ""),
        ("sjf@", "cannot read scheduler 'sjf@'", FORM, ""),
        ("sjf?", "cannot read scheduler 'sjf?'", FORM, ""),
        ("sjf+easy+skip", "cannot read scheduler 'sjf+easy+skip'", FORM, ""),
        ("sjf@best-fit+easy", "cannot read scheduler 'sjf@best-fit+easy'", FORM, ""),
        ("[gpus", "cannot read scheduler '[gpus'", FORM, ""),
        ("[gpus]x", "cannot read scheduler '[gpus]x'", FORM, ""),
        ("[]", "the formula ends early", "a number", ""),
        ("[gpsu]", "unknown word 'gpsu'", "a word of the vocabulary", "'gpus'"),
        ("fcfs?[gpsu]", "unknown word 'gpsu'", "a word of the vocabulary", "'gpus'"),
    ],
)
def test_parse__errors(text: str, what: str, expected: str, hint: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Scheduler.parse(text)
    error = caught.value
    assert error.what == what
    assert expected in error.expected
    assert hint in error.hint


@pytest.mark.parametrize(
    "text", ["sjf+esy", "sjf@bestfit", "sjf?x", "sjf?express-lane:T=x", "sjf!y"]
)
def test_parse__errors_name_the_whole_scheduler(text: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Scheduler.parse(text)
    assert caught.value.where == f"scheduler {text!r}"


def test_parse__a_gate_option_that_is_not_a_number_is_refused() -> None:
    """NaN compares false with everything: the gate would silently stay shut or open."""
    for value in ("nan", "NaN"):
        with pytest.raises(PolicyError, match="option T of gate 'express-lane'"):
            Scheduler.parse(f"fcfs?express-lane:T={value}")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" , ,", []),
        ("fcfs", ["fcfs"]),
        ("fcfs,sjf+easy", ["fcfs", "sjf+easy"]),
        (" fcfs , sjf ,", ["fcfs", "sjf"]),
        ("[min(gpus, 2)]+easy,fcfs", ["[min(gpus, 2)]+easy", "fcfs"]),
        (
            "fcfs?[max(wait, 1) - 2],[clip(gpus, 1, 2)]?[where(wait, 1, 2)]",
            ["fcfs?[max(wait, 1) - 2]", "[clip(gpus, 1, 2)]?[where(wait, 1, 2)]"],
        ),
        ("sjf?express-lane:T=60:r=0.2,fcfs", ["sjf?express-lane:T=60:r=0.2", "fcfs"]),
    ],
)
def test_split_schedulers__commas_inside_formulas_do_not_count(text: str, parts: list[str]) -> None:
    assert split_schedulers(text) == parts


@pytest.mark.parametrize("text", ["[fcfs,sjf", "fcfs],sjf", "fcfs,[sjf", "]fcfs"])
def test_split_schedulers__an_unmatched_bracket_does_not_vanish(text: str) -> None:
    with pytest.raises(PolicyError):
        [Scheduler.parse(part) for part in split_schedulers(text)]


def test_a_formula_may_be_longer_than_the_name_of_a_file():
    formula = " + ".join(["estimate"] * 100)
    assert Scheduler.parse(f"[{formula}]+easy").discipline == "easy"
