"""Learned policies as schedulers: their location and identity.

Nothing here runs a policy; `deploy/run_policy.py` does. A policy is written as the directory of
a training run, or of one of its checkpoints, as an exported ONNX file, or as the name of a shipped
network. The first digits of its hash may follow after `#`, as in the canonical text: then no other
policy is accepted. A bandit has learned nothing yet (policies/bandits.py).

What the policy does not decide is decided as in its training, unless another discipline or
placement follows: `runs/ppo+easy`, `runs/ppo@milp-candidates`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berthline.errors import PolicyError, unknown_name
from berthline.policies.bandits import Bandit, find_bandit, is_bandit
from berthline.policies.given import PREFIX, Given, find_given, is_given
from berthline.policies.rules import DISCIPLINES, PLACEMENTS
from berthline.policies.shipped_networks import place_of, shipped_networks
from berthline.runs.run_layout import CHECKPOINT_FACTS, CHECKPOINT_TENSORS, CHECKPOINTS, SEED_PREFIX
from berthline.sealed_json import damaged, sha256_of, unseal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.text_or_path import TextOrPath

ONNX = ".onnx"
DIGITS = 12
"""Digits of the hash in the text of a scheduler."""
_SHOWN = 8
_UNSEALED = 1
"""The format of checkpoints and manifests that had no checksums."""
_HINT = "use another checkpoint; one that is whole can begin a new run (init_from)"
_RULES = re.compile(
    r"(?P<first>.+?)(?:\+(?P<discipline>[a-z-]+))?(?:@(?P<placement>\[[^\]]*\]|[a-z-]+))?"
)
"""A policy or its hash, a discipline, a placement."""


@dataclasses.dataclass(frozen=True)
class Learned:
    """A learned policy.

    Attributes:
        name: the text form: what was written, and its hash.
        path: the checkpoint's directory, or the ONNX file.
        sha256: of everything that determines its decisions.
        seat: the seat of the scheduler that it fills.
        knowledge: what it knew about run times in training; empty = of a bandit, which had none.
        discipline: replaces that of its training; empty = as in training.
        placement: replaces that of its training; empty = as in training.
        given: the Python object that it is; None = it is in files.
    """

    name: str
    path: Path
    sha256: str
    seat: str
    knowledge: str
    discipline: str = ""
    placement: str = ""
    given: Given | None = None

    @property
    def bandit(self) -> Bandit | None:
        """What it is if it learns within the run; None = it has learned."""
        return self.given if isinstance(self.given, Bandit) else None

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is stored about it: its layout, and the options of its environment."""
        if self.given is not None:
            return self.given.facts
        facts: dict[str, Any] = json.loads(policy_files(self.path)[1].read_bytes())
        return facts

    @classmethod
    def _of_given(cls, text: str) -> Learned:
        given, discipline, placement = find_given(text)
        _check_rules(given.seat, discipline, placement, where=text)
        path = Path(f"{PREFIX}{given.name}")
        rules = (discipline, placement, given)
        return cls(text, path, "", given.seat, given.knowledge, *rules)

    @classmethod
    def find(cls, text: str) -> Learned | None:
        """Return the policy that a text names; None = it does not name one.

        Raises:
            PolicyError: it is unreadable, has no checkpoint yet, does not match the hash, or is a
                training run of several seeds.
            ConfigError: it is damaged.
        """
        if is_given(text):
            return cls._of_given(text.strip())
        if is_bandit(text):
            bandit = find_bandit(text)
            name = bandit.text
            return cls(name, Path(name), "", bandit.seat, bandit.knowledge, given=bandit)
        text, discipline, placement = _without_rules(text.strip())
        written, _, wanted = text.partition("#")
        if not is_policy(written):
            _check_not_of_seeds(written)
            return None
        path = place_of(written)
        files = policy_files(path)
        digest = hashlib.sha256()
        try:
            for file in files:
                digest.update(file.read_bytes())
            seat, knowledge = _seat_and_knowledge(read_facts(*files))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PolicyError(
                f"cannot read the policy: {type(error).__name__}: {error}",
                where=str(files[-1]),
                hint="train again, or use another checkpoint of the run",
            ) from None
        sha256 = digest.hexdigest()
        if not sha256.startswith(wanted.strip()):
            raise PolicyError(
                f"the policy has the hash {sha256[:DIGITS]}",
                where=str(path),
                expected=f"{wanted.strip()}, as written after '#'",
                hint="it has been trained further; omit the hash to use it as it is",
            )
        place = files[0] if path.suffix == ONNX else files[0].parent
        name = f"{written if written in shipped_networks() else path}#{sha256[:DIGITS]}"
        _check_rules(seat, discipline, placement, where=name)
        name += f"+{discipline}" if discipline else ""
        name += f"@{placement}" if placement else ""
        return cls(name, place, sha256, seat, knowledge, discipline, placement)


