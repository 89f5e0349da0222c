"""Scenes as text and as pictures: widths, sizes, colours, and what is left out."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

import berthline as bl
from berthline.view.job_colours import JOB_COLOURS, job_colour
from berthline.view.playback import Playback
from berthline.view.scene import Asked, Choice, Scene, ShownNode
from berthline.view.scene_picture import THEMES, WIDTH, scene_picture
from berthline.view.scene_text import scene_text


@functools.cache
def scene_on(cluster: str, *, jobs: int = 80, title: str = "fcfs") -> Scene:
    """Return a busy scene."""
    result = bl.simulate("synthetic", cluster, "fcfs", jobs=jobs, load=3.0)
    played = Playback(result.workload, result.cluster, result.log, title=title)
    return played.scene(float(result.workload.submit[-1]) * 0.8)


CLUSTERS = ("uniform:1x1", "uniform:8x8", "uniform:64x8", "helios-venus", "uniform:1000x8")


def rgb(colour: str) -> tuple[int, ...]:
    """Return a colour as numbers."""
    return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))


@pytest.mark.parametrize("width", [24, 79, 200])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_text__fits_the_terminal(cluster: str, width: int) -> None:
    scene = scene_on(cluster, title="a title that is longer than most terminals are wide" * 4)
    asked = dataclasses.replace(
        scene, asked=Asked("meta", "which one", tuple(Choice(True, 0.2, "x" * 30) for _ in "abc"))
    )
    for one in (scene, asked):
        lines = scene_text(one, width=width, height=24).plain.splitlines()
        assert max(map(len, lines)) <= width
        assert len(lines) <= (24 if width >= 40 else 40)


def test_text__shows_every_job_on_its_gpus_without_colours() -> None:
    scene = scene_on("uniform:8x8")
    text = scene_text(scene).plain
    assert "\x1b" not in text
    words = text.split()
    for job in scene.running:
        assert words.count(str(job.job)) >= job.gpus
    assert f"{scene.num_waiting} waiting" in text


def test_text__of_a_large_cluster_has_a_mark_for_each_gpu_or_node() -> None:
    marks = scene_text(scene_on("uniform:64x8"), height=40).plain
    assert marks.count("\u25a0") + marks.count("\u00b7") == 512
    levels = scene_text(scene_on("uniform:1000x8"), height=24).plain
    assert "1,000 nodes" in levels


def test_text__marks_nodes_that_are_down_and_gpus_that_are_shared() -> None:
    scene = scene_on("uniform:1x2")
    nodes = (ShownNode(((1, 2), ())), ShownNode(((), ()), is_up=False))
    text = scene_text(dataclasses.replace(scene, nodes=nodes)).plain
    assert "0 + 1  \u00b7" in text
    assert "1   x  x" in text


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_pictures__show_gpus_in_the_colours_of_their_jobs(cluster: str, theme: str) -> None:
    scene = scene_on(cluster)
    picture = scene_picture(scene, theme=theme)
    assert picture.shape[1] == WIDTH
    assert not any(size % 2 for size in picture.shape[:2])
    assert tuple(picture[0, 0]) == rgb(THEMES[theme].paper)
    pixels = picture.reshape(-1, 3).astype(np.int64) @ [2**16, 2**8, 1]
    found = {*np.unique(pixels).tolist()}
    for job in scene.running:
        assert int(job_colour(job.job)[1:], 16) in found


def test_pictures__have_the_same_size_at_all_times_and_beside_each_other() -> None:
    result = bl.simulate("synthetic", "uniform:8x8", "fcfs", jobs=60, load=3.0)
    played = Playback(result.workload, result.cluster, result.log, title="fcfs")
    end = float(result.log.time[-1])
    scenes = [played.scene(end * share) for share in (0.0, 0.3, 0.6, 1.0)]
    shapes = {scene_picture(scene).shape for scene in scenes}
    assert len(shapes) == 1
    both = scene_picture([scenes[1], scenes[2]])
    assert both.shape[1] == 2 * WIDTH
    np.testing.assert_array_equal(both[:, :WIDTH], scene_picture(scenes[1]))
    np.testing.assert_array_equal(both[:, WIDTH:], scene_picture(scenes[2]))


def test_colours__of_neighbouring_jobs_differ() -> None:
    assert len(set(JOB_COLOURS)) == 6
    assert all(job_colour(job) != job_colour(job + 1) for job in range(12))
