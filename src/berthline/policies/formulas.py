"""Formulas: the expression language of orderings, gates, observations and rewards.

`Formula.parse` tokenizes and checks a text once. The reference simulator walks the resulting tree
(`Formula.evaluate`); the native core runs the bytecode made from the same tree
(`Formula.bytecode`). Both follow IEEE 754 and the C library, so that they agree to the last bit:
1/0 is infinity, ln(0) is -infinity, sqrt(-1) is not a number, and nothing raises.

    formula    := comparison
    comparison := sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]      gives 1 or 0
    sum        := product (("+" | "-") product)*
    product    := unary (("*" | "/") unary)*
    unary      := "-" unary | power
    power      := atom ["**" unary]                                      -x**2 is -(x**2)
    atom       := NUMBER | WORD | FUNCTION "(" formula ("," formula)* ")" | "(" formula ")"
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from typing import TYPE_CHECKING

from berthline.errors import PolicyError, unknown_name
from berthline.policies.reward_words import REWARD_WORDS
from berthline.policies.vocabulary import CHANGES, VOCABULARY, Changes, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_DEPTH = 32
"""Most values of a formula on the native core's stack at once."""

MAX_TERMS = 200
"""Most operators in a formula; a longer chain gives a tree that is too deep for Python."""


ALL_WORDS: dict[str, Word] = VOCABULARY | REWARD_WORDS

OF_JOBS = frozenset({"job", "cluster"})
"""Scopes of the words in orders, gates and preemption rules."""

OF_PLACES = frozenset({"job", "cluster", "node"})
"""Scopes of the words in placements."""

_WHAT_SCOPES_MEAN = {
    "job": ("about a job", "words about jobs are for orders, gates and columns about jobs"),
    "cluster": ("about the cluster", ""),
    "node": ("about a node", "words about nodes are for placements: @[FORMULA]"),
    "system": ("for rewards", "berthline policies words lists the others"),
    "decision": ("for rewards of decisions", "berthline policies words lists the others"),
    "finish": ("for rewards of finished jobs", "berthline policies words lists the others"),
    "end": ("for rewards at the end", "berthline policies words lists the others"),
}

ASK_FOR_A_PLACE = frozenset({"can_start", "ways_tier1", "ways_tier2"})
"""Words that a placement must not use."""


@dataclasses.dataclass(frozen=True)
class Node:
    """One node of a formula's tree: an operation on its arguments, a word, or a number."""

    op: str
    args: tuple[Node, ...] = ()
    word: str = ""
    value: float = 0.0


def _divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _power(a: float, b: float) -> float:
    is_odd = math.isfinite(b) and b % 2 == 1
    try:
        return math.pow(a, b)
    except ValueError:
        if a == 0:
            return math.copysign(math.inf, a) if is_odd else math.inf
        return math.nan
    except OverflowError:
        return -math.inf if a < 0 and is_odd else math.inf


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    def apply(x: float) -> float:
        if x > 0 or math.isnan(x):
            return function(x)
        return -math.inf if x == 0 else math.nan

    return apply


def _sqrt(x: float) -> float:
    return math.nan if x < 0 else math.sqrt(x)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _floor(x: float) -> float:
    return math.copysign(float(math.floor(x)), x) if math.isfinite(x) else x


# What each operation computes, and how many arguments it takes. The native core has a loop over
# columns for each of these names.
OPERATIONS: dict[str, tuple[int, Callable[..., float]]] = {
    "add": (2, lambda a, b: a + b),
    "subtract": (2, lambda a, b: a - b),
    "multiply": (2, lambda a, b: a * b),
    "divide": (2, _divide),
    "power": (2, _power),
    "negate": (1, lambda a: -a),
    "less": (2, lambda a, b: float(a < b)),
    "less_equal": (2, lambda a, b: float(a <= b)),
    "equal": (2, lambda a, b: float(a == b)),
    "not_equal": (2, lambda a, b: float(a != b)),
    "log2": (1, _logarithm(math.log2)),
    "log10": (1, _logarithm(math.log10)),
    "ln": (1, _logarithm(math.log)),
    "sqrt": (1, _sqrt),
    "exp": (1, _exp),
    "abs": (1, abs),
    "floor": (1, _floor),
    "tanh": (1, math.tanh),
    "min": (2, lambda a, b: b if b < a else a),
    "max": (2, lambda a, b: b if b > a else a),
    "where": (3, lambda c, a, b: a if c != 0 else b),
}

