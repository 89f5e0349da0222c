"""Gymnasium's RecordVideo, single and batched; `make test-interop` installs what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gymnasium as gym
import pytest
from gymnasium.wrappers import RecordVideo
from gymnasium.wrappers.vector import RecordVideo as RecordVideoOfBatch

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("moviepy", reason="moviepy asks for an older Pillow: make test-interop")
pytestmark = pytest.mark.filterwarnings("default")  # moviepy has warnings of its own
SMALL = {"episode_jobs": 20, "cluster": "uniform:2x4:V100", "render_mode": "rgb_array"}


def seconds_of(film: Path) -> float:
    from moviepy import VideoFileClip

    with VideoFileClip(str(film)) as clip:
        return float(clip.duration)


def test_one_environment(tmp_path: Path) -> None:
    made = gym.make("berthline:berthline/Pick-v0", **SMALL)
    env = RecordVideo(made, str(tmp_path), episode_trigger=lambda _: True)
    _, info = env.reset(seed=1)
    steps, is_over = 0, False
    while not is_over:
        *_, terminated, truncated, info = env.step(info["action_mask"].argmax())
        is_over = terminated or truncated
        steps += 1
    env.close()
    (film,) = tmp_path.glob("*.mp4")
    assert seconds_of(film) == pytest.approx((steps + 1) / env.metadata["render_fps"], abs=0.3)


def test_a_batch(tmp_path: Path) -> None:
    envs = RecordVideoOfBatch(
        gym.make_vec(
            "berthline:berthline/Pick-v0", num_envs=2, autoreset_mode="next_step", **SMALL
        ),
        str(tmp_path),
        video_length=8,
    )
    _, infos = envs.reset(seed=1)
    for _ in range(12):
        *_, infos = envs.step(infos["action_mask"].argmax(axis=1))
    envs.close()
    films = sorted(tmp_path.glob("*.mp4"))
    assert films
    assert seconds_of(films[0]) == pytest.approx(8 / 4, abs=0.3)
