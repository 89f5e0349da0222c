"""A scene as text: lines no wider than a terminal, readable with and without colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from berthline.counted import counted
from berthline.number_text import duration, duration_in_two_units
from berthline.view.job_colours import gpus_text, is_light, job_colour, share_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.text import Text

    from berthline.view.scene import Choice, Scene, ShownNode

WIDTH, HEIGHT = 80, 30
"""Of text that is not for a known terminal."""

_IDLE, _DOWN = "\u00b7", "x"
_LEVELS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_BAR = 10
_GAP = 3


class _Field(NamedTuple):
    """A column of a table: its heading and its cells; a bar may be left out first."""

    head: str
    cells: list[str]


def scene_text(scene: Scene, *, width: int = WIDTH, height: int = HEIGHT) -> Text:
    """Return a scene as text.

    Args:
        scene: the scene.
        width: of the terminal, in columns.
        height: of the terminal, in lines; long tables are cut to fit.
    """
    from rich.text import Text

    lines = _head(scene, width)
    grid = _grid(scene, width, max((height - len(lines)) // 2, 3))
    lines += [Text(), *grid]
    foot = _foot(scene, width)
    room = height - len(lines) - len(foot)
    about_running = any(job.choice for job in scene.running)
    room_for_running = room // 2 if about_running else max(min(room // 3, 6), 0)
    waiting = _waiting(scene, width, max(room - room_for_running, 3))
    running = _running(scene, width, room - len(waiting))
    return Text("\n").join([*lines, *waiting, *running, *foot])


def _head(scene: Scene, width: int) -> list[Text]:
    from rich.text import Text

    so_far = scene.so_far
    facts = [
        f"{gpus_text(round(so_far.busy_gpus, 2))} of {scene.total_gpus:,} GPUs busy",
        f"{scene.num_waiting:,} waiting",
        f"{scene.num_running:,} running",
        f"{so_far.completed:,} of {so_far.jobs:,} done",
        f"mean wait {duration(so_far.mean_wait)}",
    ]
    if so_far.rejected:
        facts.append(f"{so_far.rejected:,} rejected")
    clock = f"at {duration_in_two_units(scene.now)}"
    title = scene.title
    if len(title) + len(clock) + 2 > width:
        title = title[: max(width - len(clock) - 3, 0)] + "\u2026"
    first = Text.assemble((title, "bold"), " " * max(width - len(title) - len(clock), 1), clock)
    return [first, *(Text(line) for line in _wrapped(facts, width))]


def _wrapped(parts: Sequence[str], width: int) -> list[str]:
    """Return parts in lines, as many to each as fit."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}, {part}" if lines[-1] else part
        if len(longer) > width and lines[-1]:
            lines.append(part)
        else:
            lines[-1] = longer
    return [line[:width] for line in lines]


def _foot(scene: Scene, width: int) -> list[Text]:
    """Return the question, the answers that are not rows, and the last choice."""
    from rich.text import Text

    lines: list[Text] = []
    if scene.asked is not None:
        words = f"question ({scene.asked.seat}): {scene.asked.about}"
        lines += [Text(), Text(words[:width], "bold")]
        answers = [f"{one.text} {_of_choice(one)}".rstrip() for one in scene.asked.choices]
        lines += [Text(f"  {line}") for line in _wrapped(answers, width - 2) if line]
    if scene.last_choice:
        lines.append(Text(f"last: {scene.last_choice}"[:width]))
    return lines


def _of_choice(choice: Choice) -> str:
    """Return what is known about an answer: how likely it is, or whether it is allowed."""
    if not choice.is_allowed:
        return "not allowed"
    return "" if choice.probability is None else share_text(choice.probability)


# --- nodes -------------------------------------------------------------------------------------


def _grid(scene: Scene, width: int, height: int) -> list[Text]:
    """Return the nodes with as much detail as fits: ids of jobs, a mark per GPU, or how full."""
    from rich.text import Text

    nodes = scene.nodes
    digits = max(len(str(scene.so_far.jobs - 1)), 2)
    label = len(str(len(nodes) - 1))
    for blocks in (
        [_with_ids(node, number, label, digits) for number, node in enumerate(nodes)],
        [_with_marks(node, number, label) for number, node in enumerate(nodes)],
    ):
        lines = _in_columns(blocks, width)
        if len(lines) <= height:
            return lines
    text = Text()
    shown = nodes[: max((height - 1) * width, 1)]
    for node in shown:
        text.append(_DOWN if not node.is_up else _LEVELS[_level(node)])
    lines = [text[begin : begin + width] for begin in range(0, len(shown), width)]
    more = f", the first {len(shown):,}" if len(shown) < len(nodes) else ""
    about = f"{counted(len(nodes), 'node')}{more}; each mark is how full one is"
    return [Text(about[:width]), *lines]


