"""Recording: the decisions of a scheduler, or of any policy, as a dataset for offline learning."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.atomic_write import complete_directory
from berthline.env.datasets.dataset import DATA, METADATA, SEEN, STEPS, Dataset, env_spec
from berthline.env.experts import expert_actions
from berthline.env.native_envs import SCORES
from berthline.env.options import resolve_options
from berthline.env.registration import SEATS, env_id
from berthline.env.seat_defaults import with_defaults
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    import os

Policy = Callable[[Any, npt.NDArray[np.bool_]], npt.ArrayLike]
"""Returns an action for each environment, from the observations and the masks of all of them."""

_NO_JSON = "(not recorded: an object)"


def record(
    id: str,  # noqa: A002 - Gymnasium's name for it
    policy: str | Policy,
    out: str | os.PathLike[str],
    *,
    episodes: int,
    seed: int = 0,
    num_envs: int = 16,
    num_threads: int = 1,
    **options: Any,
) -> Dataset:
    """Record the decisions of a policy.

    The episodes are those of a batch with this seed, spread evenly, whatever the policy.

    Args:
        id: Gymnasium's id of the environment.
        policy: a scheduler, used as in `expert_actions`, or a function of the
            observations and masks of a batch.
        out: folder to be written; it must not exist.
        episodes: how many.
        seed: of the batch.
        num_envs: environments; fewer if there are fewer episodes.
        num_threads: threads that step them.
        options: see `berthline.env.options.Options`.

    Raises:
        ConfigError: an unknown id or option, or the folder exists.
        PolicyError: the scheduler cannot fill the seat.
        OutputError: the folder cannot be written.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp() + "/sjf"
        >>> dataset = record("berthline/Pick-v0", "sjf", folder, episodes=8, episode_jobs=32)
        >>> len(dataset)
        8
    """
    seats = {env_id(name): seat for name, seat in SEATS.items()}
    if id not in seats:
        what, expected, hint = unknown_name("environment", id, seats)
        raise ConfigError(what, where="record", expected=expected, hint=hint)
    for name, value in (("episodes", episodes), ("num_envs", num_envs)):
        if value < 1:
            raise ConfigError(f"{name} is {value!r}", expected="a whole number from 1 on")
    out = Path(out)
    if out.exists():
        raise ConfigError("it already exists", where=str(out), expected="a new folder")
    num_envs = min(num_envs, episodes)
    asked = {**options}
    if isinstance(policy, str):
        asked["experts"] = [*dict.fromkeys([*options.get("experts", ()), policy])]
    # The options of `gym.make`: no `copy`, no autoreset.
    # The seat's defaults too, so that other defaults in a later version change nothing.
    resolved = resolve_options(seats[id], options)
    given = {name: getattr(resolved, name) for name in with_defaults(seats[id], options)}
    envs = SchedulingVectorEnv(num_envs, seats[id], num_threads=num_threads, **asked)
    quotas = [episodes // num_envs + (env < episodes % num_envs) for env in range(num_envs)]
    columns = _play(envs, policy, quotas, seed)
    _write(out, columns, _metadata(id, envs, policy, given, columns))
    return Dataset(out)


def _play(
    envs: SchedulingVectorEnv, policy: str | Policy, quotas: list[int], seed: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of each environment's episodes, up to its quota."""
    open_: list[dict[str, list[Any]]] = [_empty() for _ in quotas]
    done: list[list[dict[str, Any]]] = [[] for _ in quotas]
    observations, _ = envs.reset(seed=seed)
    seeds = [envs.episode_key(env)[0] for env in range(envs.num_envs)]
    while any(len(own) < quota for own, quota in zip(done, quotas, strict=True)):
        masks = envs.action_masks()
        given = expert_actions(envs, policy) if isinstance(policy, str) else None
        actions = np.asarray(policy(observations, masks) if callable(policy) else given, np.int64)
        seen = _seen(observations, masks)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        steps = {
            **seen,
            "actions": actions,
            "rewards": rewards,
            "reward_terms": infos["reward_terms"],
            "terminations": terminated,
            "truncations": truncated,
        }
        for env, (own, quota) in enumerate(zip(done, quotas, strict=True)):
            if len(own) == quota:
                continue
            for name, table in steps.items():
                open_[env][name].append(table[env])
            if terminated[env] or truncated[env]:
                final = infos["final_info"]
                for name, row in _seen(infos["final_obs"][env], final["action_mask"][env]).items():
                    open_[env][name].append(row)
                sched = final["sched"]
                own.append(
                    {
                        **{name: np.array(rows) for name, rows in open_[env].items() if rows},
                        "seeds": np.array([seeds[env]]),
                        "numbers": np.array([len(own)]),
                        "lengths": np.array([len(open_[env]["actions"])]),
                        "scores": np.array([[sched[name][env] for name in SCORES]]),
                    }
                )
                open_[env] = _empty()
    flat = [episode for own in done for episode in own]
    return {name: np.concatenate([episode[name] for episode in flat]) for name in flat[0]}


