"""What `import berthline` connects lazily: environments and learned policies.

The environments are registered as soon as the program imports Gymnasium. `simulate` gets the
function that runs learned policies, which is in a layer above the simulators.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

from berthline.sim.policy_runner import register_policy_runner

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from berthline.sim.policy_runner import PolicyRunner

_AWAITED = "gymnasium"


class _Finder(MetaPathFinder):
    """Precedes the usual finders until the awaited module is first imported."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the signature is Python's
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if name != _AWAITED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            run(module)
            _register()

        spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec


def _register() -> None:
    from berthline.env.registration import register_environments
    from berthline.tasks.register_tasks import register_tasks

    register_environments()
    register_tasks()


def await_gymnasium() -> None:
    """Register the environments now, or when Gymnasium is imported."""
    if _AWAITED in sys.modules:
        _register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def connect_policies() -> None:
    """Let `simulate` run learned policies."""
    register_policy_runner(_run_policy)


def _run_policy() -> PolicyRunner:
    from berthline.deploy import run_policy

    return run_policy