# Functions a formula may call, with the number of arguments (at least, at most).
_ANY = 16
FUNCTIONS: dict[str, tuple[int, int]] = {
    "log2": (1, 1),
    "log10": (1, 1),
    "ln": (1, 1),
    "sqrt": (1, 1),
    "exp": (1, 1),
    "abs": (1, 1),
    "floor": (1, 1),
    "tanh": (1, 1),
    "min": (2, _ANY),
    "max": (2, _ANY),
    "clip": (3, 3),
    "where": (3, 3),
}

_COMPARISONS = {"<": "less", "<=": "less_equal", "==": "equal", "!=": "not_equal"}
_SWAPPED = {">": "less", ">=": "less_equal"}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<symbol>\*\*|<=|>=|==|!=|[-+*/()<>,]))"
)


@dataclasses.dataclass(frozen=True)
class Formula:
    """A checked formula.

    Attributes:
        text: what was written.
        root: its tree.
        words: the vocabulary it uses.
    """

    text: str
    root: Node
    # Not in the text form, which kept runs are found by: the order of a set differs by process.
    words: frozenset[str] = dataclasses.field(repr=False)

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        parameters: Mapping[str, float] | None = None,
        scopes: frozenset[str] = OF_JOBS,
    ) -> Formula:
        """Check `text` and return it as a formula.

        Args:
            text: the formula.
            parameters: further names with fixed values, such as a gate's options.
            scopes: what its words may be about.

        Raises:
            PolicyError: the text is not a formula, or uses a word that does not exist.

        Example:
            >>> Formula.parse("-(wait/estimate)**3 * gpus").changes
            'time'
        """
        return _parsed(text, tuple((parameters or {}).items()), scopes)

    @property
    def changes(self) -> Changes:
        """When its value may change while a job waits: never, time or state."""
        return max(
            (ALL_WORDS[word].changes for word in self.words), key=CHANGES.index, default="never"
        )

    @property
    def uses_estimate(self) -> bool:
        """Whether it needs to know run times."""
        return any(ALL_WORDS[word].estimate for word in self.words)

    def evaluate(self, value_of: Callable[[str], float]) -> float:
        """Return the formula's value, asking `value_of` for each word."""

        def walk(node: Node) -> float:
            if node.op == "word":
                return value_of(node.word)
            if node.op == "number":
                return node.value
            return OPERATIONS[node.op][1](*map(walk, node.args))

        return walk(self.root)

    def bytecode(self) -> list[tuple[str, str | float, int]]:
        """Return postfix instructions: (operation, word or number, stack depth after it)."""
        code: list[tuple[str, str | float, int]] = []

        def emit(node: Node, depth: int) -> None:
            for position, argument in enumerate(node.args):
                emit(argument, depth + position)
            operand = node.word if node.op == "word" else node.value
            code.append((node.op, operand, depth + 1))

        emit(self.root, 0)
        return code


@functools.lru_cache(maxsize=1024)
def _parsed(
    text: str, parameters: tuple[tuple[str, float], ...], scopes: frozenset[str]
) -> Formula:
    parser = _Parser(text, dict(parameters), scopes)
    root = parser.formula()
    parser.expect_end()
    formula = Formula(text, root, frozenset(parser.words))
    if max(depth for _, _, depth in formula.bytecode()) > MAX_DEPTH:
        raise PolicyError(
            "the formula is nested too deeply",
            where=repr(text),
            expected=f"at most {MAX_DEPTH} values held at once",
        )
    return formula


