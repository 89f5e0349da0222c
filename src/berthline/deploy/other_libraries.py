"""Models of other libraries as functions that choose actions: torch, onnxruntime, SB3.

Nothing here imports a library: an object of one exists only where it is installed.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator

Mask = npt.NDArray[np.bool_]
Choice = Callable[[Any, Mask], Any]
_THREADS_OF_TORCH = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def is_module(given: Any) -> bool:
    """Whether an object is a module of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, torch.nn.Module)


def is_model(given: Any) -> bool:
    """Whether an object is a model of Stable-Baselines3 or sb3-contrib."""
    base = sys.modules.get("stable_baselines3.common.base_class")
    return base is not None and isinstance(given, base.BaseAlgorithm)


def environment_of_model(given: Any) -> Any:
    """Return the environment that a model was trained in; None = it has none."""
    return given.get_env() if is_model(given) else None


def module_choice(module: Any) -> Choice:
    """Return the best allowed actions of a module: (batch, ...) to scores of actions.

    A module may also return scores with something else, such as values: then scores come first.
    """
    import torch

    def choose(observation: Any, mask: Mask) -> npt.NDArray[np.int64]:
        given = (
            {name: torch.from_numpy(table) for name, table in observation.items()}
            if isinstance(observation, dict)
            else torch.from_numpy(observation)
        )
        was_training = module.training
        if was_training:
            module.eval()
        try:
            with torch.inference_mode():
                found = module(given)
        finally:
            if was_training:
                module.train()
        return _best(scores_of(found).float().cpu().numpy(), mask)

    return choose


def scores_of(found: Any) -> Any:
    """Return the scores, (batch, actions), in what a module returned: the first of several."""
    scores: Any = found[0] if isinstance(found, tuple) else found
    if hasattr(scores, "logits"):  # a distribution of torch
        scores = scores.logits
    return scores[..., 0] if scores.dim() == 3 else scores


def session_choice(session: Any) -> Choice:
    """Return the best allowed actions of an onnxruntime session, whose first output scores them."""
    names = [one.name for one in session.get_inputs()]

    def choose(observation: Any, mask: Mask) -> npt.NDArray[np.int64]:
        if isinstance(observation, dict):
            missing = [name for name in names if name not in observation]
            if missing:
                raise PolicyError(
                    f"the model has an input {missing[0]!r}",
                    expected="a name of a table: " + ", ".join(observation),
                )
            given = {name: observation[name] for name in names}
        else:
            given = {names[0]: observation}
        return _best(np.asarray(session.run(None, given)[0]), mask)

    return choose


def model_choice(model: Any) -> Choice:
    """Return the deterministic actions of a model; without masks, its best allowed actions."""
    if "action_masks" in inspect.signature(model.predict).parameters:
        return lambda observation, mask: model.predict(
            observation, action_masks=mask, deterministic=True
        )[0]
    policy = model.policy

    def choose(observation: Any, mask: Mask) -> npt.NDArray[np.int64]:
        import torch

        given, _ = policy.obs_to_tensor(observation)
        with torch.inference_mode():
            if hasattr(policy, "q_net"):
                scores = policy.q_net(given)
            elif hasattr(policy, "get_distribution"):
                scores = getattr(policy.get_distribution(given).distribution, "logits", None)
            else:
                scores = None
        if scores is None:
            raise PolicyError(
                f"{type(model).__name__} has no score for each action",
                expected="a model with discrete actions, such as MaskablePPO, PPO or DQN",
            )
        return _best(scores.cpu().numpy(), mask)

    return choose


def module_of_model(model: Any) -> Any:
    """Return the network of a Stable-Baselines3 model as a module: flat observations to scores.

    Raises:
        ConfigError: it takes other observations, or has no such network.
    """
    import torch
    from stable_baselines3.common.torch_layers import FlattenExtractor

    policy = model.policy
    if hasattr(policy, "q_net"):
        extractor, parts = policy.q_net.features_extractor, [policy.q_net.q_net]
    elif hasattr(policy, "action_net"):
        extractor = policy.pi_features_extractor
        parts = [policy.mlp_extractor.policy_net, policy.action_net]
    else:
        extractor, parts = None, []
    if not isinstance(extractor, FlattenExtractor):
        raise ConfigError(
            f"{type(model).__name__} with {type(policy).__name__} cannot be written to a file",
            expected='MlpPolicy in an environment with observation="flat"',
            hint="berthline.Policy runs the model from Python",
        )
    return torch.nn.Sequential(*parts).to("cpu")


def _best(scores: npt.NDArray[Any], mask: Mask) -> npt.NDArray[np.int64]:
    """Return the allowed action with the highest score, for each of a batch."""
    if scores.size != mask.size:
        raise ConfigError(
            f"there are {scores.size} scores", expected=f"one for each of {mask.shape[-1]} actions"
        )
    best: npt.NDArray[np.int64] = np.where(mask, scores.reshape(mask.shape), -np.inf).argmax(axis=1)
    return best


class _Threads:
    lock = threading.Lock()
    users = 0
    before = 1


@contextlib.contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch use one thread, unless the environment sets a number (OMP_NUM_THREADS).

    A decision is too small for more: threads that wait for a busy core make it ten times as slow.
    """
    torch = sys.modules.get("torch")
    if torch is None or any(os.environ.get(name) for name in _THREADS_OF_TORCH):
        yield
        return
    with _Threads.lock:  # runs in several threads share the number
        if _Threads.users == 0:
            _Threads.before = torch.get_num_threads()
            torch.set_num_threads(1)
        _Threads.users += 1
    try:
        yield
    finally:
        with _Threads.lock:
            _Threads.users -= 1
            if _Threads.users == 0:
                torch.set_num_threads(_Threads.before)