def _level(node: ShownNode) -> int:
    busy = sum(1 for gpu in node.gpus if gpu)
    return -(-busy * (len(_LEVELS) - 1) // len(node.gpus)) if node.gpus else 0


def _label(node: ShownNode, number: int, width: int) -> Text:
    from rich.text import Text

    text = Text(f"{number:>{width}} ", "" if node.is_up else "dim")
    if node.choice is not None:
        chance = _of_choice(node.choice) if node.choice.is_allowed else ""
        mark = ">" if node.choice.is_allowed else " "
        text = Text.assemble(mark, text, f"{chance:>5} " if node.choice.probability else "")
        if not node.choice.is_allowed:
            text.stylize("dim")
    return text


def _with_ids(node: ShownNode, number: int, label: int, digits: int) -> Text:
    text = _label(node, number, label)
    for gpu in node.gpus:
        if not node.is_up:
            text.append(f" {_DOWN:>{digits}}", "dim")
        elif not gpu:
            text.append(f" {_IDLE:>{digits}}", "dim")
        else:
            shared = "+" if len(gpu) > 1 else " "
            text.append(shared)
            text.append(f"{gpu[0]:>{digits}}", _style(gpu[0]))
    return text


def _with_marks(node: ShownNode, number: int, label: int) -> Text:
    text = _label(node, number, label)
    for gpu in node.gpus:
        if not node.is_up:
            text.append(_DOWN, "dim")
        elif not gpu:
            text.append(_IDLE, "dim")
        else:
            text.append("\u25a0", job_colour(gpu[0]))
    return text


def _style(job: int) -> str:
    colour = job_colour(job)
    return f"{'#000000' if is_light(colour) else '#ffffff'} on {colour}"


def _in_columns(blocks: Sequence[Text], width: int) -> list[Text]:
    """Return blocks side by side, reading down each column."""
    from rich.text import Text

    widest = max((len(block) for block in blocks), default=0)
    columns = max((width + _GAP) // (widest + _GAP), 1)
    tall = -(-len(blocks) // columns)
    lines = []
    for row in range(tall):
        line = Text()
        for block in blocks[row::tall]:
            line.append(" " * (len(line) and _GAP)).append_text(block)
            line.append(" " * (widest - len(block)))
        line.rstrip()
        line.truncate(width)
        lines.append(line)
    return lines


# --- tables ------------------------------------------------------------------------------------


def _waiting(scene: Scene, width: int, height: int) -> list[Text]:
    jobs = scene.waiting
    fields = [
        _Field("", [">" if job.is_at_hand else "" for job in jobs]),
        _Field("job", [str(job.job) for job in jobs]),
        _Field("GPUs", [gpus_text(job.gpus) for job in jobs]),
        _Field("waited", [duration(job.waited) for job in jobs]),
    ]
    if any(job.estimate is not None for job in jobs):
        fields.append(_Field("estimate", [_optional(job.estimate) for job in jobs]))
    fields += _chances([job.choice for job in jobs], "may start")
    return _table("waiting", scene.num_waiting, fields, [job.job for job in jobs], width, height)


def _running(scene: Scene, width: int, height: int) -> list[Text]:
    jobs = scene.running
    fields = [
        _Field("", [""] * len(jobs)),
        _Field("job", [str(job.job) for job in jobs]),
        _Field("GPUs", [gpus_text(job.gpus) for job in jobs]),
        _Field("ran", [duration(job.ran) for job in jobs]),
    ]
    if any(job.left is not None for job in jobs):
        fields.append(_Field("left", [_optional(job.left) for job in jobs]))
    fields += _chances([job.choice for job in jobs], "may yield")
    return _table("running", scene.num_running, fields, [job.job for job in jobs], width, height)


def _optional(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


def _chances(choices: Sequence[Choice | None], allowed: str) -> list[_Field]:
    """Return the columns about answers: whether they are allowed, or how likely they are."""
    if not any(choices):
        return []
    if all(one is None or one.probability is None for one in choices):
        return [_Field(allowed, ["yes" if one and one.is_allowed else "" for one in choices])]
    shares = [one.probability or 0.0 if one else 0.0 for one in choices]
    texts = [
        share_text(share) if one and one.is_allowed else "-"
        for one, share in zip(choices, shares, strict=True)
    ]
    return [_Field("chance", texts), _Field("", ["#" * round(_BAR * share) for share in shares])]


def _table(
    name: str, number: int, fields: list[_Field], jobs: Sequence[int], width: int, height: int
) -> list[Text]:
    """Return a table of jobs, cut to a height; nothing if there is no room for a row."""
    from rich.text import Text

    if height < 3 or not number:
        return []
    most = height - 2  # without the line between it and what is above, and its heading
    shown = len(jobs) if len(jobs) <= most and number == len(jobs) else min(most - 1, len(jobs))
    while len(fields) > 4 and _width(fields) > width:
        fields = fields[:-1]
    pads = [_padding(field) for field in fields]
    heading = "  ".join(pad(field.head) for pad, field in zip(pads, fields, strict=True))
    lines = [Text(), Text(f"{name:<8}{heading}"[:width].rstrip(), "bold")]
    for row in range(shown):
        cells = [pad(field.cells[row]) for pad, field in zip(pads, fields, strict=True)]
        line = Text(" " * 8)
        for at, cell in enumerate(cells):
            line.append("  " * bool(at))
            line.append(cell, _style(jobs[row]) if at == 1 else "")
        line.rstrip()
        line.truncate(width)
        lines.append(line)
    if shown < number:
        lines.append(Text(f"        and {number - shown:,} more"[:width]))
    return lines


def _width(fields: Sequence[_Field]) -> int:
    return 8 + sum(max(map(len, (field.head, *field.cells))) for field in fields) + 2 * len(fields)


def _padding(field: _Field) -> Callable[[str], str]:
    """Return what pads the cells of a column: numbers to the left, bars to the right."""
    width = max(map(len, (field.head, *field.cells)))
    is_bar = not field.head and any(field.cells)
    return (lambda cell: f"{cell:<{width}}") if is_bar else (lambda cell: f"{cell:>{width}}")
