"""Formulas as the reference evaluates them: grammar, functions, IEEE 754 to the last bit."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berthline.policies.formulas import FUNCTIONS, OPERATIONS, Formula

INF, NAN = math.inf, math.nan


def value(text: str, **words: float) -> float:
    return Formula.parse(text).evaluate(lambda word: words[word])


def bits(number: float) -> int:
    """The number's bit pattern; every NaN is the same here."""
    return struct.unpack("<q", struct.pack("<d", NAN if math.isnan(number) else number))[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("10 - 4 - 3", 3.0),
        ("16 / 4 / 2", 2.0),
        ("16 / 4 * 2", 8.0),
        ("2 * 3 ** 2", 18.0),
        ("2 ** 3 ** 2", 512.0),
        ("(2 ** 3) ** 2", 64.0),
        ("-2 ** 2", -4.0),
        ("(-2) ** 2", 4.0),
        ("2 ** -1", 0.5),
        ("2 ** -2 ** 2", 0.0625),
        ("--3", 3.0),
        ("2 - -3", 5.0),
        ("2 * -3", -6.0),
        ("-2 * -3", 6.0),
        ("1 + 1 < 3", 1.0),
        ("1 < 1 + 1", 1.0),
        ("(1 < 2) + (2 < 1) * 8", 1.0),
        ("-(1 < 2)", -1.0),
        ("1.5e3 + .5 + 2. + 1E-1", 1502.6),
        ("1e2", 100.0),
        ("\t 1+\n1 ", 2.0),
    ],
)
def test_grammar__precedence_and_associativity(text: str, expected: float) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("symbol", "outcomes"),  # of 1 ? 2, 2 ? 2, 3 ? 2, NaN ? 2
    [
        ("<", (1, 0, 0, 0)),
        ("<=", (1, 1, 0, 0)),
        (">", (0, 0, 1, 0)),
        (">=", (0, 1, 1, 0)),
        ("==", (0, 1, 0, 0)),
        ("!=", (1, 0, 1, 1)),
    ],
)
def test_comparisons__give_one_or_zero(symbol: str, outcomes: tuple[int, ...]) -> None:
    found = tuple(value(f"gpus {symbol} 2", gpus=left) for left in (1.0, 2.0, 3.0, NAN))
    assert found == outcomes
    assert all(isinstance(outcome, float) for outcome in found)


@given(
    st.recursive(
        st.integers(0, 9).map(str) | st.sampled_from(["gpus", "wait"]),
        lambda inner: (
            st.tuples(inner, st.sampled_from([" + ", " - ", " * ", "*", "-"]), inner).map("".join)
            | inner.map("({})".format)
            | inner.map("-{}".format)
        ),
        max_leaves=12,
    )
)
@settings(max_examples=300, deadline=None)
def test_grammar__unbracketed_text_means_what_python_means(text: str) -> None:
    words = {"gpus": 3.0, "wait": 0.25}
    expected = eval(text, {"__builtins__": {}}, words)  # numbers, words, + - * and brackets only
    assert value(text, **words) == expected


