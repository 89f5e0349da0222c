"""A scene as a picture: the cluster above, the queue below; several runs side by side.

All pictures of a run have the same size, as videos need: it follows from the cluster and the number
of queue rows, never from what happens.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from berthline.errors import MissingExtraError
from berthline.number_text import duration, duration_in_two_units
from berthline.palette import BLUE, DARK_INK, DARK_PAPER, GREY, INK, PAPER
from berthline.view.job_colours import gpus_text, is_light, job_colour, share_text
from berthline.view.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.view.scene import Choice, ShownNode, WaitingJob

Frame = npt.NDArray[np.uint8]

WIDTH = 480
"""Pixels of one run."""
ROWS = 10
"""Waiting jobs shown."""

_MARGIN = 16
_LARGEST, _SMALLEST = 24, 2
"""Pixels of a GPU, with the gap beside it."""
_TALLEST = 300
"""Pixels of the cluster."""
_ROW = 22


class _Theme(NamedTuple):
    paper: str
    ink: str
    pale: str
    """Idle GPUs and tracks of bars."""
    soft: str
    """Text beside what matters."""
    bar: str


THEMES = {
    "light": _Theme(PAPER, INK, "#e3e3e3", GREY, BLUE),
    "dark": _Theme(DARK_PAPER, DARK_INK, "#343a42", "#a9a9a9", "#56B4E9"),
}


def check_pillow(needed_for: str) -> None:
    """Raise an error that says how to install Pillow, unless it is installed."""
    try:
        import PIL  # noqa: F401
    except ImportError:
        raise MissingExtraError("pillow", "watch", needed_for) from None


def scene_picture(
    scenes: Scene | Sequence[Scene],
    *,
    theme: str = "light",
    width: int = WIDTH,
    rows: int = ROWS,
    notes: bool = True,
) -> Frame:
    """Return a scene as a picture, (height, width, 3); several scenes side by side.

    Args:
        scenes: one, or one of each run, at the same instant.
        theme: light or dark.
        width: pixels of each.
        rows: waiting jobs shown.
        notes: leave room below for the question and the last choice.
    """
    check_pillow("a picture")
    from PIL import Image

    shown = [scenes] if isinstance(scenes, Scene) else scenes
    panels = [_Panel(scene, THEMES[theme], width, rows, notes=notes) for scene in shown]
    tall = max(panel.height for panel in panels)
    # Even numbers of pixels: video formats need them.
    size = (len(panels) * width // 2 * 2, tall + tall % 2)
    image = Image.new("RGB", size, THEMES[theme].paper)
    for number, panel in enumerate(panels):
        panel.draw(image, number * width)
    return np.asarray(image)


@functools.lru_cache(maxsize=16)
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


@dataclasses.dataclass(frozen=True)
class _Grid:
    """Where the GPUs of nodes are drawn: nodes in columns, read downwards.

    Attributes:
        cell: pixels of a GPU, with its gap.
        label: pixels before the GPUs of a node; 0 = no room for its number.
        columns: of nodes.
        rows: of nodes.
        across: GPUs of the largest node.
    """

    cell: int
    label: int
    columns: int
    rows: int
    across: int

    @property
    def block(self) -> int:
        """Pixels of a node, with the gap after it."""
        return self.label + self.across * self.cell + max(self.cell // 2, 2)

    @property
    def height(self) -> int:
        """Pixels of all rows."""
        return self.rows * self.cell


@functools.lru_cache(maxsize=64)
def _grid(sizes: tuple[int, ...], width: int) -> _Grid:
    """Return the largest grid that fits."""
    across = max(max(sizes, default=1), 1)
    for cell in range(_LARGEST, _SMALLEST - 1, -1):
        label = 10 + 9 * len(str(len(sizes) - 1)) if cell >= 12 else 0
        block = _Grid(cell, label, 1, 1, across).block
        columns = min(width // block, len(sizes))
        if columns:
            grid = _Grid(cell, label, columns, -(-len(sizes) // columns), across)
            if grid.height <= (_TALLEST if cell < 12 else _TALLEST * 3 // 4):
                return grid
    columns = max(width // _Grid(_SMALLEST, 0, 1, 1, across).block, 1)
    return _Grid(_SMALLEST, 0, columns, -(-len(sizes) // columns), across)


def _about(seconds: float) -> str:
    """Return a time in few digits: more of them would flicker in a film, and make it larger."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36_000 else f"{seconds / 3600:.0f} h"


