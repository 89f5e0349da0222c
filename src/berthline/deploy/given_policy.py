"""Policy: a Python object as a scheduler: a function, a network, a model of another library.

It is asked by the same native agent as policies from files; `policies/given.py` has its name.
"""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.deploy.onnx_policy import open_session
from berthline.deploy.other_libraries import (
    environment_of_model,
    is_model,
    is_module,
    model_choice,
    module_choice,
    session_choice,
)
from berthline.env.make_plan import make_plan
from berthline.env.observation_layout import ObservationLayout
from berthline.env.options import Options, resolve_options
from berthline.env.options_of_decisions import options_of_decisions
from berthline.env.registration import seat_of
from berthline.env.rewards import resolve_reward
from berthline.env.seat_defaults import SEAT_DEFAULTS, with_defaults
from berthline.errors import BerthlineError, ConfigError, PolicyError
from berthline.policies.given import PREFIX, Given, keep
from berthline.policies.learned import ONNX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.env.plan import Plan

Observation = npt.NDArray[np.float32] | dict[str, npt.NDArray[Any]]
ENVIRONMENT = "Pick"
_NAME = re.compile(r"[^\w.-]+")


class Policy:
    """A function, a network or a model as a scheduler, wherever one is named.

    It runs in Python, one question at a time, so it is slow; `berthline.export_policy` writes a
    network to a file that runs without Python. A discipline or a placement may follow its name,
    as with policies from files: `f"{policy}+easy"`.

    Args:
        choose: a function of (observation, mask) that returns an action; or a torch module that
            scores actions, a model of Stable-Baselines3 or sb3-contrib, or an ONNX file. The best
            allowed action of a network or a model is taken.
        env: the environment it plays in: an id such as `Pick`, or one that was made, also a batch;
            None = that of a model, or Pick.
        batched: whether a function takes and returns several at once: (batch, ...) to (batch,).
        name: its name in results; None = that of the function or class.
        options: of the environment, if `env` is an id; see `gym.make`.

    Raises:
        ConfigError: it is none of these, or an option is wrong.

    Example:
        >>> def first(observation, mask):
        ...     return int(mask.argmax())
        >>> Policy(first, "Pick")
        Policy('first', seat='pick', knowledge='estimate')
    """

    def __init__(
        self,
        choose: Any,
        env: Any = None,
        *,
        batched: bool = False,
        name: str | None = None,
        **options: Any,
    ) -> None:
        if env is None:
            env = environment_of_model(choose)
        seat, given = seat_and_options(env, options)
        form = _form_of(choose)
        if form is None:
            raise ConfigError(
                f"the policy is {choose!r}",
                expected="a function of (observation, mask), a torch module, a model of "
                "Stable-Baselines3, or an ONNX file",
            )
        about, choice, is_flat = form(choose)
        if "observation" not in given and is_flat:
            given["observation"] = "flat"
        resolved = resolve_options(seat, given)
        plan = make_plan(seat, resolved)
        layout = ObservationLayout.of(plan)
        metric = resolve_reward(resolved.reward, resolved.reward_weights).metric
        label = name or getattr(choose, "__name__", "") or _label_of(choose)
        of_dict = resolved.observation == "dict"
        asked = batched or choice is not choose
        self.given = keep(
            Given(
                name=_NAME.sub("-", label).strip("-") or "policy",
                seat=seat,
                knowledge=resolved.knowledge,
                facts={
                    "algorithm": "given",
                    "config": {"options": given, "metric": metric},
                    "environment": options_of_decisions(seat, given),
                },
                load=lambda layout: GivenChoice(
                    choice, layout, as_tables=of_dict, batched=asked, name=label
                ),
                about=about,
            )
        )
        self.layout = layout

    def __fspath__(self) -> str:
        # Every function that takes a scheduler takes a text or a path; so it takes a policy too.
        return f"{PREFIX}{self.given.name}"

    def __str__(self) -> str:
        return self.__fspath__()

    def __repr__(self) -> str:
        given = self.given
        return f"Policy({given.name!r}, seat={given.seat!r}, knowledge={given.knowledge!r})"