class _Parser:
    """Recursive descent over the tokens of one formula."""

    def __init__(self, text: str, parameters: Mapping[str, float], scopes: frozenset[str]) -> None:
        self.text, self.parameters, self.scopes = text, parameters, scopes
        self.words: set[str] = set()
        self.nesting = 0
        self.operators = 0
        self.tokens: list[tuple[str, str, int]] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                start = position + len(text[position:]) - len(text[position:].lstrip())
                raise self.error(f"unexpected character {text[start]!r}", start)
            kind = match.lastgroup or ""
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            position = match.end()
        self.tokens.append(("end", "", len(text.rstrip())))
        self.next = 0

    def error(self, what: str, position: int, expected: str = "", hint: str = "") -> PolicyError:
        where = f"position {position + 1} of formula {self.text!r}"
        return PolicyError(what, where=where, expected=expected, hint=hint)

    def take(self, *symbols: str) -> str | None:
        kind, text, position = self.tokens[self.next]
        if kind != "symbol" or text not in symbols:
            return None
        self.next += 1
        self.operators += text not in "(),"
        if self.operators > MAX_TERMS:
            raise self.error("the formula is too long", position, f"at most {MAX_TERMS} operators")
        return text

    def require(self, symbol: str) -> None:
        if self.take(symbol) is None:
            _, text, position = self.tokens[self.next]
            raise self.error(
                f"found {text!r}" if text else "the formula ends early", position, repr(symbol)
            )

    def expect_end(self) -> None:
        kind, text, position = self.tokens[self.next]
        if kind != "end":
            raise self.error(f"found {text!r}", position, "an operator, or the end of the formula")

    def formula(self) -> Node:
        left = self.sum()
        if symbol := self.take(*_COMPARISONS):
            return Node(_COMPARISONS[symbol], (left, self.sum()))
        if symbol := self.take(*_SWAPPED):
            return Node(_SWAPPED[symbol], (self.sum(), left))
        return left

    def sum(self) -> Node:
        left = self.product()
        while symbol := self.take("+", "-"):
            left = Node("add" if symbol == "+" else "subtract", (left, self.product()))
        return left

    def product(self) -> Node:
        left = self.unary()
        while symbol := self.take("*", "/"):
            left = Node("multiply" if symbol == "*" else "divide", (left, self.unary()))
        return left

    def unary(self) -> Node:
        # Every way to nest passes through here, so this guards Python's own stack.
        self.nesting += 1
        if self.nesting > 100:
            raise self.error("the formula is nested too deeply", self.tokens[self.next][2])
        node = Node("negate", (self.unary(),)) if self.take("-") else self.power()
        self.nesting -= 1
        return node

    def power(self) -> Node:
        base = self.atom()
        return Node("power", (base, self.unary())) if self.take("**") else base

    def atom(self) -> Node:
        kind, text, position = self.tokens[self.next]
        if self.take("("):
            inner = self.formula()
            self.require(")")
            return inner
        self.next += 1
        if kind == "number":
            return Node("number", value=float(text))
        if kind == "name":
            if text in FUNCTIONS:
                return self.call(text, position)
            if text in self.parameters:
                return Node("number", value=float(self.parameters[text]))
            if text in ALL_WORDS:
                scope = ALL_WORDS[text].scope
                if scope not in self.scopes:
                    what, hint = _WHAT_SCOPES_MEAN[scope]
                    allowed = sorted(_WHAT_SCOPES_MEAN[other][0] for other in self.scopes)
                    raise self.error(
                        f"{text} is {what}",
                        position,
                        "a word " + " or ".join(allowed),
                        hint,
                    )
                if text in ASK_FOR_A_PLACE and self.scopes == OF_PLACES:
                    raise self.error(f"{text} itself needs a placement", position, "another word")
                self.words.add(text)
                return Node("word", word=text)
            known = [*self.allowed_words(), *FUNCTIONS, *self.parameters]
            what, _, hint = unknown_name(
                "word", text, known, list_command="berthline policies words"
            )
            raise self.error(what, position, "a word of the vocabulary or a function", hint)
        found = f"found {text!r}" if text else "the formula ends early"
        raise self.error(found, position, "a number, a word, a function or '('")

    def allowed_words(self) -> list[str]:
        return [word.name for word in ALL_WORDS.values() if word.scope in self.scopes]

    def call(self, name: str, position: int) -> Node:
        at_least, at_most = FUNCTIONS[name]
        self.require("(")
        args = [self.formula()]
        while self.take(","):
            args.append(self.formula())
        self.require(")")
        if not at_least <= len(args) <= at_most:
            wanted = str(at_least) if at_least == at_most else f"{at_least} to {at_most}"
            raise self.error(f"{name} got {len(args)} arguments", position, f"{wanted} arguments")
        if name == "clip":
            return Node("min", (Node("max", (args[0], args[1])), args[2]))
        if name in ("min", "max"):
            node = args[0]
            for argument in args[1:]:
                node = Node(name, (node, argument))
            return node
        return Node(name, tuple(args))
