"""What a cluster file says besides its nodes: racks, quotas, pools, outages, failures."""

import dataclasses
import math

import numpy as np
import pytest

from berthline.errors import ConfigError
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.limits import Outage, PoolRules, Quota
from berthline.sim.outages import outages

NODES = """\
[[nodes]]
count = 4
gpus = 8
gpu_type = "A100"
pool = "vision"
nodes_per_rack = 2

[[nodes]]
count = 2
gpus = 4
gpu_type = "T4"
pool = "speech"
rack = "old"
mtbf = 86400
mttr = 600
"""


@pytest.fixture
def read(tmp_path):
    def cluster(text, nodes=NODES):
        path = tmp_path / "my.toml"
        path.write_text(f"{nodes}\n{text}")
        return Cluster.from_toml(path)

    return cluster


class TestRacks:
    def test_named_numbered_and_shared(self, read):
        cluster = read("[[nodes]]\ncount = 1\ngpus = 2\n")
        assert [cluster.rack_names[rack] for rack in cluster.rack] == [
            *("rack1", "rack1", "rack2", "rack2", "old", "old", "rack0"),
        ]

    def test_groups_share_a_rack_by_its_name(self):
        groups = [NodeGroup(count=1, gpus=1, rack=rack) for rack in ("a", "b", "a")]
        cluster = Cluster.from_groups(groups)
        assert cluster.rack.tolist() == [0, 1, 0]
        assert cluster.rack_names == ("a", "b")

    def test_numbers_go_on_over_groups(self):
        groups = [NodeGroup(count=3, gpus=1, nodes_per_rack=2) for _ in range(2)]
        assert Cluster.from_groups(groups).rack.tolist() == [0, 0, 1, 2, 2, 3]

    def test_all_in_one_rack_unless_said(self):
        assert Cluster.uniform(nodes=5, gpus_per_node=1).rack_names == ("rack0",)

    @pytest.mark.parametrize("field", ["mtbf", "mttr", "nodes_per_rack"])
    def test_negative(self, read, field):
        group = f"[[nodes]]\ncount = 1\ngpus = 1\n{field} = -1\n"
        with pytest.raises(ConfigError, match=f"{field} is -1") as caught:
            read(group)
        assert "node group 3" in caught.value.where

    def test_a_mean_of_less_than_a_second(self):
        with pytest.raises(ConfigError, match=r"mtbf is 0\.5") as caught:
            Cluster.from_groups([NodeGroup(count=1, gpus=1, mtbf=0.5)])
        assert "1 or more; or 0" in caught.value.expected

    def test_named_or_numbered(self):
        with pytest.raises(ConfigError, match="rack and nodes_per_rack are both given"):
            Cluster.from_groups([NodeGroup(count=1, gpus=1, rack="a", nodes_per_rack=2)])

    def test_mtbf_of_a_group(self, read):
        cluster = read("")
        assert cluster.mtbf.tolist() == [0, 0, 0, 0, 86400, 86400]
        assert cluster.mttr.tolist() == [0, 0, 0, 0, 600, 600]


class TestQuotas:
    def test_read(self, read):
        cluster = read(
            '[[quotas]]\npool = "vision"\ngpus = 16\n'
            '[[quotas]]\nuser = "*"\ngpus = 0.5\n'
            '[[quotas]]\ngpu_type = "NVIDIA A100-SXM4-80GB"\ngpus = 24\n'
        )
        assert cluster.quotas == (
            Quota(gpus=16, pool="vision"),
            Quota(gpus=0.5, user="*"),
            Quota(gpus=24, gpu_type="A100-80"),
        )

    def test_type_that_the_file_defines(self, read):
        own = "[gpu_types.Z1]\ntflops = 9\nmemory_mib = 1\nidle_w = 1\npeak_w = 2\n"
        cluster = read(
            '[[quotas]]\ngpu_type = "Z1"\ngpus = 1\n',
            nodes=f'{own}[[nodes]]\ncount = 1\ngpus = 1\ngpu_type = "Z1"\n',
        )
        assert cluster.quotas[0].gpu_type == "Z1"

    @pytest.mark.parametrize(
        ("text", "what", "where"),
        [
            ('pool = "vison"\ngpus = 1', "unknown pool 'vison'", "quota 1"),
            ('gpu_type = "A10"\ngpus = 1', "unknown GPU type 'A10'", "quota 1"),
            ('pool = "vision"', "gpus is missing", "quota 1"),
            ("gpus = -1", "gpus is out of range", "quota 1"),
            ("gpus = inf", "gpus is out of range", "quota 1"),
            ('gpus = "all"', "gpus is a text", "quota 1"),
            ("gpus = 1\ngpu = 2", "unknown key 'gpu'", "quota 1"),
        ],
    )
    def test_errors(self, read, tmp_path, text, what, where):
        with pytest.raises(ConfigError, match=what) as caught:
            read(f"[[quotas]]\n{text}\n")
        assert str(tmp_path / "my.toml") in caught.value.where
        assert where in caught.value.where