def _empty() -> dict[str, list[Any]]:
    return {name: [] for name in (*SEEN, *STEPS)}


def _seen(observations: Any, masks: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[Any]]:
    """Return observations and masks as flat columns, for one environment or many."""
    if not isinstance(observations, dict):
        return {"observations": observations, "action_masks": masks}
    leading = masks.shape[:-1]
    tables = [
        table.reshape(*leading, -1)
        for name, table in observations.items()
        if name not in ("action_mask", "pair_mask")
    ]
    seen = {"observations": np.concatenate(tables, axis=-1), "action_masks": masks}
    if "pair_mask" in observations:
        seen["pair_masks"] = observations["pair_mask"].astype(np.bool_)
    return seen


def _metadata(
    id: str,  # noqa: A002
    envs: SchedulingVectorEnv,
    policy: str | Policy,
    options: dict[str, Any],
    columns: dict[str, npt.NDArray[Any]],
) -> dict[str, Any]:
    from importlib.metadata import version

    plain, is_complete = _plain(options)
    return {
        "total_episodes": len(columns["lengths"]),
        "total_steps": len(columns["actions"]),
        "data_format": "npz",
        "env_id": id,
        "env_spec": env_spec(id, plain).to_json() if is_complete else None,
        "seat": envs.plan.seat,
        "options": plain,
        "options_are_complete": is_complete,
        "tables": {name: list(shape) for name, shape in envs.plan.table_shapes().items()},
        "columns": {
            table: list(getattr(envs.plan.columns, table))
            for table in envs.plan.table_shapes()
            if table != "lookahead"
        },
        "reward_terms": envs.reward_terms,
        "scores": list(SCORES),
        "num_actions": envs.plan.num_actions,
        "algorithm_name": policy if isinstance(policy, str) else _name_of(policy),
        "berthline_version": version("berthline"),
    }


def _name_of(policy: Policy) -> str:
    return str(getattr(policy, "__name__", type(policy).__name__))


def _plain(options: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the options that JSON can hold, and whether these are all of them."""
    plain: dict[str, Any] = {}
    is_complete = True
    for name, value in options.items():
        try:
            plain[name] = json.loads(json.dumps(value, default=_number))
        except TypeError:
            plain[name] = _NO_JSON
            is_complete = False
    return plain, is_complete


def _number(value: Any) -> Any:
    """Return a NumPy number as a Python number; dials keep what was given."""
    if not isinstance(value, np.generic):
        raise TypeError
    return value.item()


def _write(out: Path, columns: dict[str, npt.NDArray[Any]], metadata: dict[str, Any]) -> None:
    """Write the folder under another name, then rename it: a dataset is complete or absent."""
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **columns)
    with complete_directory(out, what="the dataset") as partial:
        (partial / "data").mkdir()
        (partial / DATA).write_bytes(content.getvalue())
        (partial / METADATA).write_text(json.dumps(metadata, indent=2) + "\n", "utf-8")
