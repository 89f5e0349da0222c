"""The native core's row copies, which environments return from steps."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from tests.env.agents import options_of

from berthline import _native
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv


def test_row__copies_the_rows_of_one_number_whatever_their_shape() -> None:
    flat = np.arange(60, dtype=np.float32).reshape(3, 20)
    tables = {
        "part": flat[:, 4:16].reshape(3, 4, 3),
        "numbers": np.array([1.5, -2.5, 3.5]),
        "single": np.array([[7], [8], [9]], np.int8),
        "empty": np.zeros((3, 0, 2), np.bool_),
        "same": np.broadcast_to(np.arange(5), (3, 5)),
    }
    copies = _native.RowCopies(tables)
    for number in range(3):
        row = copies.row(number)
        assert list(row) == list(tables)
        assert all(map(np.array_equal, copies.values(number), row.values()))
        for name, table in tables.items():
            assert row[name].dtype == table.dtype
            assert row[name].shape == table.shape[1:]
            assert row[name].flags.owndata
            np.testing.assert_array_equal(row[name], table[number])
            np.testing.assert_array_equal(
                copies.values(number)[list(tables).index(name)], row[name]
            )


def test_row__shows_tables_as_they_are_by_then_and_stays_so() -> None:
    table = np.zeros((2, 3))
    copies = _native.RowCopies({"table": table})
    before = copies.row(1)["table"]
    table[1] = 5.0
    after = copies.row(1)["table"]
    after[0] = -1.0
    np.testing.assert_array_equal(before, [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(after, [-1.0, 5.0, 5.0])
    np.testing.assert_array_equal(table[1], [5.0, 5.0, 5.0])


@pytest.mark.parametrize(
    "tables",
    [
        {"list": [1, 2]},
        {"number": np.array(1.0)},
        {"apart": np.zeros((2, 6))[:, ::2]},
        {"turned": np.zeros((2, 3, 4)).transpose(0, 2, 1)},
        {"two": np.zeros(2), "three": np.zeros(3)},
    ],
)
def test_row_copies__tables_that_it_cannot_copy_are_refused(tables: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"table|piece"):
        _native.RowCopies(tables)  # type: ignore[arg-type]


def test_row__there_must_be_such_a_row() -> None:
    with pytest.raises(ValueError, match="no such row"):
        _native.RowCopies({"table": np.zeros((2, 3))}).row(2)


def test_step__what_is_returned_stays_as_it_was() -> None:
    single = SchedulingEnv("pick", **options_of("pick"))
    observation, info = single.reset(seed=1)
    seen = []
    for _ in range(5):
        kept = [observation, info]
        seen.append((kept, deepcopy(kept)))
        observation, *_, info = single.step(int(np.argmax(info["action_mask"])))
    for kept, copied in seen:
        for one, other in zip(kept, copied, strict=True):
            assert all(np.array_equal(one[name], other[name]) for name in other)


@pytest.mark.parametrize("seat", ["pick", "pickplace"])
def test_step__takes_actions_of_any_whole_numbers(seat: str) -> None:
    def play(change: str) -> list[float]:
        envs = SchedulingVectorEnv(4, seat, **options_of(seat))
        _, infos = envs.reset(seed=2)
        rewards = []
        for _ in range(30):
            chosen = np.argmax(infos["action_mask"][:, : envs.plan.num_actions], axis=1)
            if seat == "pickplace":
                chosen = np.stack((chosen, np.zeros_like(chosen)), axis=1)
            actions = {
                "none": lambda given: given,
                "int32": lambda given: given.astype(np.int32),
                "list": lambda given: given.tolist(),
                "apart": lambda given: np.repeat(given, 2, axis=0)[::2],
            }[change](chosen)
            _, reward, _, _, infos = envs.step(actions)
            rewards += reward.tolist()
        return rewards

    expected = play("none")
    assert any(expected)
    assert play("int32") == play("list") == play("apart") == expected
