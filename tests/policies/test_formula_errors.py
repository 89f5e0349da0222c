"""Errors for wrong formulas: what, at which position, what was expected, what was meant."""

from __future__ import annotations

import pytest

from berthline.errors import PolicyError
from berthline.policies.formulas import MAX_DEPTH, Formula

ATOM = "a number, a word, a function or '('"
END = "an operator, or the end of the formula"


def refusal(text: str) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        Formula.parse(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "what", "position", "expected"),
    [
        ("", "the formula ends early", 1, ATOM),
        ("   ", "the formula ends early", 1, ATOM),
        ("wait +", "the formula ends early", 7, ATOM),
        ("wait + ", "the formula ends early", 7, ATOM),
        ("-", "the formula ends early", 2, ATOM),
        ("2 **", "the formula ends early", 5, ATOM),
        ("(wait", "the formula ends early", 6, "')'"),
        ("min(1, 2", "the formula ends early", 9, "')'"),
        ("min", "the formula ends early", 4, "'('"),
        ("min(", "the formula ends early", 5, ATOM),
        ("min + 1", "found '+'", 5, "'('"),
        ("wait * / 2", "found '/'", 8, ATOM),
        ("()", "found ')'", 2, ATOM),
        ("min(,1)", "found ','", 5, ATOM),
        ("min(1,)", "found ')'", 7, ATOM),
        ("wait)", "found ')'", 5, END),
        ("wait gpus", "found 'gpus'", 6, END),
        ("2gpus", "found 'gpus'", 2, END),
        ("1.5.2", "found '.2'", 4, END),
        ("wait, gpus", "found ','", 5, END),
        ("gpus(2)", "found '('", 5, END),
        ("1 < 2 < 3", "found '<'", 7, END),
        ("1 == 2 != 3", "found '!='", 8, END),
        ("+1", "found '+'", 1, ATOM),
        ("wait $ 2", "unexpected character '$'", 6, ""),
        ("  @", "unexpected character '@'", 3, ""),
        ("wait = 2", "unexpected character '='", 6, ""),
        ("wait % 2", "unexpected character '%'", 6, ""),
        ("wait & 2", "unexpected character '&'", 6, ""),
        ("gpus[0]", "unexpected character '['", 5, ""),
        ("'a'", 'unexpected character "\'"', 1, ""),
        ("wait.real", "unexpected character '.'", 5, ""),
        ("wait − 1", "unexpected character '−'", 6, ""),
    ],
)
def test_syntax__names_what_was_found_and_its_position(
    text: str, what: str, position: int, expected: str
) -> None:
    error = refusal(text)
    assert error.what == what
    assert error.where == f"position {position} of formula {text!r}"
    assert error.expected == expected


@pytest.mark.parametrize(
    ("text", "word", "position", "meant"),
    [
        ("wait / estimte", "estimte", 8, "estimate"),
        ("gpu", "gpu", 1, "gpus"),
        ("2 * free_gpu + 1", "free_gpu", 5, "free_gpus"),
        ("max(1, quue_len)", "quue_len", 8, "queue_len"),
        ("srqt(2)", "srqt", 1, "sqrt"),
        ("Wait", "Wait", 1, "wait"),
        ("T", "T", 1, None),
        ("xyzzy", "xyzzy", 1, None),
    ],
)
def test_unknown_word__names_the_nearest_and_the_position(
    text: str, word: str, position: int, meant: str | None
) -> None:
    error = refusal(text)
    assert error.what == f"unknown word {word!r}"
    assert error.where == f"position {position} of formula {text!r}"
    assert error.expected == "a word of the vocabulary or a function"
    if meant is None:
        assert error.hint == "all of them: berthline policies words"
    else:
        assert error.hint == f"did you mean {meant!r}? all of them: berthline policies words"


def test_unknown_word__nearest_match_may_be_a_parameter() -> None:
    with pytest.raises(PolicyError, match="did you mean 'limit'"):
        Formula.parse("wait - limitt", parameters={"limit": 3.0})


def test_unknown_word__reads_as_text() -> None:
    assert str(refusal("wait / estimte")) == (
        "unknown word 'estimte': position 8 of formula 'wait / estimte'\n"
        "expected: a word of the vocabulary or a function\n"
        "hint: did you mean 'estimate'? all of them: berthline policies words"
    )


@pytest.mark.parametrize(
    ("text", "what", "position", "expected"),
    [
        ("1 + sqrt(1, 2)", "sqrt got 2 arguments", 5, "1 arguments"),
        ("min(1)", "min got 1 arguments", 1, "2"),
        ("max(1)", "max got 1 arguments", 1, "2"),
        ("clip(1, 2)", "clip got 2 arguments", 1, "3 arguments"),
        ("where(1)", "where got 1 arguments", 1, "3 arguments"),
        ("where(1, 2, 3, 4)", "where got 4 arguments", 1, "3 arguments"),
    ],
)
def test_arguments__wrong_number(text: str, what: str, position: int, expected: str) -> None:
    error = refusal(text)
    assert error.what == what
    assert error.where == f"position {position} of formula {text!r}"
    assert error.expected.startswith(expected)


@pytest.mark.parametrize("name", ["min", "max"])
def test_arguments__too_many_names_the_most_there_may_be(name: str) -> None:
    error = refusal(f"{name}({', '.join(['1'] * 17)})")
    assert error.what == f"{name} got 17 arguments"
    assert "16" in error.expected, "17 are refused, so '2 or more' would be wrong"


@pytest.mark.parametrize("text", ["(" * 200 + "1" + ")" * 200, "-" * 200 + "1"])
def test_too_deep__brackets_and_signs(text: str) -> None:
    error = refusal(text)
    assert error.what == "the formula is nested too deeply"
    assert error.where == f"position 101 of formula {text!r}"


def test_too_deep__more_values_at_once_than_the_native_stack_has() -> None:
    deepest = "+(".join(["1"] * MAX_DEPTH) + ")" * (MAX_DEPTH - 1)
    assert Formula.parse(deepest).evaluate({}.__getitem__) == MAX_DEPTH
    error = refusal("1+(" + deepest + ")")
    assert error.what == "the formula is nested too deeply"
    assert error.expected == f"at most {MAX_DEPTH} values held at once"


@pytest.mark.parametrize("terms", [100, 500, 5000])
@pytest.mark.parametrize("symbol", ["+", "-", "*", "/"])
def test_long_chain__is_evaluated_or_refused(symbol: str, terms: int) -> None:
    """A sum of many terms holds two values at once; no length overflows Python's stack."""
    text = symbol.join(["1"] * terms)
    try:
        found = Formula.parse(text).evaluate({}.__getitem__)
    except PolicyError:
        assert terms > 100
    else:
        assert found == {"+": terms, "-": 2 - terms}.get(symbol, 1.0)
