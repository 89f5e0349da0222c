"""RegisteredBody: a network of another package, which encodes the tables of an observation.

The heads that score actions stay ours, so every algorithm can use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from berthline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.env.observation_layout import ObservationLayout
    from berthline.learn.networks.networks import NetworkConfig


class RegisteredBody(nn.Module):
    """Splits flat observations into tables, and checks what the network returns.

    Args:
        layout: of the observations.
        config: shape of the network.
        make: the class; see `networks.register_network`.
    """

    packs = False

    def __init__(
        self,
        layout: ObservationLayout,
        config: NetworkConfig,
        make: Callable[..., nn.Module],
    ) -> None:
        super().__init__()
        self.slices = layout.slices()
        self.shapes = {name: shape for name, shape in layout.shapes.items() if 0 not in shape}
        self.main, self.width = layout.row_table, config.hidden[-1]
        self.own = make(layout, config)

    def forward(self, flat: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return encoded rows of actions, which of them are present, and the summary."""
        tables, present = {}, {}
        for name, shape in self.shapes.items():
            tables[name] = flat[:, self.slices[name]].reshape(-1, *shape)
            if len(shape) > 1:
                present[name] = tables[name].abs().amax(dim=-1) > 0
        found = self.own(tables, present)
        if not isinstance(found, tuple) or len(found) != 2:
            raise self._error("result", found, "(rows, summary)")
        rows, summary = found
        self._check("summary", summary, (len(flat), self.width))
        if not self.main:
            return summary, summary, summary
        self._check("rows", rows, (len(flat), self.shapes[self.main][0], self.width))
        return rows, present[self.main], summary

    def _check(self, name: str, given: Any, shape: tuple[int, ...]) -> None:
        if tuple(getattr(given, "shape", ())) != shape:
            raise self._error(name, given, f"a tensor of shape {shape}")

    def _error(self, name: str, given: Any, expected: str) -> ConfigError:
        found = tuple(given.shape) if isinstance(given, Tensor) else type(given).__name__
        return ConfigError(
            f"the {name} of {type(self.own).__name__}.forward is {found}", expected=expected
        )