class _Panel:
    """The picture of one scene."""

    def __init__(self, scene: Scene, theme: _Theme, width: int, rows: int, *, notes: bool) -> None:
        self.scene, self.theme, self.width, self.rows = scene, theme, width, rows
        sizes = tuple(len(node.gpus) for node in scene.nodes)
        self.grid = _grid(sizes, width - 2 * _MARGIN)
        self.top_of_grid = 108
        self.top_of_queue = self.top_of_grid + self.grid.height + 12
        self.top_of_foot = self.top_of_queue + 26 + rows * _ROW
        self.height = self.top_of_foot + (56 if notes else 12)

    def draw(self, image: Any, left: int) -> None:
        """Draw it into an image, from a pixel on."""
        from PIL import ImageDraw

        self.pen = ImageDraw.Draw(image)
        self.left, self.right = left + _MARGIN, left + self.width - _MARGIN
        self._head()
        self._nodes()
        if any(job.choice for job in self.scene.running):
            self._running()
        else:
            self._queue()
        self._foot()

    def text(
        self, x: float, y: float, text: str, size: int, colour: str, anchor: str = "la"
    ) -> None:
        """Write a line."""
        self.pen.text((x, y), text, fill=colour, font=_font(size), anchor=anchor)

    def fitted(self, text: str, size: int, room: float) -> str:
        """Return a text, cut to a number of pixels."""
        font = _font(size)
        if font.getlength(text) <= room:
            return text
        while text and font.getlength(text + "\u2026") > room:
            text = text[:-1]
        return text + "\u2026"

    def _head(self) -> None:
        scene, theme = self.scene, self.theme
        clock = duration_in_two_units(scene.now)
        self.text(self.right, 14, clock, 20, theme.soft, "ra")
        room = self.right - self.left - _font(20).getlength(clock) - 12
        self.text(self.left, 12, self.fitted(scene.title, 22, room), 22, theme.ink)
        so_far = scene.so_far
        third = (self.right - self.left) / 3
        facts = (
            ("mean wait", duration(so_far.mean_wait)),
            ("waiting", f"{scene.num_waiting:,}"),
            ("done", f"{so_far.completed:,} of {so_far.jobs:,}"),
        )
        for at, (name, value) in zip((0.0, 1.25, 2.0), facts, strict=True):
            self.text(self.left + at * third, 42, name, 15, theme.soft)
            self.text(self.left + at * third, 60, value, 26, theme.ink)
        self.pen.line((self.left, 97, self.right, 97), fill=theme.pale)

    def _nodes(self) -> None:
        grid, theme = self.grid, self.theme
        for number, node in enumerate(self.scene.nodes):
            column, row = divmod(number, grid.rows)
            left = self.left + column * grid.block
            top = self.top_of_grid + row * grid.cell
            if grid.label:
                self._label(node, number, left, top)
            for gpu, jobs in enumerate(node.gpus):
                x = left + grid.label + gpu * grid.cell
                self._gpu(jobs, x, top, is_up=node.is_up)
            if node.choice is not None and node.choice.is_allowed and grid.cell > 3:
                wide = len(node.gpus) * grid.cell
                x = left + grid.label
                self.pen.rectangle(
                    (x - 1, top - 1, x + wide - 1, top + grid.cell - 1), outline=theme.ink
                )

    def _label(self, node: ShownNode, number: int, left: float, top: float) -> None:
        text, size = str(number), min(self.grid.cell - 8, 13)
        choice = node.choice
        if choice is not None and choice.is_allowed and choice.probability is not None:
            text = share_text(choice.probability).replace(" ", "")
            size = min(size, 11)
        middle = top + self.grid.cell / 2 - 1
        self.text(left + self.grid.label - 5, middle, text, size, self.theme.soft, "rm")

    def _gpu(self, jobs: Sequence[int], x: float, y: float, *, is_up: bool) -> None:
        cell = self.grid.cell
        gap = 2 if cell > 8 else 1
        box = (x, y, x + cell - gap - 1, y + cell - gap - 1)
        if not is_up:
            self.pen.rectangle(box, outline=self.theme.soft)
            self.pen.line((box[0], box[1], box[2], box[3]), fill=self.theme.soft)
            return
        if not jobs:
            self.pen.rectangle(box, fill=self.theme.pale)
            return
        tall = (cell - gap) / len(jobs)
        for at, job in enumerate(jobs):
            colour = job_colour(job)
            self.pen.rectangle((x, y + at * tall, box[2], y + (at + 1) * tall - 1), fill=colour)
        if len(jobs) == 1 and cell >= 22:
            ink = INK if is_light(job_colour(jobs[0])) else PAPER
            size = 11 if jobs[0] < 1000 else 9
            middle = (x + (cell - gap) / 2, y + (cell - gap) / 2)
            self.text(*middle, str(jobs[0]), size, ink, "mm")

    # --- the queue -----------------------------------------------------------------------------

    def _queue(self) -> None:
        scene, theme = self.scene, self.theme
        self.text(self.left, self.top_of_queue, "waiting jobs", 15, theme.soft)
        asks = any(job.choice for job in scene.waiting)
        has_chances = any(
            job.choice and job.choice.probability is not None for job in scene.waiting
        )
        if has_chances:
            self.text(self.right, self.top_of_queue, "chance", 15, theme.soft, "ra")
        self.waited = self.right - 106 if scene.asked else self.right
        self.text(self.waited, self.top_of_queue, "waited", 15, theme.soft, "ra")
        widest = max(len(node.gpus) for node in scene.nodes)
        most = self.rows - (scene.num_waiting > self.rows)
        for row, job in enumerate(scene.waiting[:most]):
            top = self.top_of_queue + 24 + row * _ROW
            self._waiting_job(job, top, widest, asks=asks)
        hidden = scene.num_waiting - min(len(scene.waiting), most)
        if hidden > 0:
            top = self.top_of_queue + 24 + min(len(scene.waiting), most) * _ROW
            self.text(self.left, top, f"and {hidden:,} more", 15, theme.soft)

    def _waiting_job(self, job: WaitingJob, top: float, widest: int, *, asks: bool) -> None:
        """Draw a job as a bar as long as it has GPUs; with an outline where it cannot start."""
        theme, colour = self.theme, job_colour(job.job)
        room = self.waited - self.left - 84
        long = min(max(room * job.gpus / max(widest, 1), 40), room)
        box = (self.left, top, self.left + long, top + _ROW - 4)
        may = not asks or (job.choice is not None and job.choice.is_allowed) or job.is_at_hand
        if may:
            self.pen.rectangle(box, fill=colour)
        else:
            self.pen.rectangle(box, outline=colour, width=2)
        ink = theme.ink if not may else INK if is_light(colour) else PAPER
        label = f"{job.job}"
        self.text(self.left + 6, top + _ROW / 2 - 2, label, 13, ink, "lm")
        gpus = f"{gpus_text(job.gpus)} GPU{'s' * (job.gpus != 1)}"
        begins = self.left + long + 8
        if begins + _font(13).getlength(gpus) <= self.waited - 72:
            self.text(begins, top + _ROW / 2 - 2, gpus, 13, theme.soft, "lm")
        elif long > 110:
            self.text(self.left + long - 6, top + _ROW / 2 - 2, gpus, 13, ink, "rm")
        if job.is_at_hand:
            self.text(self.left - 12, top + _ROW / 2 - 2, ">", 15, theme.ink, "lm")
        waited = _about(job.waited)
        self.text(self.waited, top + _ROW / 2 - 2, waited, 15, theme.ink, "rm")
        self._chance(job.choice, top)

    def _chance(self, choice: Choice | None, top: float) -> None:
        if choice is None or choice.probability is None or not choice.is_allowed:
            return
        theme = self.theme
        wide = 48
        box = (self.right - 96, top + 4, self.right - 96 + wide, top + _ROW - 8)
        self.pen.rectangle(box, fill=theme.pale)
        if choice.probability >= 0.01:
            end = box[0] + wide * choice.probability
            self.pen.rectangle((box[0], box[1], end, box[3]), fill=theme.bar)
        middle = top + _ROW / 2 - 2
        self.text(self.right, middle, share_text(choice.probability), 13, theme.ink, "rm")

    def _running(self) -> None:
        """Draw the running jobs, which the question is about, instead of the queue."""
        theme = self.theme
        self.text(self.left, self.top_of_queue, "running jobs: which one yields?", 15, theme.soft)
        self.text(self.right - 106, self.top_of_queue, "ran", 15, theme.soft, "ra")
        for row, job in enumerate(self.scene.running[: self.rows]):
            top = self.top_of_queue + 24 + row * _ROW
            may = job.choice is not None and job.choice.is_allowed
            colour = job_colour(job.job)
            box = (self.left, top, self.left + 60, top + _ROW - 4)
            if may:
                self.pen.rectangle(box, fill=colour)
            else:
                self.pen.rectangle(box, outline=colour, width=2)
            ink = theme.ink if not may else INK if is_light(colour) else PAPER
            middle = top + _ROW / 2 - 2
            self.text(self.left + 6, middle, str(job.job), 13, ink, "lm")
            gpus = f"{gpus_text(job.gpus)} GPU{'s' * (job.gpus != 1)}"
            self.text(self.left + 68, middle, gpus, 13, theme.soft, "lm")
            self.text(self.right - 106, middle, _about(job.ran), 15, theme.ink, "rm")
            self._chance(job.choice, top)

    def _foot(self) -> None:
        scene, theme = self.scene, self.theme
        room = self.right - self.left
        if scene.asked is not None:
            answers = ", ".join(
                one.text
                + (f" {share_text(one.probability)}" if one.probability is not None else "")
                for one in scene.asked.choices
                if one.is_allowed
            )
            about = scene.asked.about + (f" ({answers})" if answers else "")
            self.text(self.left, self.top_of_foot, self.fitted(about, 14, room), 14, theme.ink)
        if scene.last_choice:
            last = self.fitted(f"last choice: {scene.last_choice}", 14, room)
            self.text(self.left, self.top_of_foot + 20, last, 14, theme.soft)
