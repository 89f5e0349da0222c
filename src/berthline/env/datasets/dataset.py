"""Dataset: recorded decisions on disk, in a folder with Minari's names.

    data/metadata.json   description: environment, options, spaces, policy, counts
    data/main_data.npz   columns over all steps, and the steps of each episode

Columns: `observations` (flat; T + 1 rows for an episode of T steps, the last one after its end),
`action_masks` and, for PickPlace, `pair_masks`, also T + 1; `actions`, `rewards`, `reward_terms`,
`terminations`, `truncations`; and for each episode `seeds`, `numbers` (of the episode among its
seed's), `lengths` and `scores`. `Dataset.to_minari` makes a Minari dataset.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.env.make_plan import make_plan
from berthline.env.native_envs import SCORES
from berthline.env.options import resolve_options
from berthline.env.spaces import action_space, observation_space, views
from berthline.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

METADATA, DATA = "data/metadata.json", "data/main_data.npz"
SEEN = ("observations", "action_masks", "pair_masks")
"""Columns with T + 1 rows for an episode of T steps."""
STEPS = ("actions", "rewards", "reward_terms", "terminations", "truncations")
"""Columns with a row for each step."""


@dataclasses.dataclass(frozen=True, eq=False)
class Episode:
    """One recorded episode of T steps.

    Attributes:
        id: its number in the dataset.
        seed: of the environment.
        number: its number among the seed's episodes; `reset(seed=seed)` gives number 0.
        observations: (T + 1, size), flat.
        action_masks: (T + 1, num_actions).
        actions: (T,); (T, 2) for PickPlace.
        rewards: (T,).
        reward_terms: (T, num_terms).
        terminations: (T,).
        truncations: (T,).
        scores: of the schedule, by name.
        pair_masks: (T + 1, window, num_nodes) for PickPlace; else None.
    """

    id: int
    seed: int
    number: int
    observations: npt.NDArray[np.float32]
    action_masks: npt.NDArray[np.bool_]
    actions: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float64]
    reward_terms: npt.NDArray[np.float64]
    terminations: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]
    scores: dict[str, float]
    pair_masks: npt.NDArray[np.bool_] | None = None


class Dataset:
    """Recorded episodes.

    Attributes:
        path: its folder.
        metadata: the content of metadata.json.
        columns: see above.

    Raises:
        ConfigError: there is no dataset.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.metadata: dict[str, Any] = json.loads((self.path / METADATA).read_text("utf-8"))
            with np.load(self.path / DATA, allow_pickle=False) as data:
                self.columns: dict[str, npt.NDArray[Any]] = dict(data)
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(
                f"cannot read a dataset ({error})",
                where=str(self.path),
                expected="a folder that berthline.env.datasets.record.record has written",
            ) from None
        self._ends = np.cumsum(self.columns["lengths"])

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, id: int) -> Episode:  # noqa: A002 - Minari's name for it
        id = range(len(self))[id]  # noqa: A001 - negative numbers count from the end
        end, length = int(self._ends[id]), int(self.columns["lengths"][id])
        steps = slice(end - length, end)
        seen = slice(end - length + id, end + id + 1)
        columns = self.columns
        return Episode(
            id=id,
            seed=int(columns["seeds"][id]),
            number=int(columns["numbers"][id]),
            **{name: columns[name][seen] for name in SEEN if name in columns},
            **{name: columns[name][steps] for name in STEPS},
            scores=dict(zip(SCORES, columns["scores"][id].tolist(), strict=True)),
        )

    def __iter__(self) -> Iterator[Episode]:
        return (self[number] for number in range(len(self)))

    def decisions(
        self,
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Return observations, masks and actions of all steps: the input of behaviour cloning."""
        is_decision = np.ones(len(self.columns["observations"]), np.bool_)
        is_decision[self._ends + np.arange(len(self))] = False
        return (
            self.columns["observations"][is_decision],
            self.columns["action_masks"][is_decision],
            self.columns["actions"],
        )

    def to_minari(self, dataset_id: str, **details: Any) -> Any:
        """Add the dataset to Minari's datasets and return it as a Minari dataset.

        Args:
            dataset_id: a name in Minari's form, such as `berthline/pick/sjf-v0`.
            details: author, author_email, code_permalink and other fields of Minari.

        Raises:
            MissingExtraError: Minari is not installed.
            ConfigError: the environment's options were not all recorded.
        """
        try:
            import minari
            from minari.data_collector import EpisodeBuffer
        except ModuleNotFoundError as error:
            raise MissingExtraError(str(error.name), "minari", "a Minari dataset") from None
        if not self.metadata["options_are_complete"]:
            raise ConfigError(
                "an option of the environment was an object",
                where=str(self.path),
                expected="options that JSON can hold: names and numbers",
            )
        seat, options = self.metadata["seat"], self.metadata["options"]
        plan = make_plan(seat, resolve_options(seat, options))
        is_flat = plan.options.observation == "flat"
        buffers = []
        for episode in self:
            seen: Any = episode.observations
            if not is_flat:
                seen = views(plan, episode.observations)
                seen["action_mask"] = episode.action_masks.view(np.int8)
                if episode.pair_masks is not None:
                    seen["pair_mask"] = episode.pair_masks.view(np.int8)
            buffers.append(
                EpisodeBuffer(
                    id=episode.id,
                    # In Minari, a reset with the seed must give this episode.
                    seed=episode.seed if episode.number == 0 else None,
                    observations=seen,
                    actions=episode.actions,
                    rewards=episode.rewards.tolist(),
                    terminations=episode.terminations.tolist(),
                    truncations=episode.truncations.tolist(),
                    infos={"action_mask": episode.action_masks},
                )
            )
        spec = env_spec(self.metadata["env_id"], options)
        return minari.create_dataset_from_buffers(
            dataset_id,
            buffers,
            env=spec,
            eval_env=spec,
            algorithm_name=self.metadata["algorithm_name"],
            observation_space=observation_space(plan),
            action_space=action_space(plan),
            **details,
        )


def env_spec(id: str, options: dict[str, Any]) -> Any:  # noqa: A002 - Gymnasium's name for it
    """Return Gymnasium's specification of an environment with these options."""
    import gymnasium

    spec = copy.deepcopy(gymnasium.spec(id))
    spec.kwargs.update(options)
    return spec
