"""Run directories for the tests of figures and pages: real runs of `berthline compare`."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluate.whatif.sacct_text import sacct_text, whole_seconds
from tests.report.compared_runs import HOSTILE, SCHEDULERS, compare

from berthline.cli.main import main
from berthline.report.run_results import results_of
from berthline.runs.open_run import open_run


@pytest.fixture(scope="session")
def compared(tmp_path_factory):
    """Five schedulers on six windows."""
    return compare(
        tmp_path_factory.mktemp("compared") / "run",
        *("--windows", "6", "--jobs", "200", "--cluster", "uniform:3x8:V100"),
    )


@pytest.fixture(scope="session")
def swept(tmp_path_factory):
    """Two clusters at two loads: four cells."""
    return compare(
        tmp_path_factory.mktemp("swept") / "run",
        *("--windows", "3", "--jobs", "80", "--loads", "0.6,0.9"),
        *("--cluster", "uniform:2x8:V100,uniform:4x8:V100"),
        schedulers=SCHEDULERS[:3],
    )


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """A workload whose name and users are markup, and a formula that contains "<"."""
    folder = tmp_path_factory.mktemp("hostile")
    generator = np.random.default_rng(1)
    rows = ["submit,run,gpus,user"]
    for job in range(120):
        user = HOSTILE.replace('"', '""') + str(job % 7)
        gpus = 2 ** int(generator.integers(0, 4))
        rows.append(f'{20 * job},{int(generator.integers(60, 4000))},{gpus},"{user}"')
    path = folder / "<b onclick=x>&amp;$x^2$.csv"
    path.write_text("\n".join(rows) + "\n")
    return compare(
        folder / "run",
        *("--windows", "2", "--knowledge", "exact", "--cluster", "uniform:2x8:V100"),
        workload=path,
        schedulers=("fcfs", "[where(wait < 60, estimate, 1)]+skip"),
    )


@pytest.fixture(scope="session")
def reported(compared):
    """The report on the five schedulers; drawn once, because drawing takes seconds."""
    mpl = pytest.importorskip("matplotlib", reason="the extra 'report' is not installed")
    pytest.importorskip("plotly", reason="the extra 'report' is not installed")
    from berthline.report.page.write_report import write_report

    before = dict(mpl.rcParams)
    report = write_report(compared)
    assert dict(mpl.rcParams) == before
    return report


@pytest.fixture(scope="session")
def towering(tmp_path_factory):
    """One scheduler far worse than the others, and the baseline best."""
    return compare(
        tmp_path_factory.mktemp("towering") / "run",
        *("--jobs", "4000", "--continuous", "--cluster", "uniform:4x8:V100", "--load", "0.9"),
        schedulers=("smallest-area+easy", "sjf+easy", "fcfs+easy", "largest-area"),
    )


@pytest.fixture(scope="session")
def asked(tmp_path_factory):
    """The answer of `berthline whatif` to a small log."""
    import berthline as bl

    jobs = bl.generate(
        "poisson", cluster="uniform:4x8", jobs=400, load=0.9, seed=1, estimates="human",
        estimate_error=1, run_median=5000, run_high=86_400,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("asked")
    log = folder / "jobs.sacct"
    log.write_text(sacct_text(bl.simulate(whole_seconds(jobs), "uniform:4x8", "fcfs+easy")))
    schedulers = "sjf+easy,smallest-area+easy,fcfs+conservative"
    arguments = ["whatif", str(log), "--schedulers", schedulers, "--out", str(folder / "run")]
    assert main(arguments) == 0
    return folder / "run"


@pytest.fixture(scope="session")
def run(compared):
    return results_of(open_run(compared))
