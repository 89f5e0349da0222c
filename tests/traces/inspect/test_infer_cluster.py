"""The cluster behind a log: what jobs held at once, where, and who shared it."""

import numpy as np
import pytest

import berthline as bl
from berthline.model.history import History
from berthline.model.write_cluster_file import cluster_text
from berthline.traces.inspect.infer_cluster import infer_cluster
from berthline.traces.inspect.infer_nodes import peak_use


def log(rows, *, with_nodes=True):
    """Return a log of rows (start, run, gpus, partition, nodes, type)."""
    start, run, gpus, partition, nodes, kind = map(list, zip(*rows, strict=True))
    lists, kinds, pools = (sorted(set(column)) for column in (nodes, kind, partition))
    return bl.Workload.from_columns(
        submit=start,
        run=run,
        gpus=gpus,
        pool=[pools.index(name) for name in partition],
        pool_names=tuple(pools),
        history=History(
            np.array(start, float),
            nodes=np.array([lists.index(name) for name in nodes]) if with_nodes else None,
            node_lists=tuple(lists) if with_nodes else (),
            gpu_type=np.array([kinds.index(name) for name in kind]) if with_nodes else None,
            gpu_type_names=tuple(kinds) if with_nodes else (),
        ),
        rebase=False,
    )


def test_peak_use__one_that_ends_as_another_starts_is_over():
    start, end = np.array([0.0, 10.0, 5.0]), np.array([10.0, 20.0, 12.0])
    assert peak_use(start, end, np.array([4.0, 4.0, 1.0])) == 5.0


def test_nodes_have_what_jobs_held_on_them_at_once():
    found = infer_cluster(
        log(
            [
                (0, 100, 4, "gpu", "n1", "a100"),
                (50, 100, 4, "gpu", "n1", "a100"),
                (60, 100, 16, "gpu", "n[2-3]", "a100"),
                (300, 10, 3, "gpu", "n4", "a100"),
                (300, 10, 2, "gpu", "m1", "v100"),
            ]
        )
    )
    # m1 is of another kind; n4 was never full, and has what most of its kind have.
    assert found.cluster.gpus.tolist() == [2, 8, 8, 8, 8]
    assert found.cluster.pool_names == ("gpu:v100", "gpu:a100")
    assert [finding.what for finding in found.findings] == ["nodes", "GPUs", "GPU types", "pools"]
    assert "1 raised" in found.findings[0].evidence
    assert all(finding.uncertainty for finding in found.findings)


def test_partitions_that_share_a_node_share_a_pool_and_others_do_not():
    rows = [
        (0, 10, 4, "short", "n1", "a100"),
        (0, 10, 4, "long", "n[1-2]", "a100"),
        (0, 10, 8, "debug", "d1", "a100"),
    ]
    found = infer_cluster(log(rows))
    assert set(found.cluster.pool_names) == {"debug", "long+short"}
    names = [found.cluster.pool_names[pool] for pool in found.pool]
    assert names == ["long+short", "long+short", "debug"]


def test_without_nodes__the_peak_of_all_or_of_each_partition():
    rows = [(0, 10, 4, "a", "", ""), (5, 10, 2, "b", "", ""), (30, 10, 5, "b", "", "")]
    whole = infer_cluster(log(rows, with_nodes=False))
    assert whole.cluster.gpus.tolist() == [6]
    assert whole.pool.tolist() == [-1, -1, -1]
    apart = infer_cluster(log(rows, with_nodes=False), apart=True)
    assert apart.cluster.gpus.tolist() == [4, 5]
    assert apart.pool.tolist() == [0, 1, 1]


def test_the_file_of_a_cluster_gives_the_same_cluster(tmp_path):
    rows = [(0, 10, 4, 'a"b', "n1", "a100"), (0, 10, 8, "c", "m[1-2]", "no-such-gpu")]
    found = infer_cluster(log(rows))
    (tmp_path / "c.toml").write_text(cluster_text(found.cluster))
    read = bl.Cluster.from_toml(tmp_path / "c.toml")
    assert read.gpus.tolist() == found.cluster.gpus.tolist()
    assert read.pool_names == found.cluster.pool_names
    assert read.conditions == found.cluster.conditions


@pytest.mark.parametrize("job", range(4))
def test_no_job_is_larger_than_its_pool(job):
    rows = [(0, 10, 4, "a", "n1", "x"), (9, 9, 7, "a", "n1", "x"), (0, 5, 9, "b", "m[1-2]", "x")]
    rows.append((50, 10, 1, "b", "m1", "x"))
    workload = log(rows)
    found = infer_cluster(workload)
    own = found.cluster.pool == found.pool[job]
    assert found.cluster.gpus[own].sum() >= workload.gpus[job]
