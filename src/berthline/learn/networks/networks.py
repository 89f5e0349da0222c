"""Networks: from a flat observation to scores of actions, and a summary of the observation.

    mlp        one multilayer perceptron over all numbers: fixed window, no symmetry
    kernel     the same small perceptron for every row that is an action, with a summary as input
    attention  rows first attend to each other
    cross      rows attend to the other tables: jobs to nodes, running jobs and look-ahead
    hosts      nodes are scored for the job at hand, which attends to them; any number of nodes

A network may score actions by distributions of returns, and may know regimes: see `Network`.

All but `mlp` are independent of the order of rows, except for the job at hand of some seats, which
is the first row of jobs. They exclude empty rows from every mean and attention. A row is empty if
all its numbers are 0. Most rows are empty, so they are not computed either.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import msgspec
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from berthline.errors import ConfigError, unknown_name
from berthline.learn.networks.device import place
from berthline.learn.networks.masked_actions import masked_mean
from berthline.learn.networks.packed_rows import Packed, pack
from berthline.learn.networks.registered_body import RegisteredBody
from berthline.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from berthline.env.observation_layout import ObservationLayout

    _Tables = dict[str, Tensor]

_MOST_WIDTH, _MOST_LAYERS = 4096, 32
_HIDDEN = 1e9
"""Subtracted from the attention score of an empty row: its weight is 0 after the softmax."""


_PARTS = 8
"""Into how many parts a batch is divided for attention."""


class NetworkConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The shape of a network.

    Attributes:
        kind: one of NETWORKS.
        hidden: widths of the layers, the same for rows and for the summary.
        heads: number of attention heads.
    """

    kind: str = "kernel"
    hidden: tuple[int, ...] = (32, 16)
    heads: int = 4


