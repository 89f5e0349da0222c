"""Copies of frozen dataclasses with some fields changed."""

import dataclasses
from functools import cached_property

import pytest

from berthline.changed_copy import changed_copy


@dataclasses.dataclass(frozen=True)
class Pair:
    first: int
    second: list[int]

    @cached_property
    def total(self):
        return self.first + sum(self.second)


def test_equals_dataclasses_replace_and_shares_the_rest():
    pair = Pair(1, [2, 3])
    copy = changed_copy(pair, first=10)
    assert copy == dataclasses.replace(pair, first=10)
    assert copy.second is pair.second
    assert pair.first == 1


def test_what_is_no_field_is_not_copied():
    pair = Pair(1, [2])
    assert pair.total == 3
    assert changed_copy(pair, first=5).total == 7


def test_a_name_that_is_no_field():
    with pytest.raises(TypeError, match="no field of Pair: \\['third'\\]"):
        changed_copy(Pair(1, []), third=3)