class GivenChoice:
    """Asks an object for actions, and checks them.

    Args:
        choice: a function of (observation, mask), batched or not.
        layout: of observations.
        as_tables: whether observations are given as tables, as environments do with
            `observation="dict"`.
        batched: whether the function takes batches; it gets one of one.
        name: of the policy, for errors.
    """

    def __init__(
        self,
        choice: Callable[[Any, Any], Any],
        layout: ObservationLayout,
        *,
        as_tables: bool,
        batched: bool,
        name: str,
    ) -> None:
        self._choice, self._layout, self._name = choice, layout, name
        self._as_tables, self._batched = as_tables, batched

    def choose(self, observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:
        """Return the action.

        Raises:
            PolicyError: the object fails, or its answer is not an allowed action.
        """
        mask = np.array(mask, np.bool_)
        seen: Any = self._tables(observation, mask) if self._as_tables else observation.copy()
        if self._batched:
            seen = {k: v[None] for k, v in seen.items()} if self._as_tables else seen[None]
        try:
            answer = self._choice(seen, mask[None] if self._batched else mask)
        except BerthlineError:
            raise
        except Exception as error:
            raise PolicyError(
                f"the policy failed: {type(error).__name__}: {error}",
                where=f"{PREFIX}{self._name}",
                expected=f"an action for observations of {self._shapes()}, and a mask of"
                f" {mask.shape}",
            ) from error
        return self._action(answer, mask)

    def _action(self, answer: Any, mask: npt.NDArray[np.bool_]) -> int:
        found = np.asarray(answer).ravel()
        pair = self._layout.has_pairs and found.size == 2
        if found.size != 1 + pair or found.dtype.kind not in "iu":
            raise PolicyError(
                f"the policy chose {answer!r}",
                where=f"{PREFIX}{self._name}",
                expected="a whole number: the index of an action",
            )
        if pair:
            nodes = self._layout.shapes["nodes"][0]
            jobs = (len(mask) - 1) // nodes
            action = jobs * nodes if found[0] == jobs else int(found[0]) * nodes + int(found[1])
        else:
            action = int(found[0])
        if not 0 <= action < len(mask) or not mask[action]:
            allowed = np.flatnonzero(mask)
            shown = ", ".join(map(str, allowed[:8])) + (", ..." if len(allowed) > 8 else "")
            raise PolicyError(
                f"the policy chose {answer!r}, which is not allowed",
                where=f"{PREFIX}{self._name}",
                expected=f"one of {shown}: where the mask is True",
            )
        return action

    def _tables(
        self, observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]
    ) -> dict[str, npt.NDArray[Any]]:
        """Return an observation as an environment with `observation="dict"` gives it."""
        tables: dict[str, npt.NDArray[Any]] = {
            name: observation[place].reshape(self._layout.shapes[name]).copy()
            for name, place in self._layout.slices().items()
        }
        if not self._layout.has_pairs:
            return {**tables, "action_mask": mask.astype(np.int8)}
        pairs = mask[:-1].reshape(-1, self._layout.shapes["nodes"][0])
        jobs = np.append(pairs.any(axis=1), mask[-1])
        return {
            **tables,
            "action_mask": np.concatenate((jobs, pairs.any(axis=0))).astype(np.int8),
            "pair_mask": pairs.astype(np.int8),
        }

    def _shapes(self) -> str:
        if self._as_tables:
            return ", ".join(f"{name} {shape}" for name, shape in self._layout.shapes.items())
        return f"({self._layout.size},)"


def policy_of(given: Any) -> Any:
    """Return what names a scheduler: a text or a path as it is, else a Policy.

    Raises:
        ConfigError: it cannot be one.
    """
    if isinstance(given, str | os.PathLike):
        return given
    return Policy(given)


def seat_and_options(env: Any, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the seat and the options of an environment or of its id, defaults included."""
    if env is None or isinstance(env, str):
        seat = seat_of(env or ENVIRONMENT)
        return seat, with_defaults(seat, options)
    if options:
        raise ConfigError(
            f"the option {next(iter(options))} for an environment that was made",
            where="berthline.Policy",
            expected="options with the id of an environment",
        )
    plan = plan_of(env)
    # Every option by its name: a preset is what it stands for.
    usual = {field.name: field.default for field in dataclasses.fields(Options)}
    own = {*SEAT_DEFAULTS[plan.seat]} - ({"no_op"} if plan.options.semantics == "rank" else set())
    found = {
        name: value
        for name, value in vars(plan.options).items()
        if name in own or not (value is None or _is(value, usual[name]))
    }
    return plan.seat, {**found, "observation": plan.options.observation}


def _is(value: Any, usual: Any) -> bool:
    same: bool = value is usual or (isinstance(value, str | float | tuple) and value == usual)
    return same or value == {}


def plan_of(env: Any) -> Plan:
    """Return the plan of an environment, of a batch, or of one that is wrapped.

    Raises:
        ConfigError: it is not an environment of Berthline.
    """
    seen = env
    for _ in range(32):  # wrappers around wrappers
        if (plan := getattr(seen, "plan", None)) is not None:
            return plan  # type: ignore[no-any-return]
        inside = next(
            (
                getattr(seen, name)
                for name in ("unwrapped", "venv", "envs", "env")
                if getattr(seen, name, None) is not None and getattr(seen, name) is not seen
            ),
            None,
        )
        seen = inside[0] if isinstance(inside, list | tuple) else inside
        if seen is None:
            break
    raise ConfigError(
        f"the environment is {env!r}",
        expected="an id such as 'Pick', or an environment of berthline that was made",
    )


def _form_of(choose: Any) -> Callable[[Any], tuple[str, Any, bool]] | None:
    """Return the function that reads a policy: where it runs, the choice, if it is flat."""
    if isinstance(choose, str | os.PathLike):
        return _onnx if Path(choose).suffix == ONNX else None
    if is_model(choose):
        return lambda model: ("a model of Stable-Baselines3", model_choice(model), False)
    if is_module(choose):
        return lambda module: ("a module of torch", module_choice(module), True)
    if callable(choose):
        return lambda function: ("a function", function, False)
    return None


def _onnx(path: Any) -> tuple[str, Any, bool]:
    try:
        session = open_session(Path(path).read_bytes(), where=str(path))
    except OSError as error:
        raise ConfigError(f"cannot read it: {error.strerror}", where=str(path)) from None
    return "an ONNX file", session_choice(session), len(session.get_inputs()) == 1


def _label_of(choose: Any) -> str:
    if isinstance(choose, str | os.PathLike):
        return Path(choose).stem
    return type(choose).__name__