def _without_rules(text: str) -> tuple[str, str, str]:
    """Return the path of a policy, and the discipline and the placement written after it."""
    path, mark, rest = text.partition("#")
    if not mark and is_policy(text):
        return text, "", ""  # the characters of rules are allowed in names of directories
    match = _RULES.fullmatch(rest if mark else text)
    if match is None or not is_policy(path if mark else match["first"]):
        return text, "", ""
    first = f"{path}#{match['first']}" if mark else match["first"]
    return first, match["discipline"] or "", match["placement"] or ""


def _check_rules(seat: str, discipline: str, placement: str, *, where: str) -> None:
    """Raise unless a policy of a seat can be used with these rules.

    Raises:
        PolicyError: a rule is unknown, or the policy decides in its place.
    """
    for kind, name, known in (
        ("discipline", discipline, DISCIPLINES),
        ("placement", "" if placement.startswith("[") else placement, PLACEMENTS),
    ):
        if name and name not in known:
            what, expected, hint = unknown_name(kind, name, known)
            raise PolicyError(what, where=where, expected=expected, hint=hint)
    if placement and seat in ("place", "pickplace"):
        raise PolicyError(
            f"a placement with a policy of the seat {seat}",
            where=where,
            expected="none: the policy places the jobs itself",
        )


def is_policy(path: TextOrPath) -> bool:
    """Whether a path is that of a training run, a checkpoint or an exported policy."""
    # Every decision on a live system asks this of its rule, so most texts get a quick answer.
    text = os.fspath(path)
    if text not in shipped_networks() and not os.path.lexists(text):
        return False
    path = place_of(text)
    try:
        if path.suffix == ONNX:
            return path.is_file()
        return (path / CHECKPOINTS).is_dir() or (path / CHECKPOINT_FACTS).is_file()
    except OSError:  # a formula may be longer than any file name
        return False


def _check_not_of_seeds(path: str) -> None:
    if not os.path.lexists(path):
        return
    try:
        runs = sorted(Path(path).glob(f"{SEED_PREFIX}*/{CHECKPOINTS}"))
    except OSError:
        return
    if runs:
        names = [str(run.parent) for run in runs]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise PolicyError(
            "a training run of several seeds has a policy for each",
            where=path,
            expected=f"one of them: {', '.join(names[:_SHOWN])}{more}",
        )


def checkpoint_of(path: Path) -> Path | None:
    """Return the checkpoint that a path means: itself, or a run's best, or else its last."""
    if (path / CHECKPOINT_FACTS).is_file():
        return path
    for kind in ("best", "last"):
        found = sorted((path / CHECKPOINTS).glob(f"{kind}-*/{CHECKPOINT_FACTS}"))
        if found:
            return found[-1].parent
    return None


def manifest_of(onnx: Path) -> Path:
    """Return the file beside an exported policy that describes it."""
    return onnx.with_suffix(".json")


def policy_files(path: Path) -> tuple[Path, Path]:
    """Return the files of a policy: its numbers, and the facts about it.

    Raises:
        PolicyError: there is no checkpoint yet.
    """
    if path.suffix == ONNX:
        return path, manifest_of(path)
    found = checkpoint_of(path)
    if found is None:
        raise PolicyError(
            "the run has no checkpoint yet",
            where=str(path),
            expected="a run after its first validation",
        )
    return found / CHECKPOINT_TENSORS, found / CHECKPOINT_FACTS


def read_facts(numbers: Path, about: Path) -> dict[str, Any]:
    """Return the facts about a policy, after a check of the checksums of both files.

    Args:
        numbers: the file of its numbers.
        about: the file of the facts, which holds the SHA-256 of the numbers.

    Raises:
        ConfigError: one of them is not what was written.
        OSError: one of them cannot be read.
    """
    facts = unseal(
        about.read_bytes(), where=str(about), what="the policy", hint=_HINT, unsealed=(_UNSEALED,)
    )
    # An ONNX file of another policy is reported by the target that opens it.
    if numbers.suffix != ONNX and facts.get("format") != _UNSEALED:
        sha256 = sha256_of(numbers)
        if facts.get("tensors_sha256") != sha256:
            reason = f"its SHA-256 is {sha256[:DIGITS]}..."
            raise damaged("the policy", reason, where=str(numbers), hint=_HINT)
    return facts


def _seat_and_knowledge(facts: dict[str, Any]) -> tuple[str, str]:
    layout = facts["layout"]
    return str(layout["seat"]), str(layout["knowledge"])