class TestPools:
    def test_read(self, read):
        cluster = read("[pools.vision]\nlend = true\n[pools.speech]\nborrow = true\n")
        assert cluster.pool_rules == {
            "vision": PoolRules(lend=True),
            "speech": PoolRules(borrow=True),
        }

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("[pools.vison]\nlend = true", "unknown pool 'vison'"),
            ("[pools.vision]\nlends = true", "unknown key 'lends'"),
            ("[pools.vision]\nlend = 1", "lend is a whole number"),
        ],
    )
    def test_errors(self, read, text, what):
        with pytest.raises(ConfigError, match=what):
            read(text)

    def test_no_pools_at_all(self, read):
        with pytest.raises(ConfigError, match="unknown pool 'a'") as caught:
            read("[pools.a]\nlend = true", nodes="[[nodes]]\ncount = 1\ngpus = 1\n")
        assert "no node has a pool" in caught.value.expected
        assert "[pools.a]" in caught.value.where

    def test_nearest_name_is_offered(self, read):
        with pytest.raises(ConfigError) as caught:
            read("[pools.vison]\nlend = true")
        assert "did you mean 'vision'?" in caught.value.hint


class TestOutagesOfAFile:
    @pytest.mark.parametrize(
        ("text", "nodes"),
        [
            ("nodes = [5, 1]", (1, 5)),
            ('rack = "old"', (4, 5)),
            ("share = 0.5", (0, 1, 2)),
            ("share = 1", (0, 1, 2, 3, 4, 5)),
            ('rack = "old"\nnodes = [0, 4]', (0, 4, 5)),
        ],
    )
    def test_which_nodes(self, read, text, nodes):
        assert read(f"[[outages]]\ndown = 10\nup = 20\n{text}\n").outages == (
            Outage(down=10, up=20, nodes=nodes),
        )

    def test_for_ever_unless_they_come_back(self, read):
        assert read("[[outages]]\ndown = 10\nnodes = [0]\n").outages[0].up == math.inf

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("down = 10\nup = 10\nnodes = [0]", "down is 10 and up is 10"),
            ("down = 10\nup = 5\nnodes = [0]", "down is 10 and up is 5"),
            ("down = 10", "the outage names no nodes of the cluster"),
            ("down = 10\nnodes = [6]", "the outage names no nodes of the cluster"),
            ("down = 10\nnodes = [-1]", "the outage names no nodes of the cluster"),
            ("down = 10\nshare = 0.01", "the outage names no nodes of the cluster"),
            ('down = 10\nrack = "odl"', "unknown rack 'odl'"),
            ("nodes = [0]", "down is missing"),
            ("down = -1\nnodes = [0]", "down is out of range"),
            ("down = 1\nshare = 1.5", "share is out of range"),
            ('down = 1\nnodes = ["x"]', "nodes, entry 1 is a text"),
        ],
    )
    def test_errors(self, read, tmp_path, text, what):
        with pytest.raises(ConfigError, match=what) as caught:
            read(f"[[outages]]\n{text}\n")
        assert caught.value.where.startswith(f"{tmp_path / 'my.toml'}, outage 1")


def listed(*given, nodes=3):
    """Return the changes of a cluster with these (down, up, nodes)."""
    groups = [NodeGroup(count=nodes, gpus=1)]
    cluster = dataclasses.replace(
        Cluster.from_groups(groups),
        outages=tuple(Outage(down=down, up=up, nodes=which) for down, up, which in given),
    )
    found = outages(cluster, seed=0, until=1e6)
    return list(zip(found.time.tolist(), found.node.tolist(), found.up.tolist(), strict=True))


DOWN, UP = 0, 1


class TestListedOutages:
    def test_none(self):
        assert listed() == []

    def test_overlapping_ones_are_one(self):
        assert listed((10, 30, (1,)), (20, 50, (1,))) == [(10, 1, DOWN), (50, 1, UP)]

    def test_one_within_another(self):
        assert listed((10, 90, (1,)), (20, 50, (1,))) == [(10, 1, DOWN), (90, 1, UP)]

    def test_one_right_after_another_leaves_the_node_down(self):
        assert listed((10, 20, (0,)), (20, 30, (0,))) == [(10, 0, DOWN), (30, 0, UP)]

    def test_apart(self):
        changes = [(10, 0, DOWN), (20, 0, UP), (21, 0, DOWN), (30, 0, UP)]
        assert listed((21, 30, (0,)), (10, 20, (0,))) == changes

    def test_other_nodes_do_not_matter(self):
        changes = [(10, 0, DOWN), (15, 1, DOWN), (20, 0, UP), (30, 1, UP)]
        assert listed((10, 20, (0,)), (15, 30, (1,))) == changes

    def test_at_one_instant_ups_come_first_then_nodes_by_id(self):
        changes = [(5, 2, DOWN), (9, 2, UP), (9, 0, DOWN), (9, 1, DOWN), (12, 0, UP), (12, 1, UP)]
        assert listed((9, 12, (1, 0)), (5, 9, (2,))) == changes

    def test_for_ever(self):
        assert listed((5, math.inf, (0,)), (9, 12, (0,))) == [(5, 0, DOWN)]


