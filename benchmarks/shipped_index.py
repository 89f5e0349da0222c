"""Write the card of the shipped policy `few-stops`, which preemptive_index.py has tuned on Venus;
`python -m benchmarks.shipped_index`."""

from __future__ import annotations

import sys

import msgspec
from benchmarks.paired_windows import RESULTS, read_rows
from benchmarks.preemptive_index import CONDITIONS, HOMES, LOGS, PAGE, TRACES, WINDOW_JOBS, Parts
from benchmarks.preemptive_index_page import LAS, PLAIN, QUEUES, chosen_on_val

import berthline as bl
from berthline.errors import BerthlineError
from berthline.evaluate.statistics import paired_ratio
from berthline.policies.shipped_policies import FOLDER, Card, Gain, Measured
from berthline.traces.atomic_write import write_atomically

NAME, TUNED_ON = "few-stops", "Venus"
ROLES = {
    PLAIN: "plain attained service; lowest mean JCT of its kind",
    QUEUES: "attained service in queues, after Tiresias",
}


def main() -> int:
    """Measure, and write the card."""
    found = read_rows(RESULTS / f"{PAGE}-searches.csv")
    row = chosen_on_val(found, TUNED_ON)
    numbers = dict(part.split("=") for part in row["scheduler"].split(":")[1:])
    try:
        measured = [one for log in HOMES for one in measure(row["scheduler"], log)]
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    card = Card(
        name=NAME,
        meaning="preempts who has attained most, but only for a job that is far behind: few stops",
        scheduler=row["scheduler"],
        parameters={key: float(value) for key, value in numbers.items()},
        knowledge="none",
        trained_on=f"the first half of {TUNED_ON} on {row['cluster']}, load {LOGS[TUNED_ON][1]:g},"
        f" {', '.join(f'{key}={value:g}' for key, value in CONDITIONS.items())}",
        training={
            "search": "CMA-ES on the numbers of the rule index",
            "goal": "mean JCT; preemptions beyond a fifth of those of plain attained service cost",
            "candidates": int(row["evaluations"]),
            "window_jobs": WINDOW_JOBS,
            "seeds": [int(one["seed"]) for one in found if one["space"] == "index"
                      and one["log"] == TUNED_ON],
            "kept_seed": int(row["seed"]),
            "losses": ", ".join(f"{float(one['val_loss']):.3f}" for one in found
                                if one["space"] == "index" and one["log"] == TUNED_ON),
        },
        curve=[
            (0, round(float(row["start_val_loss"]), 4)),
            (int(row["evaluations"]), round(float(row["val_loss"]), 4)),
        ],
        command="python -m benchmarks.shipped_index",
        measured=measured,
        loses=[
            "where run times are known: srpt-area is better",
            "where preemption costs much more than 30 s: its numbers are for that",
            "where only slowdown counts: plain attained service is a little better, at many times"
            " the preemptions",
            "for the longest job, where nobody may wait long: las promotes, and has shorter ones",
        ],
    )  # fmt: skip
    text = msgspec.json.format(msgspec.json.encode(card), indent=2)
    write_atomically(FOLDER / f"{NAME}.json", text + b"\n")
    print(f"written: {NAME}.json")
    return 0


def measure(scheduler: str, log: str) -> list[Measured]:
    """Return what the policy did on the REPORT windows of a log, against each rival."""
    cuts = Parts.of(log, HOMES[log], TRACES)
    metrics = {
        text: [
            bl.simulate(window, cuts.cluster, text, knowledge="none").metrics()
            for window in cuts.report
        ]
        for text in (scheduler, *(LAS[name] for name in ROLES))
    }
    columns = {
        text: {
            "slowdown": [one.bounded_slowdown.mean for one in found],
            "jct": [one.jct.mean for one in found],
            "p99": [one.jct.p99 for one in found],
            "makespan": [one.makespan for one in found],
        }
        for text, found in metrics.items()
    }
    stops = {text: sum(one.preemptions for one in found) for text, found in metrics.items()}
    return [
        Measured(
            workload=f"{log}, last third, {WINDOW_JOBS:,} jobs, load {LOGS[log][1]:g}, on"
            f" {HOMES[log]}; {stops[LAS[name]] / stops[scheduler]:.1f} times fewer preemptions",
            windows=len(cuts.report),
            rival=LAS[name],
            role=role,
            **{
                key: gain(ours, columns[LAS[name]][key]) for key, ours in columns[scheduler].items()
            },
        )
        for name, role in ROLES.items()
    ]


def gain(ours: list[float], theirs: list[float]) -> Gain:
    """Return a paired ratio, as a card has it."""
    found = paired_ratio(ours, theirs)
    ratio, low, high = (round(float(x), 4) for x in (found.ratio, found.low, found.high) if x)
    return Gain(ratio=ratio, low=low, high=high)


if __name__ == "__main__":
    sys.exit(main())