def mlp(sizes: Sequence[int], *, last_gain: float | None = None) -> nn.Sequential:
    """Return linear layers with ReLU between them, orthogonal weights and zero biases.

    Args:
        sizes: widths, from the input to the output.
        last_gain: scale of the last layer; None = it is a hidden layer, followed by ReLU too.
    """
    layers: list[nn.Module] = []
    for index, (width_in, width_out) in enumerate(itertools.pairwise(sizes)):
        is_last = index == len(sizes) - 2
        layer = nn.Linear(width_in, width_out)
        gain = last_gain if is_last and last_gain is not None else 2**0.5
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
        layers.append(layer)
        if not is_last or last_gain is None:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class Network(nn.Module):
    """Scores of actions and a summary.

    Args:
        layout: defines the input and the number of actions.
        config: shape of the network.
        outputs: numbers for each action.
        gain: scale of the last layer; 0 = all actions have the same score at first, so that every
            later preference is learned. Small random weights would already prefer some actions,
            and an untrained network that happens to prefer short jobs is a good policy.
        no_op: initial score of the no-op. It competes with the best job, not with all jobs, so
            begin below 0 if a policy holds jobs too readily.
        support: the returns whose mean is a score; None = scores are outputs of the last layer.
        num_regimes: number of regimes, whose embedding is added to the summary; 0 = none.
    """

    def __init__(
        self,
        layout: ObservationLayout,
        config: NetworkConfig,
        *,
        outputs: int = 1,
        gain: float = 0.0,
        no_op: float = 0.0,
        support: Tensor | None = None,
        num_regimes: int = 0,
    ) -> None:
        super().__init__()
        _check(layout, config)
        self.layout, self.config = layout, config
        self.outputs = 1 if support is not None else outputs
        outputs = outputs if support is None else len(support)
        self.width = config.hidden[-1]
        kind = NETWORKS[config.kind]
        self.by_row = not kind.is_flat and bool(layout.row_table)
        self.body: nn.Module
        if kind.registered is not None:
            self.body = RegisteredBody(layout, config, kind.registered)
        else:
            self.body = _Flat(layout, config) if kind.is_flat else _Rows(layout, config)
        place(self.body)
        if self.by_row:
            self.head = mlp((2 * self.width, self.width, outputs), last_gain=gain)
        else:
            self.head = mlp((self.width, layout.actions * outputs), last_gain=gain)
        if self.by_row and layout.has_pairs:
            self.place = mlp((2 * self.width, self.width, outputs), last_gain=gain)
        if layout.no_op is not None:
            last = self.head[-1]
            if self.by_row:
                self.no_op = mlp((self.width, self.width, outputs), last_gain=gain)
                last = self.no_op[-1]
            assert isinstance(last, nn.Linear)
            first = 0 if self.by_row else layout.no_op * outputs
            nn.init.constant_(last.bias[first : first + outputs], no_op)
        self.support: Tensor | None
        self.register_buffer("support", support)
        if support is not None:
            self.common = mlp((self.width, self.width, outputs), last_gain=gain)
        self.regimes = Regimes(layout, num_regimes, self.width) if num_regimes else None

    @classmethod
    def load(
        cls, layout: ObservationLayout, config: NetworkConfig, tensors: Mapping[str, Tensor]
    ) -> Network:
        """Return the network with the tensors of a checkpoint."""
        centres = tensors.get("regimes.centres")
        network = cls(
            layout,
            config,
            support=tensors.get("support"),
            num_regimes=0 if centres is None else len(centres),
        )
        network.load_state_dict(tensors)
        return network

    def forward(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (batch, actions, outputs) and the summary (batch, width)."""
        if self.support is None:
            return self._last_layer(flat)
        log_chances, summary = self.log_chances(flat)
        return (log_chances.exp() * self.support).sum(dim=-1, keepdim=True), summary

    def log_chances(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities of returns (batch, actions, support), and the summary.

        A separate part has what all actions have in common (dueling); its logits are added.
        """
        logits, summary = self._last_layer(flat)
        common = self.common(summary).unsqueeze(-2)
        return torch.log_softmax(logits + common, dim=-1), summary

    def observed(self, flat: Tensor, *, copy: bool = False) -> Tensor | Packed:
        """Return observations in the form that is fastest for `forward`.

        `forward` also takes flat observations; with regimes, only these.

        Args:
            flat: (batch, size).
            copy: whether `flat` will change; packed observations are always copies.
        """
        if self.body.packs:
            return pack(self.layout, flat)
        return flat.clone() if copy else flat

    def _last_layer(self, flat: Tensor | Packed) -> tuple[Tensor, Tensor]:
        packed = None
        if isinstance(flat, Packed):
            packed = flat
        elif self.body.packs and not torch.onnx.is_in_onnx_export():  # shapes are fixed there
            packed = pack(self.layout, flat)
        if isinstance(self.body, _Rows) and self.layout.has_pairs and isinstance(flat, Tensor):
            return self._pairs(self.body, flat)
        rows, present, summary = self.body(flat if packed is None else packed)
        if self.regimes is not None:
            summary = summary + self.regimes(flat)
        if not self.by_row:
            return self.head(summary).view(len(summary), self.layout.actions, -1), summary
        if packed is not None:
            table = packed.tables[self.layout.row_table]
            beside = summary.index_select(0, table.owner)
            height = self.layout.shapes[self.layout.row_table][0]
            scores = table.spread(self.head(torch.cat((rows, beside), dim=-1)), height)
        else:
            beside = summary.unsqueeze(-2).expand(-1, rows.shape[-2], -1)
            scores = _where_present(self.head, torch.cat((rows, beside), dim=-1), present)
        if self.layout.no_op is not None:
            scores = torch.cat((scores, self.no_op(summary).unsqueeze(-2)), dim=-2)
        return scores, summary

    def _pairs(self, body: _Rows, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Score jobs, then nodes for each job.

        score(job, node) = score(job) + log softmax over nodes, so that a job does not gain from the
        number of nodes it could run on.
        """
        rows, present, summary = body.tables(flat)
        jobs, nodes = rows["jobs"], rows["nodes"]
        shape = (len(summary), jobs.shape[-2], nodes.shape[-2])
        beside = summary.unsqueeze(-2).expand(-1, shape[1], -1)
        picks = _where_present(self.head, torch.cat((jobs, beside), dim=-1), present["jobs"])
        pairs = torch.cat(
            (
                jobs.unsqueeze(2).expand(*shape, -1).flatten(1, 2),
                nodes.unsqueeze(1).expand(*shape, -1).flatten(1, 2),
            ),
            dim=-1,
        )
        there = present["jobs"].unsqueeze(-1).expand(shape).flatten(1, 2)
        places = _where_present(self.place, pairs, there).view(*shape, -1)
        scores = (picks.unsqueeze(2) + torch.log_softmax(places, dim=2)).flatten(1, 2)
        return torch.cat((scores, self.no_op(summary).unsqueeze(-2)), dim=-2), summary


class Regimes(nn.Module):
    """The current regime, from the numbers of the cluster as a whole.

    A regime is the nearest of some centres, in standard deviations of each number. The algorithm
    moves the centres. Between two centres the embedding is a mixture, so that it is continuous.

    Args:
        layout: has the table `globals`.
        num: number of centres.
        width: width of the embedding.
    """

    def __init__(self, layout: ObservationLayout, num: int, width: int) -> None:
        super().__init__()
        if "globals" not in layout.shapes:
            raise ConfigError(
                "regimes need numbers of the cluster as a whole",
                where="features",
                expected="columns of globals",
            )
        self.place = layout.slices()["globals"]
        size = layout.shapes["globals"][0]
        self.centres: Tensor
        self.mean: Tensor
        self.deviation: Tensor
        self.register_buffer("centres", torch.randn(num, size))
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("deviation", torch.ones(size))
        self.embedding = nn.Linear(num, width, bias=False)
        nn.init.zeros_(self.embedding.weight)

    def scaled(self, flat: Tensor) -> Tensor:
        """Return the numbers that define regimes, in standard deviations: (batch, size)."""
        return (flat[:, self.place] - self.mean) / self.deviation

    def distances(self, flat: Tensor) -> Tensor:
        """Return squared distances from the centres: (batch, num)."""
        gaps = self.scaled(flat).unsqueeze(-2) - self.centres
        return gaps.square().sum(dim=-1)

    def forward(self, flat: Tensor) -> Tensor:
        """Return (batch, width)."""
        embedded: Tensor = self.embedding(torch.softmax(-self.distances(flat), dim=-1))
        return embedded


class _Flat(nn.Module):
    """Takes all numbers at once."""

    packs = False

    def __init__(self, layout: ObservationLayout, config: NetworkConfig) -> None:
        super().__init__()
        self.layers = mlp((layout.size, *config.hidden))

    def forward(self, flat: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return flat, flat, self.layers(flat)


class _Rows(nn.Module):
    """Encodes tables row by row, lets rows attend to others, and makes a summary."""

    def __init__(self, layout: ObservationLayout, config: NetworkConfig) -> None:
        super().__init__()
        width = config.hidden[-1]
        self.slices = layout.slices()
        self.shapes = {name: shape for name, shape in layout.shapes.items() if 0 not in shape}
        self.main = layout.row_table or ("jobs" if "jobs" in self.shapes else "")
        # Otherwise its row would be one of many in the mean.
        self.has_job_at_hand = layout.has_job_at_hand and "jobs" in self.shapes
        self.encoders = nn.ModuleDict(
            {name: mlp((_width_of(name, s), *config.hidden)) for name, s in self.shapes.items()}
        )
        self.look = NETWORKS[config.kind].look
        if self.look is not None:
            self.attention = nn.MultiheadAttention(width, config.heads, batch_first=True)
            self.norm = nn.LayerNorm(width)
        self.summary = mlp(((len(self.shapes) + self.has_job_at_hand) * width, width))
        self.packs = self.look is None and not layout.has_pairs

    def _packed(self, packed: Packed) -> tuple[Tensor, Tensor]:
        rows = {n: self.encoders[n](t.rows) for n, t in packed.tables.items()}
        parts = [
            self.encoders[name](packed.globals)
            if name == "globals"
            else packed.tables[name].mean(rows[name])
            for name in self.shapes
        ]
        if self.has_job_at_hand:
            parts.append(packed.tables["jobs"].first(rows["jobs"]))
        summary: Tensor = self.summary(torch.cat(parts, dim=-1))
        return rows.get(self.main, summary), summary

    def forward(self, flat: Tensor | Packed) -> tuple[Tensor, Tensor, Tensor]:
        if isinstance(flat, Packed):
            made, summary = self._packed(flat)
            return made, made, summary
        rows, present, summary = self.tables(flat)
        # Without a main table no action is a row, and only the summary is read.
        return rows.get(self.main, summary), present.get(self.main, summary), summary

    def tables(self, flat: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        """Return the encoded rows of every table, which rows are present, and the summary."""
        rows: dict[str, Tensor] = {}
        present: dict[str, Tensor] = {}
        for name, shape in self.shapes.items():
            table = flat[:, self.slices[name]]
            if name == "globals":
                rows[name] = self.encoders[name](table)
                continue
            if name == "lookahead":
                # A column of numbers; the position of each defines its meaning.
                place = torch.linspace(0, 1, shape[0], device=flat.device).expand_as(table)
                table = torch.stack((table, place), dim=-1)
                present[name] = torch.ones_like(place, dtype=torch.bool)
            else:
                table = table.view(-1, *shape)
                present[name] = table.abs().amax(dim=-1) > 0
            rows[name] = _where_present(self.encoders[name], table, present[name])
        if self.look is not None:
            self.look(self, rows, present)
        parts = [
            masked_mean(rows[name], present[name]) if name in present else rows[name]
            for name in self.shapes
        ]
        if self.has_job_at_hand:
            parts.append(rows["jobs"][:, 0])
        return rows, present, self.summary(torch.cat(parts, dim=-1))

    def attend(self, queries: Tensor, keys: Tensor, present: Tensor) -> Tensor:
        """Return queries after attention to the present keys."""
        # The layer's own forward with half the operations: an exported model runs them one by one.
        layer, width = self.attention, queries.shape[-1]
        weight, bias = layer.in_proj_weight, layer.in_proj_bias
        if queries is keys:
            parts = F.linear(queries, weight, bias).chunk(3, dim=-1)
        else:
            asked = F.linear(queries, weight[:width], bias[:width])
            parts = (asked, *F.linear(keys, weight[width:], bias[width:]).chunk(2, dim=-1))
        query, key, value = (
            part.view(*part.shape[:2], layer.num_heads, -1).transpose(1, 2) for part in parts
        )
        there = present.to(queries.dtype)
        # Not infinity: attention without any keys would be NaN.
        hidden = ((there - 1) * _HIDDEN)[:, None, None, :]
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=hidden)
        seen = layer.out_proj(seen.transpose(1, 2).flatten(2))
        if queries is not keys:  # without keys, attention adds nothing
            seen = seen * there.amax(dim=-1)[:, None, None]
        normed: Tensor = self.norm(queries + seen)
        return normed


def _look_at_each_other(body: _Rows, rows: _Tables, present: _Tables) -> None:
    own, there = rows[body.main], present[body.main]
    if torch.onnx.is_in_onnx_export() or len(own) < _PARTS:
        rows[body.main] = body.attend(own, own, there)
        return
    # The cost grows with the square of the rows, and most queues are short: states with about as
    # many rows are taken together, without the empty rows after the last.
    height = there.shape[1]
    ends = (there * torch.arange(1, height + 1)).amax(dim=1)
    order = ends.argsort(stable=True)
    found = []
    for part in order.chunk(_PARTS):
        end = max(int(ends[part[-1]]), 1)
        few = own.index_select(0, part)[:, :end]
        seen = body.attend(few, few, there.index_select(0, part)[:, :end])
        found.append(F.pad(seen, (0, 0, 0, height - end)))
    rows[body.main] = torch.cat(found).index_select(0, order.argsort())


def _look_at_other_tables(body: _Rows, rows: _Tables, present: _Tables) -> None:
    others = [name for name in present if name != body.main]
    keys = torch.cat([rows[name] for name in others], dim=-2)
    there = torch.cat([present[name] for name in others], dim=-1)
    rows[body.main] = body.attend(rows[body.main], keys, there)


def _ask_nodes(body: _Rows, rows: _Tables, present: _Tables) -> None:
    # Each node gets the job, after the job's attention to all nodes.
    asked = body.attend(rows["jobs"][:, :1], rows["nodes"], present["nodes"])
    rows["nodes"] = torch.relu(rows["nodes"] + asked)


_Class = TypeVar("_Class", bound=type)


@overload
def register_network(name: str) -> Callable[[_Class], _Class]: ...
@overload
def register_network(name: str, network: _Class) -> _Class: ...
def register_network(name: str, network: Any = None) -> Any:
    """Add a network, usable at once by every algorithm: `--network NAME`.

    Without `network` this is a decorator of the class. A package can add one by an entry point in
    the group `berthline.networks`, which names the class.

    Args:
        name: lower-case words joined by hyphens.
        network: a subclass of torch.nn.Module, made with (layout, config). Its forward gets the
            tables of observations by name, (batch, rows, columns) or (batch, numbers), and which
            rows are present, (batch, rows). It returns (rows, summary): the encoded rows of the
            table `layout.row_table`, (batch, rows, width), and a summary, (batch, width), where
            the width is `config.hidden[-1]`. Where no action is a row, rows are ignored.

    Raises:
        ConfigError: the name is taken or malformed, or it is not a class of modules.

    Example:
        @berthline.register_network("mine")
        class Mine(torch.nn.Module): ...
    """
    if network is None:
        return lambda found: register_network(name, found)
    if not isinstance(network, type) or not issubclass(network, nn.Module):
        raise ConfigError(
            f"the network {name!r} is {network!r}", expected="a subclass of torch.nn.Module"
        )
    NETWORKS.add(name, NetworkKind(registered=network), is_same=_are_of_one_name)
    return network


def _are_of_one_name(old: NetworkKind, new: NetworkKind) -> bool:
    names = [
        kind.registered and (kind.registered.__module__, kind.registered.__qualname__)
        for kind in (old, new)
    ]
    return names[0] == names[1]


class NetworkKind(NamedTuple):
    """What distinguishes a network from the others.

    Attributes:
        is_flat: whether it takes all numbers at once; otherwise it encodes tables row by row.
        look: changes the encoded rows by attention to others (`_Rows.attend`), given the rows of
            all tables and which of them are present; None = no attention.
        registered: the class of a network of another package; None = it is ours.
    """

    is_flat: bool = False
    look: Callable[[_Rows, _Tables, _Tables], None] | None = None
    registered: type[nn.Module] | None = None


_OWN = {
    "mlp": NetworkKind(is_flat=True),
    "kernel": NetworkKind(),
    "attention": NetworkKind(look=_look_at_each_other),
    "cross": NetworkKind(look=_look_at_other_tables),
    "hosts": NetworkKind(look=_ask_nodes),
}

NETWORKS = Registry[NetworkKind](
    "a network", "berthline.networks", _OWN, lambda name, value: register_network(name, value)
)
"""Every network by its name."""


def _width_of(name: str, shape: tuple[int, ...]) -> int:
    return 2 if name == "lookahead" else shape[-1]


def _where_present(layers: nn.Module, rows: Tensor, present: Tensor) -> Tensor:
    """Return the layers' outputs for the present rows, and zeros for the others."""
    if torch.onnx.is_in_onnx_export():
        # All rows as one matrix: a layer and its ReLU become one operation.
        made = layers(rows.flatten(0, 1)).unflatten(0, rows.shape[:2])
        kept: Tensor = made * present.unsqueeze(-1).to(rows.dtype)
        return kept
    found = layers(rows[present])
    out: Tensor = found.new_zeros((*present.shape, found.shape[-1]))
    return out.index_put((present,), found)


def check_hidden(hidden: Sequence[int]) -> None:
    """Check the widths of layers.

    Raises:
        ConfigError: they are not valid.
    """
    fits = 1 <= len(hidden) <= _MOST_LAYERS
    if not fits or min(hidden) < 1 or max(hidden) > _MOST_WIDTH:
        raise ConfigError(
            f"hidden is {','.join(map(str, hidden)) or 'empty'}",
            expected=f"1 to {_MOST_LAYERS} widths, each from 1 to {_MOST_WIDTH:,}",
        )


def _check(layout: ObservationLayout, config: NetworkConfig) -> None:
    if config.kind not in NETWORKS:
        what, expected, hint = unknown_name("network", config.kind, NETWORKS)
        raise ConfigError(
            what,
            expected=expected,
            hint=hint or "a network of another package: install or import what registers it",
        )
    check_hidden(config.hidden)
    if NETWORKS[config.kind].registered is not None:
        if layout.has_pairs:
            raise ConfigError(
                f"the network {config.kind!r} does not score pairs",
                where=f"the seat {layout.seat}",
                expected="a network of Berthline's own",
            )
        return
    tables = {name for name, shape in layout.shapes.items() if 0 not in shape}
    # Attention is from rows to rows; other networks need none where actions are rules.
    chooses_rules = layout.seat in ("meta", "gate", "place") and not layout.row_table
    needs_none = chooses_rules and NETWORKS[config.kind].look is None
    needed = set() if needs_none else {layout.row_table or "jobs"}
    if config.kind == "hosts" or layout.has_pairs:
        needed = {"jobs", "nodes"}
    if config.kind == "cross" and not tables - needed - {"globals"}:
        needed = {*needed, "nodes"}
    if not NETWORKS[config.kind].is_flat and not needed <= tables:
        raise ConfigError(
            f"the network {config.kind!r} needs columns of {' and '.join(sorted(needed))}",
            where=f"features of the seat {layout.seat}",
            hint="add columns, or use the network mlp",
        )
    if config.kind == "hosts" and layout.row_table != "nodes":
        raise ConfigError(
            "the network 'hosts' scores nodes",
            where=f"the seat {layout.seat}",
            expected="the environment Place",
        )
    if NETWORKS[config.kind].look is not None and config.hidden[-1] % config.heads:
        raise ConfigError(
            f"{config.heads} heads do not divide a width of {config.hidden[-1]}",
            expected="a last hidden width that is a multiple of heads",
        )