@pytest.mark.parametrize("form", ["{}**{}", "-{}**{}", "{}**-{}", "2**{}**{}", "{}**{}**2*3-1"])
def test_grammar__powers_bind_as_in_python(form: str) -> None:
    for base in (-3, -1, 1, 2, 3):
        for power in (0, 1, 2, 3):
            text = form.format(f"({base})" if base < 0 else base, power)
            assert value(text) == float(eval(text)), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log2(8)", 3.0),
        ("log10(1000)", 3.0),
        ("ln(1)", 0.0),
        ("sqrt(2.25)", 1.5),
        ("exp(0)", 1.0),
        ("abs(-3)", 3.0),
        ("abs(3)", 3.0),
        ("floor(2.7)", 2.0),
        ("floor(-2.1)", -3.0),
        ("tanh(0)", 0.0),
        ("tanh(1e9)", 1.0),
        ("min(3, 1, 2)", 1.0),
        ("max(3, 1, 2)", 3.0),
        ("min(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0)", 0.0),
        ("clip(5, 0, 3)", 3.0),
        ("clip(-5, 0, 3)", 0.0),
        ("clip(2, 0, 3)", 2.0),
        ("clip(2, 3, 1)", 1.0),
        ("where(2 > 1, 10, 20)", 10.0),
        ("where(0, 10, 20)", 20.0),
        ("where(-0.5, 10, 20)", 10.0),
        ("ln(exp(1))", 1.0),
        ("max(1, min(2, 3)) * 2", 4.0),
        ("sqrt(gpus) ** 2", 9.0),
    ],
)
def test_functions__plain_values(text: str, expected: float) -> None:
    assert value(text, gpus=9.0) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 / 0", INF),
        ("-1 / 0", -INF),
        ("1 / (-0)", -INF),
        ("-1 / (-0)", INF),
        ("0 / 0", NAN),
        ("(0 / 0) / 0", NAN),
        ("1e999 / 0", INF),
        ("1e999 / 1e999", NAN),
        ("1e999 - 1e999", NAN),
        ("0 * 1e999", NAN),
        ("1 / 1e999", 0.0),
        ("-1 / 1e999", -0.0),
        ("1e308 * 10", INF),
        ("1e308 / 1e-308", INF),
        ("1e-308 / 1e308", 0.0),
        ("ln(0)", -INF),
        ("ln(-0)", -INF),
        ("log2(0)", -INF),
        ("log10(0)", -INF),
        ("ln(-1)", NAN),
        ("log2(-1e999)", NAN),
        ("log10(0 / 0)", NAN),
        ("ln(1e999)", INF),
        ("log2(5e-324)", -1074.0),
        ("sqrt(-1)", NAN),
        ("sqrt(-0)", -0.0),
        ("sqrt(1e999)", INF),
        ("sqrt(-1e999)", NAN),
        ("exp(1000)", INF),
        ("exp(-1000)", 0.0),
        ("exp(-1e999)", 0.0),
        ("abs(-0)", 0.0),
        ("abs(-1e999)", INF),
        ("floor(-0)", -0.0),
        ("floor(-0.5)", -1.0),
        ("floor(0.5)", 0.0),
        ("floor(1e300)", 1e300),
        ("floor(-1e999)", -INF),
        ("floor(0 / 0)", NAN),
        ("tanh(-0)", -0.0),
        ("tanh(0 / 0)", NAN),
        ("-0", -0.0),
        ("0 - 0", 0.0),
        ("-0 + 0", 0.0),
        ("10 ** 400", INF),
        ("(-10) ** 401", -INF),
        ("(-10) ** 400", INF),
        ("(-10) ** 1e300", INF),
        ("10 ** -400", 0.0),
        ("(-10) ** -401", -0.0),
        ("(-8) ** 0.5", NAN),
        ("(-1e-200) ** -3", -INF),
        ("(-1e-200) ** -2", INF),
        ("0 ** 0", 1.0),
        ("(0 / 0) ** 0", 1.0),
        ("1 ** (0 / 0)", 1.0),
        ("2 ** (0 / 0)", NAN),
        ("0 ** -1", INF),
        ("(-0) ** -1", -INF),
        ("(-0) ** -2", INF),
        ("(-0) ** -0.5", INF),
        ("(-0) ** 3", -0.0),
        ("0 ** -1e999", INF),
        ("(-1) ** 1e999", 1.0),
        ("0.5 ** 1e999", 0.0),
        ("0.5 ** -1e999", INF),
        ("(-1e999) ** 3", -INF),
        ("(-1e999) ** -3", -0.0),
        # min and max keep their first argument unless the second is strictly smaller (larger).
        ("min(0 / 0, 1)", NAN),
        ("min(1, 0 / 0)", 1.0),
        ("max(0 / 0, 1)", NAN),
        ("max(1, 0 / 0)", 1.0),
        ("min(0, -0)", 0.0),
        ("min(-0, 0)", -0.0),
        ("max(-0, 0)", -0.0),
        ("clip(0 / 0, 1, 2)", NAN),
        ("clip(5, 0 / 0, 2)", 2.0),
        ("where(0 / 0, 1, 2)", 1.0),
        ("where(-0, 1, 2)", 2.0),
        ("0 / 0 == 0 / 0", 0.0),
        ("0 / 0 != 0 / 0", 1.0),
        ("-0 == 0", 1.0),
        ("1e999 <= 1e999", 1.0),
    ],
)
def test_ieee754__nothing_raises(text: str, expected: float) -> None:
    assert bits(value(text)) == bits(expected), value(text)


