"""Checkpoints: numbers in a safetensors file, everything else as JSON. Nothing is ever unpickled.

A checkpoint is a directory `KIND-STEP` under `checkpoints/` of the run, such as `last-000040960`
or `best-000032768`; those of the kind `step` are kept beside them. It is written under a temporary
name and renamed when complete, and older ones of its kind are removed only then, so there is a
complete one at any time. `checkpoint.json` holds the SHA-256 of the numbers, and is sealed itself:
a checkpoint with one changed byte is refused.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.errors import ConfigError, MissingExtraError
from berthline.policies.learned import read_facts
from berthline.policies.policy_directory import FORMAT, write_policy
from berthline.runs.run_layout import CHECKPOINT_FACTS, CHECKPOINT_TENSORS

if TYPE_CHECKING:
    import torch

_READ = (1, FORMAT)
"""Formats that can be read; 1 had no checksums."""


class Checkpoint(msgspec.Struct, frozen=True):
    """The contents of a checkpoint.

    Attributes:
        path: where it is.
        facts: algorithm, environment, layout, network, configuration, step, state.
        tensors: by name, such as `policy.head.0.weight`.
    """

    path: Path
    facts: dict[str, Any]
    tensors: dict[str, Any]

    def part(self, prefix: str) -> dict[str, Any]:
        """Return the tensors of one part, without its prefix."""
        begin = f"{prefix}."
        return {k.removeprefix(begin): v for k, v in self.tensors.items() if k.startswith(begin)}


def save(
    directory: Path,
    kind: str,
    step: int,
    tensors: dict[str, torch.Tensor],
    facts: dict[str, Any],
    *,
    keep: int = 1,
) -> Path:
    """Write a checkpoint, and remove older ones of its kind.

    Args:
        directory: of all checkpoints of the run.
        kind: best, last or step.
        step: environment steps so far.
        tensors: what it holds, by name.
        facts: the rest, as JSON.
        keep: how many of its kind stay, this one included; 0 = all.

    Raises:
        OutputError: it cannot be written.
    """
    from safetensors.torch import save_file

    path = directory / f"{kind}-{step:012d}"
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_policy(path, lambda file: save_file(contiguous, file), step=step, facts=facts)
    others = [older for older in _of_kind(directory, kind) if older != path]
    for older in others[: len(others) + 1 - keep] if keep else []:
        shutil.rmtree(older, ignore_errors=True)
    return path


def find(directory: Path, kind: str) -> Path | None:
    """Return the newest checkpoint of a kind; None = there is none."""
    found = _of_kind(directory, kind)
    return found[-1] if found else None


def load(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        ConfigError: it is not a checkpoint, is damaged, or has another format.
        MissingExtraError: safetensors is not installed.
    """
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError:
        raise MissingExtraError("safetensors", "train", "reading checkpoints") from None
    try:
        facts = read_facts(path / CHECKPOINT_TENSORS, path / CHECKPOINT_FACTS)
        tensors = load_file(path / CHECKPOINT_TENSORS)
    except (OSError, SafetensorError) as error:
        raise ConfigError(
            f"not a checkpoint: {error}",
            where=str(path),
            expected=f"{CHECKPOINT_FACTS} and {CHECKPOINT_TENSORS}",
        ) from None
    if facts.get("format") not in _READ:
        raise ConfigError(
            "the checkpoint has another format",
            where=str(path),
            expected=f"format {FORMAT}",
            hint="read it with the version of Berthline that wrote it",
        )
    return Checkpoint(path, facts, tensors)


def optimizer_tensors(name: str, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Return the state of an optimiser for each parameter, as tensors to save."""
    state = optimizer.state_dict()["state"]
    return {
        f"{name}.{index}.{key}": value
        for index, values in state.items()
        for key, value in values.items()
    }


def restore_optimizer(checkpoint: Checkpoint, name: str, optimizer: torch.optim.Optimizer) -> None:
    """Set the state of an optimiser from a checkpoint; its options stay as they are."""
    state: dict[int, dict[str, Any]] = {}
    for key, tensor in checkpoint.part(name).items():
        index, field = key.split(".", 1)
        state.setdefault(int(index), {})[field] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _of_kind(directory: Path, kind: str) -> list[Path]:
    # Also one without its files: it appeared complete, so they were lost, which `load` reports.
    return sorted(path for path in directory.glob(f"{kind}-*") if path.is_dir())


def generator_state(generator: torch.Generator) -> str:
    """Return the state of a generator in hexadecimal."""
    return bytes(generator.get_state().tolist()).hex()


def restore_generator(generator: torch.Generator, state: str) -> None:
    """Set the state of a generator."""
    import torch

    generator.set_state(torch.tensor(list(bytes.fromhex(state)), dtype=torch.uint8))
