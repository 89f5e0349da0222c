"""Training runs as tasks: several of them at once, in worker processes or on a Ray cluster.

Each run has its own directory. A worker that shares the directory trains in it, and goes on from
its last checkpoint if another worker was lost there. A worker that does not share it trains in a
directory of its own, and sends that back at the end. The result is the same.
"""

from __future__ import annotations

import collections
import dataclasses
import io
import queue
import shutil
import tarfile
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berthline.errors import OutputError
from berthline.worker_pool import Attempts, ErrorText, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from berthline.engines.engine import Engine
    from berthline.learn.training.trainer import Progress

_TOKEN = ".shared-"
_TELL_SECONDS = 1.0


@dataclasses.dataclass(frozen=True)
class TrainingTask:
    """A run to train.

    Attributes:
        path: its directory, as the process sees it that asked for it.
        config: its settings.
    """

    path: str
    config: Any  # a TrainConfig, whose module imports torch

    @property
    def name(self) -> str:
        """What it is, in words."""
        return f"{self.config.algorithm} on {self.config.seat}, seed {self.config.seed}"


@dataclasses.dataclass(frozen=True)
class TrainingSetup:
    """What all runs share.

    Attributes:
        command: the command line, for meta.json.
        init_from: the policy that they begin with; empty = none.
        device: where networks encode observations.
        token: a file by which a worker sees whether it shares the directories.
    """

    command: str
    init_from: str
    device: str
    token: str


@dataclasses.dataclass(frozen=True)
class TrainingAnswer:
    """Something that a worker tells about a run.

    Attributes:
        path: the directory of the run.
        progress: how far it is.
        remark: a sentence about its settings.
        summary: its results; it is complete.
        archive: its directory as a tar file, if that is not shared.
        error: what ended it.
    """

    path: str
    progress: Any = None  # a Progress
    remark: str = ""
    summary: dict[str, Any] | None = None
    archive: bytes | None = None
    error: ErrorText | None = None


def train_in_workers(
    tasks: Sequence[TrainingTask],
    *,
    parent: Path,
    engine: Engine,
    workers: int,
    command: str,
    init_from: str = "",
    device: str = "cpu",
    must_stop: Callable[[], bool] = lambda: False,
    report: Callable[[TrainingTask, Progress], None] = lambda *_: None,
    remark: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]] | None:
    """Train several runs at once; return their summaries, or None if it was stopped.

    Args:
        tasks: the runs.
        parent: a directory that holds all of theirs.
        engine: where they are trained.
        workers: how many at once.
        command: the command line, for meta.json.
        init_from: the policy that they begin with; empty = none.
        device: where networks encode observations.
        must_stop: called repeatedly; once it returns true, the workers are ended.
        report: called with the progress of a run.
        remark: called with sentences about the settings.

    Raises:
        BerthlineError: of the first run, in order, that failed; the others are complete or can be
            resumed.
    """
    parent.mkdir(parents=True, exist_ok=True)
    token = parent / f"{_TOKEN}{uuid.uuid4().hex}"
    token.touch()
    setup = TrainingSetup(command, init_from, device, str(token))
    by_path = {task.path: task for task in tasks}
    waiting = collections.deque(tasks)
    doing: dict[Hashable, TrainingTask] = {}
    summaries: dict[str, dict[str, Any]] = {}
    failed: dict[str, Exception] = {}
    attempts = Attempts()

    def next_task(worker: Hashable) -> TrainingTask | None:
        if not waiting or failed:
            return None
        doing[worker] = waiting.popleft()
        return doing[worker]

    def lost(worker: Hashable, how: str) -> None:
        task = doing.pop(worker)
        if error := attempts.lost(task.path, how, name=task.name):
            failed[task.path] = error
        else:
            waiting.appendleft(task)

    try:
        with engine.pool(__name__, setup, workers, apart=True) as pool:
            for _, answer in pool.answers(next_task, lost):
                if must_stop():
                    return None
                if answer.error is not None:
                    failed[answer.path] = answer.error.error()
                if answer.progress is not None:
                    report(by_path[answer.path], answer.progress)
                if answer.remark:
                    remark(answer.remark)
                if answer.archive is not None:
                    _unpack(answer.archive, Path(answer.path))
                if answer.summary is not None:
                    summaries[answer.path] = answer.summary
    finally:
        token.unlink(missing_ok=True)
    for task in tasks:
        if task.path in failed:
            raise failed[task.path]
    return [summaries[task.path] for task in tasks]


def main() -> None:
    """Run a worker process."""
    serve(answers_of)


def answers_of(setup: TrainingSetup) -> Callable[[TrainingTask], Iterator[TrainingAnswer]]:
    """Return what trains the runs of a setup."""

    def answers(task: TrainingTask) -> Iterator[TrainingAnswer]:
        # The trainer reports by a call; a thread of its own lets the reports leave at once.
        told: queue.SimpleQueue[TrainingAnswer | None] = queue.SimpleQueue()
        threading.Thread(target=_train, args=(setup, task, told.put), daemon=True).start()
        while (answer := told.get()) is not None:
            yield answer

    return answers


def _train(
    setup: TrainingSetup, task: TrainingTask, tell: Callable[[TrainingAnswer | None], None]
) -> None:
    from berthline.learn.training.train import train_seed

    last = 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= _TELL_SECONDS:
            last = time.monotonic()
            tell(TrainingAnswer(task.path, progress=progress))

    is_shared = Path(setup.token).exists()
    path = Path(task.path) if is_shared else Path(tempfile.mkdtemp()) / Path(task.path).name
    try:
        summary = train_seed(
            task.config,
            path,
            command=setup.command,
            init_from=setup.init_from or None,
            device=setup.device,
            report=report,
            remark=lambda text: tell(TrainingAnswer(task.path, remark=text)),
        )
        archive = None if is_shared else _packed(path)
        tell(TrainingAnswer(task.path, summary=summary, archive=archive))
    except Exception as error:
        tell(TrainingAnswer(task.path, error=ErrorText.of(error)))
    finally:
        if not is_shared:
            shutil.rmtree(path.parent, ignore_errors=True)
        tell(None)


def _packed(path: Path) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.add(path, arcname=".")
    return content.getvalue()


def _unpack(archive: bytes, path: Path) -> None:
    """Write the directory of a run that was trained elsewhere.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        shutil.rmtree(path, ignore_errors=True)  # what an earlier attempt has left
        path.mkdir(parents=True)
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as files:
            files.extractall(path, filter="data")
    except OSError as error:
        raise OutputError(
            f"cannot write the training run: {error.strerror or error}", where=str(path)
        ) from None