def test_evaluate__every_operation_has_a_test_of_its_result() -> None:
    """The tables above cover every operation of formulas."""
    used: set[str] = set()
    for case in (
        *test_functions__plain_values.pytestmark[0].args[1],
        *test_ieee754__nothing_raises.pytestmark[0].args[1],
        *test_grammar__precedence_and_associativity.pytestmark[0].args[1],
    ):
        used |= {operation for operation, _, _ in Formula.parse(case[0]).bytecode()}
    assert used >= set(OPERATIONS)
    assert set(FUNCTIONS) - {"clip"} <= set(OPERATIONS)  # clip is a min of a max


def test_parameters__are_numbers_and_not_words() -> None:
    formula = Formula.parse("where(wait > T, r, gpus)", parameters={"T": 100, "r": 0.25})
    assert formula.words == {"wait", "gpus"}
    assert formula.evaluate({"wait": 101.0, "gpus": 8.0}.__getitem__) == 0.25
    assert formula.evaluate({"wait": 100.0, "gpus": 8.0}.__getitem__) == 8.0


def test_parse__keeps_the_text_and_names_the_words() -> None:
    formula = Formula.parse("-(wait/estimate)**3 * gpus")
    assert formula.text == "-(wait/estimate)**3 * gpus"
    assert formula.words == {"wait", "estimate", "gpus"}
    assert formula == Formula.parse("-(wait/estimate)**3 * gpus")
    assert formula != Formula.parse("-(wait/estimate)**2 * gpus")


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("1 + 2", "never"),
        ("submit + gpus * random", "never"),
        ("work / total_gpus", "never"),
        ("wait", "time"),
        ("gpus - now", "time"),
        ("slack + free_gpus", "state"),
        ("0 * can_start", "state"),
    ],
)
def test_changes__is_that_of_the_most_changing_word(text: str, changes: str) -> None:
    assert Formula.parse(text).changes == changes


@pytest.mark.parametrize(
    ("text", "expected"),
    [("gpus + wait", False), ("estimate", True), ("gpus * work", True), ("0 * queued_work", True)],
)
def test_uses_estimate__also_through_derived_words(text: str, expected: bool) -> None:
    assert Formula.parse(text).uses_estimate is expected


def test_bytecode__is_postfix_with_the_depth_of_the_stack() -> None:
    assert Formula.parse("where(wait > 2, -gpus, 1)").bytecode() == [
        ("number", 2.0, 1),
        ("word", "wait", 2),
        ("less", 0.0, 1),
        ("word", "gpus", 2),
        ("negate", 0.0, 2),
        ("number", 1.0, 3),
        ("where", 0.0, 1),
    ]


def test_bytecode__run_on_a_stack_gives_the_value_of_the_tree() -> None:
    formula = Formula.parse("max(gpus ** 2 - wait / 4, min(wait, 7) * 2, -gpus) <= 3 + wait")
    words = {"gpus": 3.0, "wait": 11.0}
    stack: list[float] = []
    for operation, operand, depth in formula.bytecode():
        if operation == "number":
            stack.append(float(operand))
        elif operation == "word":
            stack.append(words[str(operand)])
        else:
            arity, apply = OPERATIONS[operation]
            arguments = [stack.pop() for _ in range(arity)][::-1]
            stack.append(apply(*arguments))
        assert len(stack) == depth
    assert stack == [formula.evaluate(words.__getitem__)]


def test_numbers__are_read_exactly() -> None:
    for text in ("0.1", "1e-320", "123456789012345678", "2.2250738585072014e-308"):
        assert bits(value(text)) == bits(float(text))
    assert np.isinf(value("1e400"))
