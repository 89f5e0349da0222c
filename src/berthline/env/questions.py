"""Questions: what an agent is asked in each seat, in words, for lists and documentation.

The simulators define the exact meaning; registration.py has the names of the environments.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Question:
    """What an agent in one seat is asked.

    Attributes:
        seat: its name.
        about: what is to be decided.
        asked: when the agent is asked.
        actions: what it can answer.
        mask: which answers are allowed.
        rows: what the tables of jobs and nodes show.
    """

    seat: str
    about: str
    asked: str
    actions: str
    mask: str
    rows: str


_WINDOW = "row i of `jobs` is the i-th waiting job of the window"
_AT_HAND = "row 0 of `jobs` is the job at hand, the others wait"
_NO_OP = "no-op as `no_op` allows, unless nothing else would ever happen"

QUESTIONS: dict[str, Question] = {
    question.seat: question
    for question in (
        Question(
            "pick",
            "which waiting job starts next",
            "as long as a job of the window can start; with `semantics='wait'`, whenever jobs wait "
            "and none is chosen; with `semantics='rank'`, as [below](#ranks)",
            "0 to window - 1: a row; window: no-op, nothing more starts at this instant",
            f"rows whose job can start now (`wait`: all rows with a job); {_NO_OP}",
            _WINDOW,
        ),
        Question(
            "place",
            "where the job that the base scheduler starts is placed",
            "for each start; for a gang on several nodes, once for each node",
            "a node, or an entry of `placements`; there is no no-op",
            "nodes with enough room to keep the gang on the fewest nodes; all placements",
            f"{_AT_HAND}; columns of `nodes` may also be about the job at hand",
        ),
        Question(
            "pickplace",
            "which waiting job starts next, and where",
            "as for Pick",
            "(row or no-op, node); for a gang on several nodes, the placement chooses the others",
            "as for Pick, then nodes that some row may go to; `pair_mask` has both together",
            _WINDOW,
        ),
        Question(
            "meta",
            "which scheduler applies until the next decision",
            "when jobs wait, `every_events` decision points and `every_seconds` after the last "
            "choice",
            "an entry of `schedulers`; the first applies until the first question",
            "all",
            f"{_WINDOW}, in the order of the current scheduler",
        ),
        Question(
            "backfill",
            "which job passes the blocked first job",
            "as long as some job may pass it",
            "0 to window - 1: a row; window: no-op, no job passes at this instant",
            "rows whose job can start now and, with `protect_head`, does not delay the first; "
            f"{_NO_OP}",
            _AT_HAND,
        ),
        Question(
            "gate",
            "whether the base scheduler's choice starts now",
            "for each start, unless the cluster is idle, or the job has been held `max_holds` "
            "times or less than `hold_seconds` ago",
            "0: hold it at this decision point, and for `hold_seconds`; 1: start it",
            "both",
            _AT_HAND,
        ),
        Question(
            "preempt",
            "which running job yields to the first job that cannot start",
            "when nothing more can start, again after each victim until the job at hand starts",
            "0 to running_window - 1: a row of `running`; running_window: no-op, no job",
            "running jobs that may be preempted (`min_run`, `max_restarts`); no-op unless `no_op` "
            "is `never`",
            f"{_AT_HAND}; row i of `running` is the i-th running job by `running_order`",
        ),
    )
}
"""The question of every seat, by the seat's name."""
