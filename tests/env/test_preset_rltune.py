"""The preset of RLTune: columns, rewards, its clusters and its own trace."""

from __future__ import annotations

import pytest
from tests.env.by_hand import at_random, first_allowed, make, play, play_by
from tests.shared_traces import SHARED_TRACES
from tests.sim.scenarios import allocations, jobs, nodes

from berthline.env.presets import PRESETS
from berthline.errors import ConfigError, PolicyError
from berthline.model.schedule import START

TRACES = SHARED_TRACES
TRACE = TRACES / "format_samples" / "rltune" / "synthetic_trace.csv"


class TestRltune:
    """One node of 4 GPUs: A takes all of it, B wants all of it, C is short and small."""

    WORKLOAD = jobs((0, 100, 4), (10, 100, 4), (20, 10, 1))
    A, B_ALONE, B, C, NO_OP = 0, 0, 0, 1, 128

    def episode(self, **options):
        env = make("pick", self.WORKLOAD, preset="rltune", cluster="uniform:1x4", **options)
        # A; then no-op until C arrives; C, for which time runs; B.
        return play(env, self.A, self.NO_OP, self.C, self.B_ALONE)

    def test_time_runs_until_the_chosen_job_starts(self):
        assert self.episode().times == [0, 10, 20, 100]

    def test_columns(self):
        seen = [observation["jobs"] for observation in self.episode().seen]
        # An empty node: 4 of 4 GPUs in the one way there is.
        assert seen[0][0] == pytest.approx([0, 1, 4 / 4 / 4, (4 - 4 + 4) / 8, 0, 1 / 3, 1 / 2])
        # Nothing is free: the third column is at its limit, the fourth is below its range.
        assert seen[2][0] == pytest.approx([10 / 43200, 1, 1, 0, 0, 0, 0])
        assert seen[2][1] == pytest.approx([0, 1 / 4, 1, 0, 0, 0, 0])
        # C has one of the GPUs: the node is partly in use, and B has no place.
        assert seen[3][0] == pytest.approx([90 / 43200, 1, 4 / 3 / 4, (3 - 4 + 4) / 8, 1, 0, 0])
        assert not seen[0][1:].any()

    def test_ways_to_place(self):
        workload = jobs((0, 100, 1), (0, 100, 2))
        env = make("pick", workload, preset="rltune", cluster=nodes(2, 2))
        seen = play(env, 0, 0).seen[1]["jobs"]  # the first job is on the first node
        # Two GPUs of the second node; or one of each, which leaves one node partly in use, as now.
        assert seen[0][5:] == pytest.approx([2 / 3, 1 / 2])

    @pytest.mark.parametrize(
        ("reward", "mine", "baseline"),
        [
            # A, C, B end at 100, 110, 210; under FCFS A, B, C end at 100, 200, 210.
            ("relative-bounded-slowdown", (1 + 9 + 2) / 3, (1 + 19 + 1.9) / 3),
            ("relative-slowdown", (1 + 9 + 2) / 3, (1 + 19 + 1.9) / 3),
            ("relative-wait", (0 + 80 + 100) / 3, (0 + 180 + 90) / 3),
            ("relative-jct", (100 + 90 + 200) / 3, (100 + 190 + 190) / 3),
        ],
    )
    def test_rewards(self, reward, mine, baseline):
        rewards = self.episode(reward=reward).rewards
        assert rewards == [0, 0, 0, pytest.approx((baseline - mine) / baseline)]

    def test_reward_of_utilization(self):
        """Both end at 210; a baseline that backfills ends at 200."""
        assert self.episode(reward="relative-utilization").rewards[-1] == 0
        workload = jobs((0, 100, 3), (10, 100, 4), (20, 10, 1))
        options = {"cluster": "uniform:1x4", "reward": "relative-utilization"}
        env = make("pick", workload, preset="rltune", baseline="fcfs+skip", **options)
        episode = play(env, 0, 0, 0)  # in order of submission: C is last, and ends at 210
        held = 300 + 400 + 10
        mine, theirs = held / (210 * 4), held / (200 * 4)
        assert episode.rewards[-1] == pytest.approx((mine - theirs) / theirs)

    def test_jobs_may_pass_the_chosen_one(self):
        workload = jobs((0, 100, 3), (10, 100, 4), (20, 10, 1))
        options = {"preset": "rltune", "cluster": "uniform:1x4"}
        strict = make("pick", workload, **options)
        assert play(strict, 0, 0, 0).info["sched"]["makespan"] == 210
        filled = make("pick", workload, discipline="easy", knowledge="exact", **options)
        assert play(filled, 0, 0).info["sched"]["makespan"] == 200

    def test_run_times_may_not_be_shown(self):
        with pytest.raises(PolicyError, match="knowledge is 'none'"):
            make("pick", preset="rltune", features=["estimate / 3600"])

    @pytest.mark.parametrize(
        ("options", "start"),
        [
            ({"discipline": "strict"}, 1000),  # the second job's virtual cluster blocks all others
            ({"discipline": "skip"}, 2),
            ({"semantics": "mask"}, 2),
        ],
    )
    def test_virtual_clusters_need_not_block_each_other(self, options, start):
        workload = jobs(
            (0, 1000, 16), (1, 10, 16), (2, 10, 8), pool=[0, 0, 1], pool_names=("3", "4")
        )
        env = make("pick", workload, preset="rltune", cluster="helios-rltune", **options)
        play_by(env, first_allowed)
        log = env.log()
        assert log.time[(log.kind == START) & (log.job == 2)].tolist() == [start]

    @pytest.mark.skipif(not TRACE.is_file(), reason=f"no trace at {TRACE}")
    @pytest.mark.parametrize("cluster", ["philly-rltune", "helios-rltune", "alibaba-pai-rltune"])
    @pytest.mark.parametrize("part", ["train", "test"])
    def test_its_own_trace(self, cluster, part):
        options = {"cluster": cluster, "load": None, "split": part, "split_gap": 600}
        options["start"] = "empty"  # so that all jobs of the episode are its own
        env = make("pick", preset="rltune", workload=str(TRACE), episode_jobs=256, **options)
        episode = play_by(env, at_random(1))
        assert episode.info["sched"]["completed"] == 256
        opened = env.plan.source.provenance.get("any_gpu_type")
        assert opened == (None if "alibaba" in cluster else {"T4": 268, "MISC": 692})

    TYPED = jobs(
        (0, 9, 1),
        (0, 9, 1),
        (0, 9, 1),
        (0, 9, 1),
        gpu_types=[0, 1, 0, -1],
        gpu_type_sets=("T4", "MISC|P100"),
    )

    @pytest.mark.parametrize(
        ("cluster", "opened", "rejected"),
        [
            ("philly-rltune", {"T4": 2}, 2),  # P100 only
            ("helios-rltune", {"T4": 2, "MISC|P100": 1}, 3),
            ("alibaba-pai-rltune", None, 0),
        ],
    )
    def test_types_that_a_cluster_has_not_bind_no_job(self, cluster, opened, rejected):
        env = make("pick", self.TYPED, preset="rltune", cluster=cluster)
        assert play_by(env, first_allowed).info["sched"]["completed"] == 4
        assert env.plan.source.provenance.get("any_gpu_type") == opened
        options = {"cluster": cluster, "missing_types": "reject"}
        strict = make("pick", self.TYPED, preset="rltune", **options)
        assert play_by(strict, first_allowed).info["sched"]["rejected"] == rejected

    def test_types_that_a_cluster_has_bind_jobs(self):
        """16 T4 are taken, so the next job for them waits, whatever else is free."""
        workload = jobs((0, 100, 16), (1, 9, 1), gpu_types=0, gpu_type_sets=("T4",))
        env = make("pick", workload, preset="rltune", cluster="alibaba-pai-rltune")
        assert play(env, 0, 0).info["sched"]["makespan"] == 109

    def test_missing_types_is_one_of_two(self):
        with pytest.raises(ConfigError, match="missing_types 'all'"):
            make("pick", preset="rltune", missing_types="all")

    def test_columns_on_philly(self):
        """16 nodes of 2 and 20 of 8: columns 3 and 4 are of all 192 GPUs."""
        env = make("pick", jobs((0, 9, 1), (0, 9, 8), (0, 9, 4)), preset="rltune")
        seen = [observation["jobs"] for observation in play(env, 0, 0, 0).seen]
        assert seen[0][1] == pytest.approx(
            [0, 1, 8 / 192 / 192, (192 - 13 + 192) / 384, 0, 2 / 3, 1]
        )
        # One small node is partly in use: 1 GPU there and 3 of a large one are a way of tier 2.
        assert seen[1][1] == pytest.approx(
            [0, 1 / 2, 4 / 191 / 192, (191 - 12 + 192) / 384, 1 / 36, 1, 1]
        )
        # A full node has no free GPU, and does not count in the fifth column.
        assert seen[2][0] == pytest.approx(
            [0, 1 / 2, 4 / 183 / 192, (183 - 4 + 192) / 384, 1 / 35, 1, 1]
        )

    @pytest.mark.parametrize(
        ("gpus", "where"), [(2, {0: 2}), (4, {16: 4}), (8, {16: 8}), (10, {0: 2, 16: 8})]
    )
    def test_kinds_of_nodes_on_philly(self, gpus, where):
        """As documented: the fewest nodes, which need not be of one kind."""
        env = make("pick", jobs((0, 9, gpus)), preset="rltune")
        play(env, 0)
        assert allocations(env.log()) == {0: where}

    def test_placement_by_the_mixed_integer_program(self):
        """Two GPUs next to those in use leave a node whole, which first fit does not."""
        workload = jobs((0, 99, 2), (0, 99, 6), (0, 9, 2))
        options = {"preset": "rltune", "cluster": nodes(8, 8)}
        env = make("pick", workload, placement="milp-candidates", **options)
        play(env, 0, 0, 0)
        assert allocations(env.log())[1] == {0: 6}
        assert "milp-candidates" in " ".join(PRESETS["rltune"].differences)

    @pytest.mark.parametrize("cluster", ["helios-rltune", "alibaba-pai-rltune"])
    def test_other_clusters(self, cluster):
        env = make("pick", preset="rltune", cluster=cluster, episode_jobs=30)
        assert play_by(env, first_allowed).terminated
