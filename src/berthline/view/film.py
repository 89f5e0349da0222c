"""Films: pictures of the same size as an animated GIF, or as MP4."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from berthline.atomic_write import complete_file
from berthline.errors import MissingExtraError
from berthline.view.scene_picture import check_pillow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from berthline.view.scene_picture import Frame

SUFFIXES = (".gif", ".mp4")
LAST_SECONDS = 3.0
"""How long the last picture stays."""
_COLOURS = 48
"""Of a GIF: six for jobs, a few greys, and the edges of letters."""


def check_film(path: Path) -> None:
    """Raise, before any work, unless everything is installed that a film needs.

    Raises:
        MissingExtraError: Pillow or, for MP4, imageio-ffmpeg is not installed.
    """
    check_pillow("a film")
    if path.suffix.lower() == ".mp4":
        _ffmpeg()


def write_film(frames: Iterable[Frame], path: Path, *, fps: float) -> int:
    """Write pictures as a film, replacing the file if it exists; the suffix decides the kind.

    Args:
        frames: pictures of the same size, (height, width, 3) with even numbers.
        path: ends in .gif or .mp4.
        fps: pictures per second.

    Returns:
        How many pictures there are.

    Raises:
        OutputError: the file cannot be written.
        MissingExtraError: see `check_film`.
    """
    check_film(path)
    write = _write_mp4 if path.suffix.lower() == ".mp4" else _write_gif
    with complete_file(path, what="the film") as partial:
        return write(iter(frames), partial, fps)


def _write_gif(frames: Iterator[Frame], path: Path, fps: float) -> int:
    from PIL import Image

    # One palette for all pictures: their own would make what does not change flicker. The middle
    # picture decides it, because the first has no jobs yet.
    pictures = [Image.fromarray(frame) for frame in frames]
    samples = pictures[:: max(len(pictures) // 8, 1)]
    sheet = Image.new("RGB", (samples[0].width, sum(one.height for one in samples)))
    for row, one in enumerate(samples):
        sheet.paste(one, (0, row * one.height))
    palette = sheet.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE)
    shown = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures]
    each = max(round(1000 / fps / 10) * 10, 20)  # hundredths of a second; browsers slow down less
    shown[0].save(
        path,
        format="GIF",
        save_all=True,
        append_images=shown[1:],
        duration=[each] * (len(shown) - 1) + [each + round(1000 * LAST_SECONDS)],
        loop=0,
        optimize=False,
    )
    return len(shown)


def _write_mp4(frames: Iterator[Frame], path: Path, fps: float) -> int:
    first = next(frames)
    height, width = first.shape[:2]
    writer = _ffmpeg().write_frames(
        str(path),
        (width, height),
        fps=fps,
        codec="libx264",
        pix_fmt_out="yuv420p",  # what browsers and phones play
        macro_block_size=2,
        output_params=["-crf", "18", "-movflags", "+faststart", "-f", "mp4"],
    )
    writer.send(None)
    number, last = 0, first
    try:
        for number, last in enumerate(itertools.chain([first], frames), 1):  # noqa: B007
            writer.send(last.tobytes())
        for _ in range(round(fps * LAST_SECONDS)):
            writer.send(last.tobytes())
    finally:
        writer.close()
    return number


def _ffmpeg() -> Any:
    try:
        import imageio_ffmpeg
    except ImportError:
        raise MissingExtraError("imageio-ffmpeg", "watch", "an MP4 film") from None
    return imageio_ffmpeg
