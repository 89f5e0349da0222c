"""export_policy: a network of one's own, written as a policy that runs wherever schedulers do.

A network that the native core can run is written for it; anything else becomes an ONNX file.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from berthline.deploy.export_onnx import STATES, TOLERANCE, random_states, write_onnx
from berthline.deploy.given_policy import seat_and_options
from berthline.deploy.native_policy import NativePolicy, is_plain
from berthline.deploy.other_libraries import is_model, is_module, module_of_model, scores_of
from berthline.env.columns import Columns
from berthline.env.make_plan import make_plan
from berthline.env.observation_layout import ObservationLayout
from berthline.env.options import resolve_options
from berthline.env.options_of_decisions import options_of_decisions
from berthline.env.rewards import Reward, resolve_reward
from berthline.errors import ConfigError, MissingExtraError
from berthline.policies.learned import ONNX
from berthline.policies.policy_directory import write_policy
from berthline.text_or_path import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.text_or_path import TextOrPath


class ExportedPolicy(NamedTuple):
    """A policy that was written.

    Attributes:
        path: the directory or the ONNX file, which is a scheduler.
        runs_in: `native core` or `onnxruntime`.
        statement: what was written and why, in a sentence.
    """

    path: Path
    runs_in: str
    statement: str


class _Plain(NamedTuple):
    """A network in the form of Berthline's own: its shape, and its tensors by name."""

    network: dict[str, Any]
    tensors: dict[str, Any]


def export_policy(
    module: Any, env: Any, path: TextOrPath, *, force: bool = False, **options: Any
) -> ExportedPolicy:
    """Write a network as a policy that simulate, compare, evaluate and deployment run.

    Linear layers with ReLU between them (a torch.nn.Sequential), and the networks `mlp` and
    `kernel`, are written as a directory for the native core: microseconds for a decision, without
    torch. Any other module becomes an ONNX file, which needs the extra `deploy` where it runs and
    `export` here. The scores of what was written are compared with the module's.

    Args:
        module: a torch module: flat observations, (batch, numbers), to scores of actions,
            (batch, actions), perhaps with values; the best allowed action is taken. Or a model of
            Stable-Baselines3 with flat observations.
        env: the environment it was trained in, also a batch, or an id such as `Pick`.
        path: the directory; for an ONNX file, `.onnx` is appended. A path that ends in `.onnx`
            asks for such a file.
        force: replace what is there.
        options: of the environment, if `env` is an id.

    Raises:
        ConfigError: it is not a module, does not fit the environment, or something is there.
        MissingExtraError: torch, onnx or onnxruntime is not installed.

    Example:
        network = torch.nn.Sequential(nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, actions))
        ... # train it
        berthline.export_policy(network, envs, "policies/mine").statement
    """
    seat, given = seat_and_options(env, options)
    plan = make_plan(seat, resolve_options(seat, {**given, "observation": "flat"}))
    layout = ObservationLayout.of(plan)
    if is_model(module):
        module = module_of_model(module)
    if not is_module(module):
        raise ConfigError(
            f"the policy is {module!r}",
            expected="a torch module, or a model of Stable-Baselines3",
            hint="a function cannot be written to a file; berthline.Policy runs it from Python",
        )
    target = Path(text_of("path", path))
    as_onnx = target.suffix == ONNX
    plain, reason = _plain(module)
    if plain is None and not as_onnx:
        target = target.with_name(target.name + ONNX)
    if target.exists() and not force:
        raise ConfigError("it already exists", where=str(target), hint="`force` replaces it")
    network = plain.network if plain is not None else {"kind": "given"}
    facts = {
        "algorithm": "given",
        "config": {
            "algorithm": "given",
            "seat": seat,
            "options": _plain_options(given),
            "network": network,
            "metric": resolve_reward(plan.options.reward, plan.options.reward_weights).metric,
        },
        "environment": options_of_decisions(seat, given),
    }
    was_training = module.training
    module.eval()
    try:
        _check_scores(module, layout)
        if plain is None or as_onnx:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_onnx(module, layout, target, facts)
            why = "as asked" if as_onnx else f"because {reason}"
            statement = f"an ONNX file, {why}; it needs onnxruntime: berthline[deploy]"
            return ExportedPolicy(target, "onnxruntime", statement)
        difference = _difference(module, plain, layout)
    finally:
        module.train(was_training)
    _write(target, plain, layout, facts)
    statement = (
        f"a policy for the native core, without torch: {network['kind']} with layers "
        f"{','.join(map(str, network['hidden']))}; on {STATES} random states its scores differ "
        f"from the module's by at most {difference:.2g}"
    )
    return ExportedPolicy(target, "native core", statement)