class TestRandomFailures:
    UNTIL = 2e6

    def cluster(self, nodes=40, **conditions):
        group = NodeGroup(count=nodes, gpus=1, nodes_per_rack=4)
        return Cluster.from_groups([group]).with_conditions(conditions)

    def changes(self, cluster, seed=0):
        found = outages(cluster, seed=seed, until=self.UNTIL)
        return found.time, found.node, found.up

    def test_as_many_as_the_means_say(self):
        """A node fails once in mtbf + mttr; the test allows 4 sigma of a Poisson-like count."""
        cluster = self.cluster(mtbf=9000, mttr=1000)
        time, node, up = self.changes(cluster)
        expected = 40 * self.UNTIL / (9000 + 1000)
        failures = int((up == DOWN).sum())
        assert abs(failures - expected) < 4 * math.sqrt(expected)
        assert set(node.tolist()) == set(range(40))
        assert (np.diff(time) >= 0).all()

    def test_as_long_as_the_means_say(self):
        cluster = self.cluster(mtbf=9000, mttr=1000)
        time, node, up = self.changes(cluster)
        lengths = []
        for one in range(40):
            mine = np.flatnonzero(node == one)
            assert up[mine].tolist() == [DOWN, UP] * (len(mine) // 2)  # they alternate
            lengths += (time[mine][1::2] - time[mine][0::2]).tolist()
        # The standard error of the mean of n exponential times with mean 1000 is 1000 / sqrt(n).
        assert abs(np.mean(lengths) - 1000) < 4 * 1000 / math.sqrt(len(lengths))

    def test_none_begins_after_the_end(self):
        time, _, up = self.changes(self.cluster(mtbf=9000, mttr=1000))
        assert time[up == DOWN].max() <= self.UNTIL
        assert (up == DOWN).sum() == (up == UP).sum()  # but each one is repaired

    def test_the_seed_decides(self):
        cluster = self.cluster(mtbf=90_000)
        first, again, other = (self.changes(cluster, seed)[0].tolist() for seed in (1, 1, 2))
        assert first == again
        assert first != other

    def test_a_node_fails_when_it_would_alone(self):
        """More nodes, or another node's mtbf, do not change a node's own failures."""
        of_first = []
        for nodes in (4, 40):
            time, node, _ = self.changes(self.cluster(nodes, mtbf=90_000))
            of_first.append(time[node == 0].tolist())
        assert of_first[0] == of_first[1]

    def test_racks_fail_as_a_whole(self):
        cluster = self.cluster(rack_mtbf=200_000, rack_mttr=5000)
        time, node, up = self.changes(cluster)
        for kind in (DOWN, UP):
            instants = np.unique(time[up == kind])
            assert len(instants) > 50
            for instant in instants.tolist():
                together = node[(time == instant) & (up == kind)].tolist()
                rack = together[0] // 4
                assert together == list(range(4 * rack, 4 * rack + 4))
        expected = 10 * self.UNTIL / 205_000
        assert abs((up == DOWN).sum() / 4 - expected) < 4 * math.sqrt(expected)

    def test_a_group_has_its_own_mean(self):
        groups = [NodeGroup(count=20, gpus=1, mtbf=5000), NodeGroup(count=20, gpus=1)]
        cluster = Cluster.from_groups(groups).with_conditions({"mtbf": 50_000, "mttr": 1})
        _, node, up = self.changes(cluster)
        often, seldom = ((up == DOWN) & (node < 20)).sum(), ((up == DOWN) & (node >= 20)).sum()
        assert 8 < often / seldom < 12

    def test_rack_and_node_together_hold_a_node_down(self):
        both = self.cluster(mtbf=20_000, mttr=5000, rack_mtbf=30_000, rack_mttr=5000)
        time, node, up = self.changes(both)
        one = up[node == 7].tolist()
        assert one == [DOWN, UP] * (len(one) // 2)  # never down twice
        alone = self.cluster(mtbf=20_000, mttr=5000), self.cluster(rack_mtbf=30_000, rack_mttr=5000)
        parts = [self.changes(cluster) for cluster in alone]
        begins = set(time[(node == 7) & (up == DOWN)].tolist())
        of_parts = [set(t[(n == 7) & (u == DOWN)].tolist()) for t, n, u in parts]
        assert begins < of_parts[0] | of_parts[1]  # some began while it was already down

    def test_too_many(self):
        with pytest.raises(ConfigError, match="nodes would fail about") as caught:
            outages(self.cluster(mtbf=1), seed=0, until=1e9)
        assert "seconds" in caught.value.hint
