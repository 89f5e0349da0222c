"""Exported policies: the network of a checkpoint as an ONNX file, checked against torch.

The file takes one observation at a time, with as many rows as in training. A manifest beside it
describes the input and the output.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.atomic_write import write_atomically
from berthline.deploy.onnx_policy import FORMAT, INPUT, OUTPUT, open_session
from berthline.deploy.other_libraries import scores_of
from berthline.deploy.torch_policy import TorchPolicy
from berthline.deploy.trained_policy import read_policy
from berthline.errors import ConfigError, MissingExtraError
from berthline.policies.learned import ONNX, Learned, manifest_of
from berthline.sealed_json import seal

if TYPE_CHECKING:
    from pathlib import Path

    from berthline.env.observation_layout import ObservationLayout

OPSET = 17
STATES = 256
"""Number of random states on which a file is checked before it is written."""
TOLERANCE = 1e-4
"""Largest allowed difference from torch's scores, as a share of the largest score.

Float32 sums in another order differ slightly.
"""


def export_onnx(learned: Learned, out: Path) -> dict[str, Any]:
    """Write a policy as an ONNX file with its manifest, and return the manifest.

    Args:
        learned: the policy, from a run or a checkpoint.
        out: the file; its manifest has the same name and ends in `.json`.

    Raises:
        ConfigError: it is already an ONNX file, or the file would not give torch's scores.
        MissingExtraError: torch, onnx or onnxruntime is not installed.
    """
    if learned.path.suffix == ONNX:
        raise ConfigError(
            "the policy is an ONNX file", where=str(learned.path), expected="a run or a checkpoint"
        )
    trained = read_policy(learned)
    layout = trained.layout
    network = TorchPolicy(trained.network, trained.tensors, layout).network
    return write_onnx(
        network,
        layout,
        out,
        {
            "policy": str(learned.path),
            "policy_sha256": learned.sha256,
            "algorithm": trained.facts["algorithm"],
            "config": trained.facts["config"],
            "environment": trained.facts.get("environment"),
        },
    )


def write_onnx(
    network: Any, layout: ObservationLayout, out: Path, facts: dict[str, Any]
) -> dict[str, Any]:
    """Write a network as an ONNX file with its manifest, and return the manifest.

    Args:
        network: a torch module: flat observations to scores of actions, perhaps with values.
        layout: of the observations.
        out: the file.
        facts: what the manifest says about the policy.

    Raises:
        ConfigError: the file would not give torch's scores.
        MissingExtraError: onnx or onnxruntime is not installed.
    """
    model = to_onnx(network, layout)
    difference = _check(model, network, random_states(layout, STATES), where=str(out))
    manifest = {
        "format": FORMAT,
        "berthline": version("berthline"),
        **facts,
        "onnx_sha256": hashlib.sha256(model).hexdigest(),
        "opset": OPSET,
        "input": {"name": INPUT, "shape": [1, layout.size], "type": "float32"},
        "output": {"name": OUTPUT, "shape": [1, layout.actions], "type": "float32"},
        "layout": msgspec.to_builtins(layout),
        "layout_sha256": layout.sha256,
        "checked": {"states": STATES, "largest_difference": difference},
    }
    # Write the manifest last: without it, the file is not an exported policy.
    write_atomically(out, model)
    text = json.dumps(seal(manifest), indent=2) + "\n"
    write_atomically(manifest_of(out), text.encode())
    return manifest


def to_onnx(network: Any, layout: ObservationLayout) -> bytes:
    """Return a network as the bytes of an ONNX file.

    Raises:
        MissingExtraError: onnx is not installed.
    """
    import torch

    try:
        import onnx  # noqa: F401 - torch's exporter needs it
    except ImportError:
        raise MissingExtraError("onnx", "export", "exporting a policy") from None

    class Scores(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, observation: torch.Tensor) -> torch.Tensor:
            scores: torch.Tensor = scores_of(self.network(observation))
            return scores

    content: Any = io.BytesIO()  # torch accepts it, but its types do not say so
    with warnings.catch_warnings():
        # The newer exporter takes 15 s instead of 0.5 s, and writes files four times as large.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Scores().eval(),
            (torch.ones(1, layout.size),),
            content,
            dynamo=False,
            opset_version=OPSET,
            input_names=[INPUT],
            output_names=[OUTPUT],
        )
    return bytes(content.getvalue())


def random_states(layout: ObservationLayout, num: int, *, seed: int = 0) -> npt.NDArray[np.float32]:
    """Return random states: full tables, and tables with few or no rows."""
    draws = np.random.Generator(np.random.Philox(seed))
    states = draws.standard_normal((num, layout.size)).astype(np.float32)
    for name, where in layout.slices().items():
        shape = layout.shapes[name]
        if len(shape) == 2:
            filled = draws.integers(0, shape[0] + 1, num)
            there = np.arange(shape[0]) < filled[:, None]
            states[:, where] *= np.repeat(there, shape[1], axis=1)
    return states


def _check(model: bytes, network: Any, states: npt.NDArray[np.float32], *, where: str) -> float:
    """Return the largest difference between the exported scores and torch's.

    Raises:
        ConfigError: it is too large.
    """
    import torch

    session = open_session(model, where=where)
    with torch.inference_mode():
        expected = scores_of(network(torch.from_numpy(states))).numpy()
    found = np.concatenate([session.run([OUTPUT], {INPUT: one[None]})[0] for one in states])
    difference = float(np.abs(found - expected).max())
    limit = TOLERANCE * max(1.0, float(np.abs(expected).max()))
    if not difference <= limit:
        raise ConfigError(
            f"the exported network differs from torch's by {difference:.3g}",
            where=where,
            expected=f"{limit:.3g} at most, on {len(states)} random states",
        )
    return difference