def _plain(module: Any) -> tuple[_Plain | None, str]:
    """Return a module in the form of our own networks; None = the native core cannot run it."""
    from torch import nn

    from berthline.learn.networks.networks import Network

    if isinstance(module, Network):
        tensors = dict(module.state_dict())
        if not is_plain(module.config.kind, tensors):
            return None, f"the native core does not run the network {module.config.kind!r} as it is"
        return _Plain(msgspec.to_builtins(module.config), tensors), ""
    layers = list(_layers(module))
    linear, between = layers[::2], layers[1::2]
    wrong = [layer for layer in linear if not isinstance(layer, nn.Linear) or layer.bias is None]
    wrong += [layer for layer in between if not isinstance(layer, nn.ReLU)]
    if wrong or len(linear) < 2 or len(layers) % 2 == 0:
        found = type(wrong[0]).__name__ if wrong else type(module).__name__
        return None, f"the native core runs linear layers with ReLU between them, not {found}"
    tensors = {}
    for index, layer in enumerate(linear):
        name = "head.0" if layer is linear[-1] else f"body.layers.{2 * index}"
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = layer.weight, layer.bias
    hidden = [layer.out_features for layer in linear[:-1]]
    return _Plain({"kind": "mlp", "hidden": hidden, "heads": 4}, tensors), ""


def _layers(module: Any) -> Any:
    """Yield the layers of nested sequences, without those that change nothing in use."""
    from torch import nn

    if isinstance(module, nn.Sequential):
        for part in module:
            yield from _layers(part)
    elif not isinstance(module, nn.Identity | nn.Dropout | nn.Flatten):
        yield module


def _check_scores(module: Any, layout: ObservationLayout) -> None:
    """Raise unless a module scores the actions of observations.

    Raises:
        ConfigError: it does not.
    """
    import torch

    expected = f"(2, {layout.actions}) for observations of shape (2, {layout.size})"
    try:
        with torch.inference_mode():
            scores = scores_of(module(torch.zeros(2, layout.size)))
    except Exception as error:
        raise ConfigError(
            f"the module failed: {type(error).__name__}: {error}",
            where=f"the environment of the seat {layout.seat}",
            expected=f"scores of shape {expected}",
        ) from error
    if tuple(scores.shape) != (2, layout.actions):
        raise ConfigError(
            f"the module's scores have shape {tuple(scores.shape)}",
            where=f"the environment of the seat {layout.seat}",
            expected=expected,
        )


def _difference(module: Any, plain: _Plain, layout: ObservationLayout) -> float:
    """Return the largest difference between native scores and the module's.

    Raises:
        ConfigError: it is too large.
    """
    import torch

    states = random_states(layout, STATES)
    with torch.inference_mode():
        expected = scores_of(module(torch.from_numpy(states))).numpy()
    tensors = {name: tensor.detach().cpu().numpy() for name, tensor in plain.tensors.items()}
    native = NativePolicy(plain.network["kind"], tensors, layout)
    found = np.stack([native.scores(state) for state in states])
    difference = float(np.abs(found - expected).max())
    if not difference <= TOLERANCE * max(1.0, float(np.abs(expected).max())):
        raise ConfigError(
            f"the native network differs from the module by {difference:.3g}",
            hint="write it as ONNX: a path that ends in .onnx",
        )
    return difference


def _write(path: Path, plain: _Plain, layout: ObservationLayout, facts: Mapping[str, Any]) -> None:
    try:
        from safetensors.torch import save_file
    except ImportError:
        raise MissingExtraError("safetensors", "deploy", "writing a policy") from None
    tensors = {
        f"policy.{name}": tensor.detach().cpu().contiguous()
        for name, tensor in plain.tensors.items()
    }
    about = {
        **facts,
        "layout": msgspec.to_builtins(layout),
        "layout_sha256": layout.sha256,
    }
    write_policy(path, lambda file: save_file(tensors, file), step=0, facts=about)


def _plain_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a file can hold; jobs and nodes that are objects are left out."""
    found = {}
    for name, value in given.items():
        plain = dataclasses.asdict(value) if isinstance(value, Columns | Reward) else value
        if name in ("workload", "cluster", "start") and not isinstance(value, str):
            continue
        try:
            found[name] = json.loads(json.dumps(plain))
        except TypeError:
            raise ConfigError(f"the option {name} is {value!r}", expected="plain data") from None
    return found
