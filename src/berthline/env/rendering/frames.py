"""Rendering: the frames of environments, as Gymnasium asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import numpy.typing as npt

from berthline.env.rendering.shown_question import action_words, shown_question
from berthline.errors import ConfigError, unknown_name
from berthline.view.playback import Playback
from berthline.view.scene_picture import check_pillow, scene_picture
from berthline.view.scene_text import scene_text

if TYPE_CHECKING:
    from berthline.env.native_envs import NativeEnvs
    from berthline.view.scene import Scene

RENDER_MODES = ("ansi", "rgb_array")
RENDERING: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 4}
"""For the metadata of environments."""

RenderedFrame = str | npt.NDArray[np.uint8]
Thoughts = Callable[[Any, npt.NDArray[np.bool_]], npt.ArrayLike]
"""Returns a probability for each entry of the mask, from an observation and its mask."""


def take_render_mode(mode: Any) -> str | None:
    """Return the render mode that an environment was given.

    Raises:
        ConfigError: there is no such mode.
        MissingExtraError: it needs Pillow, which is not installed.
    """
    if mode is None:
        return None
    if mode not in RENDER_MODES:
        _, _, hint = unknown_name("render mode", str(mode), RENDER_MODES)
        raise ConfigError(
            f"render_mode is {mode!r}", expected="None, 'ansi' or 'rgb_array'", hint=hint
        )
    if mode == "rgb_array":
        check_pillow("render_mode='rgb_array'")
    return str(mode)


def warn_without_mode() -> None:
    """Warn, as Gymnasium's own environments do, that there is nothing to render."""
    gymnasium.logger.warn(
        "render() is called, but the environment was made without a render mode: "
        'gym.make(..., render_mode="ansi" or "rgb_array")'
    )


class LastChoices:
    """The last answer of each environment, in words.

    Args:
        envs: the environments.
    """

    def __init__(self, envs: NativeEnvs) -> None:
        self._envs = envs
        self.words = [""] * envs.num_envs

    def forget(self, envs: Sequence[int]) -> None:
        """Forget the answers of episodes that are over."""
        for env in envs:
            self.words[env] = ""

    def note(self, env: int, action: int, node: int = 0) -> None:
        """Keep an answer that is about to be given, unless it is about to be ignored."""
        envs, plan = self._envs, self._envs.plan
        if envs.ended[env] and not envs.same_step:
            self.words[env] = ""
            return
        mask = envs.mask[env]
        if not 0 <= action < plan.num_actions:
            return
        words = action_words(plan, envs.question(env), action, node)
        self.words[env] = words if mask[action] else f"{words} (not allowed)"


def scene_of(
    envs: NativeEnvs, env: int, *, thoughts: npt.ArrayLike | None, last_choice: str
) -> Scene:
    """Return what an environment looks like now.

    Args:
        envs: the environments.
        env: the number of one.
        thoughts: a probability for each entry of its mask; None = not known.
        last_choice: its last answer, in words.
    """
    plan, question = envs.plan, envs.question(env)
    seed, number = envs.episode(env)
    log = envs.log(env)
    playback = Playback(
        envs.workload(env),
        plan.cluster,
        log,
        knowledge=plan.options.knowledge,
        title=f"{plan.seat}, seed {seed}, episode {number}",
    )
    mask = envs.mask[env]
    shown = shown_question(plan, question, mask, _checked(thoughts, len(mask)))
    return playback.scene(question["now"], rows=len(log), question=shown, last_choice=last_choice)


def frame_of(scene: Scene, mode: str) -> RenderedFrame:
    """Return a scene in a render mode."""
    return scene_text(scene).plain if mode == "ansi" else scene_picture(scene)


def _checked(thoughts: npt.ArrayLike | None, size: int) -> npt.NDArray[np.float64] | None:
    if thoughts is None:
        return None
    found = np.asarray(thoughts, np.float64)
    if found.shape != (size,):
        raise ConfigError(
            f"the policy shown gives numbers of shape {found.shape}",
            where="render",
            expected=f"a probability for each entry of the mask, ({size},)",
        )
    return found
