"""Exported policies: an ONNX file with a manifest beside it, run by onnxruntime."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.errors import MissingExtraError, PolicyError
from berthline.policies.learned import manifest_of, read_facts

if TYPE_CHECKING:
    import os

FORMAT = 2
"""Increased when the meaning of a manifest's contents changes."""
INPUT, OUTPUT = "observation", "scores"


class OnnxPolicy:
    """A policy that `berthline export onnx` wrote.

    Attributes:
        manifest: describes the policy; `layout` defines the observation and the actions.

    Args:
        path: the ONNX file.

    Raises:
        PolicyError: it cannot be read, or does not match its manifest.
        MissingExtraError: onnxruntime is not installed.

    Example:
        policy = OnnxPolicy("policy.onnx")
        action = policy.choose(observation, action_mask)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        path = Path(path)
        self.manifest: dict[str, Any] = _read_manifest(path)
        self._session = open_session(path.read_bytes(), where=str(path))

    def scores(self, observation: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the score of every action, for one flat observation."""
        return _scores(self._session, observation)

    def choose(self, observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:
        """Return the allowed action with the highest score."""
        return choose_by(self._session, observation, mask)


def choose_by(
    session: Any, observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]
) -> int:
    """Return the allowed action that a session's model scores highest."""
    return int(np.where(mask, _scores(session, observation), -np.inf).argmax())


def _scores(session: Any, observation: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    found: npt.NDArray[np.float32] = session.run([OUTPUT], {INPUT: observation[None]})[0][0]
    return found


def open_session(model: bytes, *, where: str) -> Any:
    """Return an onnxruntime session with one thread.

    Raises:
        PolicyError: not an ONNX model.
        MissingExtraError: onnxruntime is not installed.
    """
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("onnxruntime", "deploy", "an exported policy") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no narrower common class
        raise PolicyError(f"not a model: {error}", where=where) from None


def _read_manifest(path: Path) -> dict[str, Any]:
    beside = manifest_of(path)
    try:
        manifest = read_facts(path, beside)
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise PolicyError(
            f"not an exported policy: {error}",
            where=str(path),
            expected=f"an ONNX file with {beside.name} beside it",
        ) from None
    if manifest.get("format") not in (1, FORMAT):
        raise PolicyError(
            "the manifest has another format",
            where=str(beside),
            expected=f"format {FORMAT}",
            hint="export the policy again",
        )
    if manifest.get("onnx_sha256") != sha256:
        raise PolicyError(
            "the manifest describes another file",
            where=str(beside),
            expected=f"onnx_sha256 {sha256}",
            hint="copy both files together, or export again",
        )
    return manifest
