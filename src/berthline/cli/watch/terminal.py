"""Scenes in a terminal, one over the other; in a pipe, one after the other."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from berthline.cli.visible_output import styled
from berthline.view.scene_text import HEIGHT, WIDTH, scene_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console
    from rich.text import Text

    from berthline.view.scene import Scene

NARROWEST = 40
"""Columns of a scene beside another; below that they are one above the other."""
_GAP = " \u2502 "


def play(frames: Iterable[Sequence[Scene]], *, fps: float, steps: bool) -> None:
    """Show frames, each a scene of every run.

    Args:
        frames: the frames.
        fps: frames per second.
        steps: wait for Enter after each frame.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console(file=styled(sys.stdout), highlight=False, markup=False)
    if not console.is_terminal:
        _print_all(frames, console)
        return
    if steps:
        _step_through(frames, console)
        return
    began, shown = time.monotonic(), 0
    # The last frame stays where the terminal goes on.
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for scenes in frames:
            width, height = console.size
            live.update(side_by_side(scenes, width, height - 1), refresh=True)
            shown += 1
            time.sleep(max(began + shown / fps - time.monotonic(), 0.0))


def side_by_side(scenes: Sequence[Scene], width: int, height: int) -> Text:
    """Return scenes beside each other, or above each other in a narrow terminal."""
    from rich.text import Text

    number = len(scenes)
    each = (width - (number - 1) * len(_GAP)) // number
    if each < NARROWEST:
        tall = max(height // number, 8)
        texts = [scene_text(scene, width=width, height=tall - 1) for scene in scenes]
        return Text("\n\n").join(texts)
    columns = [scene_text(scene, width=each, height=height).split("\n") for scene in scenes]
    lines = []
    for row in range(max(map(len, columns))):
        line = Text()
        for at, column in enumerate(columns):
            part = column[row] if row < len(column) else Text()
            line.append(_GAP if at else "", "dim").append_text(part)
            if at < number - 1:
                line.append(" " * (each - len(part)))
        lines.append(line)
    return Text("\n").join(lines)


def _print_all(frames: Iterable[Sequence[Scene]], console: Console) -> None:
    """Print frames as plain text, as wide as COLUMNS says or 80 columns for each scene."""
    import os

    known = os.environ.get("COLUMNS", "").isdigit()
    for number, scenes in enumerate(frames):
        width = console.width if known else len(scenes) * (WIDTH + len(_GAP))
        print("\n" * bool(number) + side_by_side(scenes, width, HEIGHT).plain, flush=True)


def _step_through(frames: Iterable[Sequence[Scene]], console: Console) -> None:
    for scenes in frames:
        width, height = console.size
        console.clear()
        console.print(side_by_side(scenes, width, height - 2))
        try:
            if input("Enter: next, q: quit ").strip().lower().startswith("q"):
                return
        except EOFError:
            return
