"""The jobs of a batch's slots: functions of (seed, slot, episode), and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import berthline as bl
from berthline.env.episode_supply import ENOUGH
from berthline.env.episodes_source import (
    MOST_EPISODES,
    MOST_SLOTS,
    GeneratedEpisodes,
    TraceWindows,
    WholeTrace,
    numbers_of,
)
from berthline.errors import ConfigError
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload
from berthline.traces.generators.fitted.fit import fit
from berthline.traces.generators.synthetic import GENERATORS, episodes
from berthline.traces.split import PARTS, split_by_time

CLUSTER = Cluster.uniform(nodes=8, gpus_per_node=8)
COLUMNS = (
    *("submit", "run", "estimate", "gpus", "gpu_milli", "cpus", "memory_mib"),
    *("priority", "deadline", "user", "pool", "gpu_types", "ran_on"),
)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("fitted") / "x.fit.json"
    fit(bl.generate("diurnal", cluster=CLUSTER, jobs=3000)).save(path)
    return str(path)


@pytest.fixture(scope="module")
def trace() -> Workload:
    return bl.generate("lsf", cluster=CLUSTER, jobs=1000, seed=2)


def keys_of(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array(pairs, np.int64).reshape(-1, 2)


def assert_same(columns, expected):
    assert set(columns) == set(expected) == set(COLUMNS)
    for name, table in columns.items():
        assert table.dtype == expected[name].dtype
        np.testing.assert_array_equal(table, expected[name], err_msg=name)


def shuffled_keys(slots: int, each: int, seed: int = 0) -> np.ndarray:
    pairs = np.stack(np.divmod(np.arange(slots * each), each), axis=1)
    return np.random.Generator(np.random.Philox(seed)).permutation(pairs)


def drawn_in_groups(source, keys: np.ndarray, size: int) -> dict[str, np.ndarray]:
    parts = [source.draw(keys[begin : begin + size]) for begin in range(0, len(keys), size)]
    return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}


class TestAnyGrouping:
    @pytest.mark.parametrize("name", [*GENERATORS, "fitted"])
    def test_of_generated_episodes(self, name, fitted):
        text = fitted if name == "fitted" else name

        def source() -> GeneratedEpisodes:
            load = None if name == "batch" else (0.5, 1.5)
            return GeneratedEpisodes(text, CLUSTER, jobs=40, load=load, seed=3)

        keys = shuffled_keys(9, 6)
        whole = source().draw(keys)
        for size in (1, 2, 7, ENOUGH, 50):
            assert_same(drawn_in_groups(source(), keys, size), whole)
        few = source().draw(keys[5:8])  # from another source, in another group
        assert_same(few, {column: table[5:8] for column, table in whole.items()})

    def test_of_windows(self, trace):
        keys = shuffled_keys(9, 6)
        whole = TraceWindows(trace, jobs=30, seed=4).draw(keys)
        for size in (1, 7):
            assert_same(drawn_in_groups(TraceWindows(trace, jobs=30, seed=4), keys, size), whole)

    def test_slots_that_finish_one_by_one(self):
        source = GeneratedEpisodes("bursty", CLUSTER, jobs=25, seed=1)
        plain = GeneratedEpisodes("bursty", CLUSTER, jobs=25, seed=1)
        slots = 40
        source.draw(np.stack((np.arange(slots), np.zeros(slots, np.int64)), axis=1))
        episode = np.zeros(slots, np.int64)
        order = np.random.Generator(np.random.Philox(1)).integers(0, slots, 300)
        for slot in order.tolist():
            episode[slot] += 1
            keys = keys_of((slot, int(episode[slot])))
            expected = {
                name: table[:1] for name, table in plain.draw(keys.repeat(ENOUGH, axis=0)).items()
            }
            assert_same(source.draw(keys), expected)


class TestGenerated:
    def test_slot_0_has_the_generators_first_episodes(self):
        source = GeneratedEpisodes("lublin", CLUSTER, jobs=30, load=0.7, seed=9)
        drawn = source.draw(keys_of((0, 0), (0, 1), (5, 2)))
        first = episodes("lublin", cluster=CLUSTER, count=2, jobs=30, load=0.7, seed=9)
        number = 5 * MOST_EPISODES + 2
        other = episodes(
            "lublin", cluster=CLUSTER, count=1, first=number, jobs=30, load=0.7, seed=9
        )
        for name, table in first.columns.items():
            np.testing.assert_array_equal(drawn[name][:2], table)
            np.testing.assert_array_equal(drawn[name][2:], other.columns[name])

    def test_columns_are_those_of_a_workload(self, fitted):
        for text in ("synthetic", "lsf", fitted):
            source = GeneratedEpisodes(text, CLUSTER, jobs=20)
            drawn = source.draw(keys_of((1, 1), (0, 3)))
            workload = Workload.from_columns(
                **{name: table[0] for name, table in drawn.items()},
                user_names=source.user_names,
                rebase=False,
            )
            for name, table in drawn.items():
                assert table.shape == (2, 20)
                assert table[1].flags.c_contiguous
                assert table.dtype == getattr(workload, name).dtype
                np.testing.assert_array_equal(table[0], getattr(workload, name))

    def test_seeds_slots_and_episodes_differ(self):
        drawn = GeneratedEpisodes("synthetic", CLUSTER, jobs=20, seed=1).draw(
            keys_of((0, 1), (1, 0), (1, 1), (0, 0))
        )["run"]
        other = GeneratedEpisodes("synthetic", CLUSTER, jobs=20, seed=2).draw(keys_of((0, 1)))
        assert len(np.unique(np.concatenate((drawn, other["run"])), axis=0)) == 5

    @pytest.mark.parametrize("name", ["synthetic", "bursty", "lublin", "lsf", "diurnal"])
    def test_an_episode_with_a_load_is_the_generators_with_that_load(self, name):
        source = GeneratedEpisodes(name, CLUSTER, jobs=30, load=(0.5, 2.0), seed=3)
        keys = keys_of((0, 4), (0, 5))
        loads = source.loads(keys)
        assert len(set(loads.tolist())) == 2
        drawn = source.draw(keys)
        for row, load in enumerate(loads.tolist()):
            alone = episodes(
                name, cluster=CLUSTER, count=1, first=4 + row, jobs=30, load=load, seed=3
            )
            for column, table in alone.columns.items():
                np.testing.assert_array_equal(drawn[column][row], table[0], err_msg=column)

    def test_loads_are_spread_evenly(self):
        source = GeneratedEpisodes("synthetic", CLUSTER, jobs=5, load=(0.4, 1.4))
        loads = source.loads(shuffled_keys(100, 50))
        assert 0.4 <= loads.min() < 0.41
        assert 1.39 < loads.max() < 1.4
        assert loads.mean() == pytest.approx(0.9, abs=0.02)

    def test_a_curriculum_changes_what_is_drawn_later(self):
        source = GeneratedEpisodes("synthetic", CLUSTER, jobs=30, load=0.5, seed=3)
        at_once = source.draw(keys_of((0, 0), (1, 0), (2, 0)))
        kept = {name: table.copy() for name, table in at_once.items()}
        source.draw(keys_of((0, 1)))
        source.set_load(1.0, 2.0)
        later = source.draw(keys_of((1, 1)))
        assert_same(at_once, kept)
        fresh = GeneratedEpisodes("synthetic", CLUSTER, jobs=30, load=(1.0, 2.0), seed=3)
        assert_same(later, fresh.draw(keys_of((1, 1))))
        np.testing.assert_array_equal(source.loads(keys_of((1, 1))), fresh.loads(keys_of((1, 1))))

    def test_dials_and_own_rates(self):
        source = GeneratedEpisodes("lsf", CLUSTER, jobs=200, dials={"jobs_per_second": "5"})
        assert source.loads(keys_of((0, 0))) is None
        counts = np.unique(source.draw(keys_of((0, 0)))["submit"], return_counts=True)[1]
        assert counts.max() <= 5

    def test_no_episodes_at_all(self):
        source = GeneratedEpisodes("synthetic", CLUSTER, jobs=20)
        source.draw(keys_of((0, 0)))
        drawn = source.draw(keys_of())
        assert set(drawn) == set(COLUMNS)
        assert all(table.shape == (0, 20) for table in drawn.values())

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"workload": "nope"}, "unknown workload 'nope'"),
            ({"workload": "bursty", "jobs": 0}, "jobs is 0"),
            ({"workload": "bursty", "load": (1.2, 0.5)}, "the load goes from 1.2 to 0.5"),
            ({"workload": "bursty", "load": -1.0}, "load is -1.0"),
            ({"workload": "batch", "load": 0.9}, "load is 0.9"),
            ({"workload": "bursty", "dials": {"x": 1}}, "unknown dial 'x'"),
            ({"workload": "bursty", "seed": -1}, "seed is -1"),
            ({"workload": "bursty", "dials": {"deadline_low": 3}}, "deadline_low is 3 and"),
        ],
    )
    def test_what_makes_no_sense(self, arguments, message):
        with pytest.raises(ConfigError, match=message):
            GeneratedEpisodes(**{"cluster": CLUSTER, "jobs": 10, **arguments})

    def test_a_trace_is_no_generator(self, tmp_path):
        path = tmp_path / "jobs.swf"
        path.write_text("1 0 -1 100 4 -1 -1 4 200 -1 1 7 -1 -1 -1 -1 -1 -1\n")
        with pytest.raises(ConfigError, match="a trace file, but jobs must be generated"):
            GeneratedEpisodes(str(path), CLUSTER, jobs=10)
        with pytest.raises(ConfigError, match="load is"):
            GeneratedEpisodes("batch", CLUSTER, jobs=10).set_load(0.5)


class TestWindows:
    def test_rows_are_the_windows_of_the_workload(self, trace):
        source = TraceWindows(trace, jobs=30, seed=4)
        keys = shuffled_keys(5, 10)
        drawn, first = source.draw(keys), source.first_jobs(keys)
        assert first.dtype == np.int64
        for row, begin in enumerate(first.tolist()):
            window = trace.window(begin, begin + 30)
            for name in COLUMNS:
                np.testing.assert_array_equal(drawn[name][row], getattr(window, name), name)
        assert all(table.flags.c_contiguous for table in drawn.values())

    @pytest.mark.parametrize("part", PARTS)
    def test_windows_stay_in_their_part(self, trace, part):
        gap = {"gap_jobs": 7, "gap_seconds": 2.0}
        source = TraceWindows(trace, jobs=40, part=part, fractions=(0.4, 0.3, 0.3), **gap)
        split = split_by_time(trace, (0.4, 0.3, 0.3), **gap)
        bounds = getattr(split, part).provenance["split"]
        first = source.first_jobs(shuffled_keys(100, 200))
        # Enough to draw every window.
        assert first.min() == bounds["first"]
        assert first.max() + 40 - 1 == bounds["last"]
        drawn = source.draw(keys_of((0, 0)))
        own = getattr(split, part)
        begin = int(source.first_jobs(keys_of((0, 0)))[0]) - bounds["first"]
        np.testing.assert_array_equal(drawn["run"][0], own.run[begin : begin + 40])

    def test_the_only_window(self, trace):
        source = TraceWindows(trace, jobs=len(trace))
        keys = keys_of((0, 0), (3, 2))
        assert source.first_jobs(keys).tolist() == [0, 0]
        assert_same(source.draw(keys), WholeTrace(trace).draw(keys))

    def test_what_makes_no_sense(self, trace):
        with pytest.raises(ConfigError, match="windows of 1,001 jobs, but there are 1,000"):
            TraceWindows(trace, jobs=1001)
        with pytest.raises(ConfigError, match="but the test part has 3"):
            TraceWindows(trace, jobs=400, part="test")
        with pytest.raises(ConfigError, match="there is no part 'tset' of a split"):
            TraceWindows(trace, jobs=4, part="tset")
        with pytest.raises(ConfigError, match="jobs is 0"):
            TraceWindows(trace, jobs=0)
        with pytest.raises(ConfigError, match="seed is -1"):
            TraceWindows(trace, jobs=4, seed=-1)


@pytest.mark.parametrize("part", ["train", "validation", "test", None])
def test_without_a_number_of_jobs__the_whole_of_a_part(trace, part):
    whole = trace if part is None else getattr(split_by_time(trace), part)
    source = TraceWindows(trace, jobs=None, part=part)
    assert source.jobs == len(whole)
    drawn = source.draw(keys_of((0, 0), (7, 3)))
    for row in (0, 1):
        np.testing.assert_allclose(drawn["submit"][row], whole.submit - whole.submit[0], atol=1e-6)
        np.testing.assert_array_equal(drawn["run"][row], whole.run)


def test_the_whole_trace_again_and_again(trace):
    source = WholeTrace(trace)
    drawn = source.draw(keys_of((0, 0), (9, 4), (1, 1)))
    assert source.first_jobs(keys_of((0, 0), (9, 4))).tolist() == [0, 0]
    for name in COLUMNS:
        for row in drawn[name]:
            np.testing.assert_array_equal(row, getattr(trace, name))


def test_every_key_has_a_number_of_its_own():
    edges = [0, 1, 2, 2**31, MOST_EPISODES - 1]
    slots = [0, 1, 2, 2**20, 2**31 - 1, 2**31, 2**31 + 1, 2**32, MOST_SLOTS - 1]
    numbers = numbers_of(keys_of(*((slot, episode) for slot in slots for episode in edges)))
    assert len(set(numbers.tolist())) == len(slots) * len(edges)
    assert [(numbers >= 0).sum(), numbers[0]] == [5 * len(edges), 0]


@pytest.mark.parametrize(
    "keys",
    [
        keys_of((-1, 0)),
        keys_of((0, -1)),
        keys_of((MOST_SLOTS, 0)),
        keys_of((0, MOST_EPISODES)),
        np.zeros(4, np.int64),
        np.zeros((2, 3), np.int64),
        np.zeros((2, 2)),
    ],
)
def test_wrong_keys_are_refused(trace, keys):
    for source in (
        GeneratedEpisodes("synthetic", CLUSTER, jobs=5),
        TraceWindows(trace, jobs=5),
        WholeTrace(trace),
    ):
        with pytest.raises(ConfigError):
            source.draw(keys)
