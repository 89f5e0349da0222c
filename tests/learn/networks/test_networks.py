"""Networks: symmetry, padding, and what they refuse."""

import pytest
import torch
from tests.env.agents import plain

from berthline.env.observation_layout import ObservationLayout
from berthline.errors import ConfigError
from berthline.learn.networks.networks import NETWORKS, Network, NetworkConfig
from berthline.learn.training.environments import Environments

OPTIONS = {"episode_jobs": 48, "load": 3.0, "window": 12, "running_window": 6, "lookahead": "cdf"}


GLOBALS_ALONE = {"jobs": [], "nodes": [], "running": [], "globals": ["queue_len / 100"]}


def _layout_and_states(seat: str) -> tuple[ObservationLayout, torch.Tensor]:
    envs = Environments(seat, num=16, seed=1, options=plain(seat) | OPTIONS)
    for _ in range(20):
        envs.step(envs.masks.argmax(axis=1))
    return envs.layout, torch.from_numpy(envs.observations.copy())


def _network(layout: ObservationLayout, kind: str) -> Network:
    torch.manual_seed(0)
    return Network(layout, NetworkConfig(kind=kind, hidden=(16, 8), heads=2), gain=1.0)


SEATS = ("pick", "place", "gate", "meta", "preempt", "backfill")


@pytest.mark.parametrize(
    ("seat", "kind"), [("gate", "kernel"), ("pick", "mlp"), ("pick", "kernel")]
)
def test_the_no_op_begins_where_it_is_told_to(seat, kind):
    layout, states = _layout_and_states(seat)
    scores, _ = Network(layout, NetworkConfig(kind=kind, hidden=(16, 8)), no_op=-3.0)(states)
    scores = scores.detach()
    assert scores[:, layout.no_op, 0] == pytest.approx(-3.0, abs=0.1)
    others = [action for action in range(layout.actions) if action != layout.no_op]
    assert scores[:, others, 0].abs().max() < 0.1


@pytest.mark.parametrize("seat", SEATS)
@pytest.mark.parametrize("kind", NETWORKS)
def test_every_action_has_a_score(seat, kind):
    layout, states = _layout_and_states(seat)
    if kind == "hosts" and seat != "place":
        with pytest.raises(ConfigError, match="scores nodes"):
            _network(layout, kind)
        return
    scores, summary = _network(layout, kind)(states)
    assert scores.shape == (16, layout.actions, 1)
    assert summary.shape == (16, 8)
    assert scores.isfinite().all()


@pytest.mark.parametrize("kind", ["kernel", "attention", "cross"])
def test_jobs_in_another_order_get_their_scores_in_that_order(kind):
    layout, states = _layout_and_states("pick")
    network = _network(layout, kind)
    order = torch.randperm(12)
    where = layout.slices()["jobs"]
    shuffled = states.clone()
    shuffled[:, where] = states[:, where].view(16, 12, -1)[:, order].flatten(1)
    before, _ = network(states)
    after, _ = network(shuffled)
    torch.testing.assert_close(after[:, :12], before[:, :12][:, order])
    torch.testing.assert_close(after[:, 12], before[:, 12])


@pytest.mark.parametrize("kind", ["kernel", "attention", "cross", "hosts"])
def test_nodes_in_another_order_get_their_scores_in_that_order(kind):
    layout, states = _layout_and_states("place")
    network = _network(layout, kind)
    order = torch.randperm(8)
    where = layout.slices()["nodes"]
    shuffled = states.clone()
    shuffled[:, where] = states[:, where].view(16, 8, -1)[:, order].flatten(1)
    torch.testing.assert_close(network(shuffled)[0], network(states)[0][:, order])


@pytest.mark.parametrize("kind", ["kernel", "attention", "cross"])
def test_a_longer_window_of_empty_rows_changes_nothing(kind):
    layout, states = _layout_and_states("pick")
    rows, columns = layout.shapes["jobs"]
    longer = ObservationLayout(
        seat=layout.seat,
        shapes={**layout.shapes, "jobs": (rows + 5, columns)},
        columns=layout.columns,
        actions=layout.actions + 5,
        row_table=layout.row_table,
        knowledge=layout.knowledge,
    )
    where = layout.slices()["jobs"]
    padded = torch.cat(
        (states[:, where], torch.zeros(16, 5 * columns), states[:, where.stop :]), dim=1
    )
    short, long = _network(layout, kind), _network(longer, kind)
    long.load_state_dict(short.state_dict())
    torch.testing.assert_close(long(padded)[0][:, :rows], short(states)[0][:, :rows])
    torch.testing.assert_close(long(padded)[0][:, -1], short(states)[0][:, -1])


def test_the_host_network_sees_the_job():
    layout, states = _layout_and_states("place")
    network = _network(layout, "hosts")
    other = states.clone()
    other[:, 0:8] = states[:, 0:8] * 0.5
    gap = network(other)[0] - network(states)[0]
    # Not the same change for all scores, which would choose the same node.
    assert (gap.std(dim=1) > 1e-6).any()


def test_a_network_without_its_table_is_refused():
    envs = Environments("pick", num=1, seed=1, options={**OPTIONS, "features": {"jobs": []}})
    with pytest.raises(ConfigError, match="needs columns of jobs"):
        Network(envs.layout, NetworkConfig(kind="kernel"))
    with pytest.raises(ConfigError, match="unknown network 'kernal'"):
        Network(envs.layout, NetworkConfig(kind="kernal"))


def test_layouts_that_differ_are_told_apart():
    envs = Environments("pick", num=1, seed=1, options=OPTIONS)
    other = Environments("pick", num=1, seed=1, options={**OPTIONS, "window": 16})
    envs.layout.check_same(envs.layout, where="here")
    assert envs.layout.sha256 != other.layout.sha256
    with pytest.raises(ConfigError, match=r"shapes\.jobs: \(12, 8\) against \(16, 8\)"):
        envs.layout.check_same(other.layout, where="here")


@pytest.mark.parametrize("kind", ["kernel", "mlp"])
def test_actions_that_are_not_rows_need_no_table_of_jobs(kind):
    options = {**OPTIONS, "lookahead": None, "features": GLOBALS_ALONE}
    envs = Environments("meta", num=4, seed=1, options=options)
    network = _network(envs.layout, kind)
    scores, summary = network(torch.from_numpy(envs.observations.copy()))
    assert scores.shape == (4, envs.layout.actions, 1)
    assert summary.shape == (4, 8)


def test_attention_needs_rows():
    options = {**OPTIONS, "lookahead": None, "features": GLOBALS_ALONE}
    layout = Environments("meta", num=1, seed=1, options=options).layout
    with pytest.raises(ConfigError, match="needs columns of jobs"):
        _network(layout, "attention")


def test_attention_in_parts_is_attention_over_the_whole_batch():
    """States with few rows are processed without their empty rows; that changes nothing."""
    layout = Environments("pick", num=1, seed=0, options={"window": 12}).layout
    torch.manual_seed(0)
    network = Network(layout, NetworkConfig(kind="attention"), gain=1.0)
    flat = torch.rand(64, layout.size)
    jobs = flat[:, layout.slices()["jobs"]].view(64, *layout.shapes["jobs"])
    for state, rows in enumerate(torch.randint(0, 13, (64,)).tolist()):
        jobs[state, rows:] = 0.0
    together, _ = network(flat)
    alone = torch.cat([network(flat[i : i + 1])[0] for i in range(64)])
    assert torch.allclose(together, alone, atol=1e-6)
    together.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
