"""Does a small network in the gate do better than the plain sum?

`python -m benchmarks.network_gate` tunes one on two logs with twice the candidates, and compares
both on VAL; REPORT is not read.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from benchmarks import winning_policy
from benchmarks.hindsight import Place, best_by
from benchmarks.paired_windows import RESULTS, read_rows, to_csv
from benchmarks.winning_settings import TRACES, Setting

from berthline.errors import BerthlineError
from berthline.learn.search_space import SPACES, Parameter, SearchSpace
from berthline.traces.atomic_write import write_atomically

if TYPE_CHECKING:
    from collections.abc import Sequence

SETTINGS = (Setting("Venus", "exact"), Setting("CTC", "exact"))
SEEDS = (0, 1)
TABLE = RESULTS / "winning-policy-network.csv"
INPUTS = (
    "log2(estimate / {T})",
    "log2(gpus + 1)",
    "log2(1 + wait / estimate)",
    "log2(1 + queued_gpus / total_gpus)",
)
UNITS = 3


def network_space() -> SearchSpace:
    """Return `hold` with hidden units on top of its sum; it begins as `hold` does."""
    hold = SPACES["hold"]
    weights = np.random.Generator(np.random.Philox(key=[0, 23])).uniform(-0.5, 0.5, (UNITS, 5))
    text, parameters = "", list(hold.parameters)
    for unit in range(UNITS):
        names = [f"h{unit}_{number}" for number in range(len(INPUTS) + 1)]
        inside = " + ".join(f"{{{n}}} * {x}" for n, x in zip(names[1:], INPUTS, strict=True))
        text += f" + {{v{unit}}} * tanh({{{names[0]}}} + {inside})"
        parameters.append(Parameter(f"v{unit}", -0.3, 0.3, 0.0))
        parameters += [
            Parameter(name, -1.0, 1.0, round(float(start), 3))
            for name, start in zip(names, weights[unit], strict=True)
        ]
    old = " + {f} * fragmentation"
    return dataclasses.replace(
        hold, name="network", text=hold.text.replace(old, old + text), parameters=tuple(parameters)
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Tune networks, and write the CSV file."""
    parser = argparse.ArgumentParser(prog="network_gate", description=__doc__)
    parser.add_argument("traces", type=Path, nargs="?", default=TRACES, help="where the logs are")
    options = parser.parse_args(argv)
    sums = read_rows(RESULTS / f"{winning_policy.PAGE}.csv")
    space = network_space()
    space = winning_policy.near(space, space.values(space.start))
    rows = []
    try:
        for setting in SETTINGS:
            windows = setting.windows(options.traces)
            place = Place(setting.cluster, setting.knowledge)
            on_val = {name: place.run(name, windows["val"]) for name in place.named()}
            reference = on_val[best_by(on_val, "mean_jct")]
            config = winning_policy.config_of(setting)
            config = msgspec.structs.replace(config, evaluations=2 * config.evaluations)
            own = winning_policy.tuned_by(sums, setting)
            found = {("sum", name): text for name, text in own.items()}
            for seed in SEEDS:
                text = winning_policy.train(setting, windows, config, seed, space)
                found["network", f"seed {seed}"] = text
            for (kind, name), text in found.items():
                outcomes = place.run(text, windows["val"])
                logs = np.log(np.array(outcomes) / np.array(reference)).mean(axis=0)
                rows.append(
                    {
                        "setting": setting.name,
                        "gate": kind,
                        "seed": name.removeprefix("seed "),
                        "val_loss": f"{winning_policy.CHOICE.loss(outcomes, reference):.4f}",
                        "val_jct": f"{np.exp(logs[0]):.4f}",
                        "val_slowdown": f"{np.exp(logs[2]):.4f}",
                        "scheduler": text,
                    }
                )
        write_atomically(TABLE, to_csv(rows).encode())
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"written: {TABLE.name}; make results RESULTS=winning_policy RESULTS_ARGS=--from-csv")
    return 0


if __name__ == "__main__":
    sys.exit(main())
