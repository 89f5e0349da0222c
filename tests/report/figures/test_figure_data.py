"""The numbers behind figures, against a direct computation from the runs."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from tests.report.compared_runs import compare

import berthline as bl
from berthline.evaluate.statistics.paired import paired_ratio
from berthline.model.workload import Workload
from berthline.report.figures import (
    ablation,
    by_group,
    cdf,
    fairness_cdf,
    gantt,
    gantt_difference,
    oracle_gap,
    profile_figure,
    radar,
    ratios,
    sweep,
    timeline,
)
from berthline.report.figures.lineup import line_up, short_names
from berthline.report.page import losses
from berthline.report.page.verdict import in_words
from berthline.report.run_results import NotShown, results_of
from berthline.runs.open_run import open_run


@pytest.fixture(scope="module")
def jobs(run):
    """The jobs of every run, by scheduler, as plain rows."""
    frame = pl.read_parquet(run.run.path / "jobs.parquet").with_columns(
        pl.col("scheduler", "user").cast(pl.String)
    )
    return {name: frame.filter(pl.col("scheduler") == name).to_dicts() for name in run.schedulers}


def test_cdf(run, jobs):
    frame = cdf.data(run)
    for name in run.schedulers:
        for metric in ("jct", "wait"):
            values = sorted(row[metric] for row in jobs[name])
            seconds, shares = cdf.curve(frame, name, metric)
            assert (seconds[0], seconds[-1]) == (values[0], values[-1])
            assert list(seconds) == sorted(seconds)
            for second, share in zip(seconds[1:], shares[1:], strict=True):
                within = sum(value <= second for value in values) / len(values)
                below = sum(value < second for value in values) / len(values)
                assert below - 1e-6 < share <= within + 1e-6


def test_timeline_second_by_second(run):
    """Means over bins against counts at many instants."""
    frame = timeline.data(run)
    log, workload = run.logs["sjf+easy"], run.workload
    edges = timeline.time_edges(run)
    started, finished = {}, {}
    for time, kind, job in zip(log.time, log.frame()["kind"], log.job, strict=True):
        if kind in ("start", "finish"):
            (started if kind == "start" else finished)[int(job)] = float(time)
    mine = frame.filter(pl.col("scheduler") == "sjf+easy")
    for place in (3, 57, 111, 190):
        instants = np.linspace(edges[place], edges[place + 1], 401)
        instants = (instants[1:] + instants[:-1]) / 2
        held = [
            sum(int(workload.gpus[j]) for j in started if started[j] <= t < finished[j])
            for t in instants
        ]
        waiting = [
            sum(workload.submit[j] <= t < started[j] for j in range(len(workload)))
            for t in instants
        ]
        row = mine.row(place, named=True)
        assert row["utilization"] == pytest.approx(np.mean(held) / run.cluster.total_gpus, abs=0.02)
        assert row["queue"] == pytest.approx(np.mean(waiting), abs=0.1 + 0.02 * max(waiting))


def test_gantt__no_gpu_is_held_twice_and_every_job_has_its_gpus(run):
    log, workload, cluster = run.logs["fcfs+easy"], run.workload, run.cluster
    end = float(log.time[-1])
    blocks = gantt.gpu_blocks(log, workload, cluster, 0.0, end, cluster.num_nodes)
    for _, mine in blocks.group_by("node"):
        rows = mine.sort("begin").to_dicts()
        for place, one in enumerate(rows):
            assert 0 <= one["gpu"] <= one["gpu"] + one["gpus"] <= 8
            for other in rows[:place]:
                if other["stop"] > one["begin"]:
                    apart = one["gpu"] + one["gpus"] <= other["gpu"]
                    assert apart or other["gpu"] + other["gpus"] <= one["gpu"]
    held = dict(blocks.group_by("job").agg(pl.col("gpus").sum()).iter_rows())
    assert held == dict(enumerate(workload.gpus.tolist()))
    used = ((blocks["stop"] - blocks["begin"]) * blocks["gpus"]).sum()
    assert used == pytest.approx(float((workload.run * workload.gpus).sum()))


def test_gantt__parts_of_a_gpu_lie_beside_each_other():
    workload = Workload.from_columns(
        submit=[0, 0, 0, 0, 10], run=[100, 50, 100, 100, 100], gpus=1,
        gpu_milli=[500, 300, 700, 1000, 300],
    )  # fmt: skip
    cluster = bl.Cluster.parse("uniform:1x4:T4")
    log = bl.simulate(workload, cluster, "fcfs").log
    blocks = gantt.gpu_blocks(log, workload, cluster, 0.0, 200.0, 1).sort("job").to_dicts()
    assert [row["gpus"] for row in blocks] == [0.5, 0.3, 0.7, 1.0, 0.3]
    for place, one in enumerate(blocks):
        assert one["gpu"] + one["gpus"] <= math.floor(one["gpu"]) + 1 + 1e-9
        for other in blocks[:place]:
            if other["stop"] > one["begin"] and one["stop"] > other["begin"]:
                apart = one["gpu"] + one["gpus"] <= other["gpu"] + 1e-9
                assert apart or other["gpu"] + other["gpus"] <= one["gpu"] + 1e-9


def test_gantt__says_how_many_gpus_it_draws(run):
    frame = gantt.data(run)
    total = run.cluster.total_gpus
    assert total <= gantt.MOST_GPUS
    assert gantt.rows_text(frame) == f"one row for each of the {total} GPUs"
    part = frame.with_columns(shown_gpus=pl.lit(128), cluster_gpus=pl.lit(1064))
    text = "only the first 128 of 1,064 GPUs, one row for each"
    assert gantt.rows_text(part) == text
    assert gantt.gpu_rows(part)[1] == 128
    assert text in gantt.draw(part, run.lineup).axes[-2].get_xlabel()
    assert text in gantt.interactive(part, run.lineup)["layout"]["xaxis"]["title"]["text"]


def test_gantt__of_a_large_cluster_shows_whole_nodes():
    assert gantt.nodes_shown(bl.Cluster.parse("uniform:133x8")) * 8 == gantt.MOST_GPUS
    assert gantt.nodes_shown(bl.Cluster.parse("uniform:2x200")) == 1


def test_gantt_difference_adds_up_to_the_timeline(run):
    frame = gantt_difference.data(run)
    assert set(frame["baseline"]) == {"fcfs"}
    edges = timeline.time_edges(run, gantt_difference.BINS)
    whole = timeline.gpus_held(run.logs["fcfs"], run.workload, edges)
    nodes = frame.group_by("hours").agg(pl.col("held_by_baseline").sum()).sort("hours")
    assert nodes["held_by_baseline"].to_list() == pytest.approx(whole.tolist(), abs=1e-6)


@pytest.mark.parametrize("by", ["size", "priority", "user"])
def test_group_means(run, jobs, by):
    frame = by_group.group_means(run, by, most=None)

    def group_of(row):
        if by != "size":
            return str(row[by]).removesuffix(".0")
        gpus = row["gpus"]
        if gpus <= 2:
            return "1 GPU" if gpus == 1 else "2 GPUs"
        return "3 to 4 GPUs" if gpus <= 4 else "5 to 8 GPUs"

    naive = {}
    for name, rows in jobs.items():
        for row in rows:
            naive.setdefault((name, group_of(row)), []).append(row["jct"])
    assert len(frame) == len(naive)
    for row in frame.to_dicts():
        values = naive[row["scheduler"], row["group"]]
        theirs = naive["fcfs", row["group"]]
        assert row["jobs"] == len(values)
        assert row["jct"] == pytest.approx(np.mean(values), rel=1e-5)
        assert row["change"] == pytest.approx(np.mean(values) / np.mean(theirs) - 1, abs=1e-5)
        best = min(np.mean(naive[name, row["group"]]) for name in jobs)
        assert row["above_best"] == pytest.approx(np.mean(values) / best - 1, abs=1e-5)


@pytest.mark.parametrize(
    ("priorities", "groups"),
    [
        ([0.5, 2.5, 1, 0.5], ["0.5", "1", "2.5"]),
        (
            [number / 4 for number in range(40)],
            [f"{low} to {low + 1}" for low in (0, 1.25, 2.5, 3.75, 5, 6.25, 7.5, 8.75)],
        ),
    ],
)
def test_priorities_are_groups_of_their_own_or_ranges(tmp_path, priorities, groups):
    workload = Workload.from_columns(
        submit=np.arange(80.0), run=60.0, gpus=1, priority=np.resize(priorities, 80)
    )
    bl.compare(workload, "uniform:1x4", ["fcfs", "static-priority"], out=tmp_path / "run")
    frame = by_group.priority_data(results_of(open_run(tmp_path / "run")))
    found = frame.filter(pl.col("scheduler") == "fcfs")["group"].to_list()
    assert found == groups


def test_fairness(run, jobs):
    frame = fairness_cdf.data(run)
    for name, rows in jobs.items():
        slowdowns = {}
        for row in rows:
            slowdowns.setdefault(row["user"], []).append(row["bounded_slowdown"])
        mine = frame.filter(pl.col("scheduler") == name).to_dicts()
        assert [row["bounded_slowdown"] for row in mine] == pytest.approx(
            sorted(np.mean(values) for values in slowdowns.values()), rel=1e-5
        )
        assert mine[-1]["share"] == 1.0
        assert {row["user"] for row in mine} == set(slowdowns)


def test_ratios_and_oracle_and_radar_and_profile(run):
    values = {name: run.values(name, "jct_mean") for name in run.schedulers}
    for row in ratios.data(run).filter(pl.col("metric") == "jct_mean").to_dicts():
        window, name = row["window"], row["scheduler"]
        assert row["ratio"] == values[name][window] / values["fcfs"][window]
        found = paired_ratio(values[name], values["fcfs"], seed=0)
        assert (row["mean"], row["low"], row["high"]) == (found.ratio, found.low, found.high)
    means = {name: sum(mine) / len(mine) for name, mine in values.items()}
    gaps = oracle_gap.data(run)
    assert gaps["scheduler"].to_list() == sorted(means, key=lambda name: means[name])
    assert gaps["gap_to_oracle"][0] == 0
    assert gaps["gap_to_oracle"][-1] == pytest.approx(max(means.values()) / min(means.values()) - 1)
    scores = radar.data(run)
    for axis, mine in scores.group_by("axis"):
        best = mine.filter(pl.col("score") == 1)
        choose = max if axis[0] == "GPU utilisation" else min
        assert best["value"][0] == choose(mine["value"])
        assert mine["score"].is_between(0, 1).all()
    shares = profile_figure.data(run)
    for name, mine in values.items():
        factors = sorted(
            value / min(values[other][window] for other in values)
            for window, value in enumerate(mine)
        )
        found = shares.filter(pl.col("scheduler") == name)
        assert found["factor"].to_list() == pytest.approx(factors)
        assert found["share"][-1] == 1


def test_sweeps(swept):
    run = results_of(open_run(swept))
    assert len(run.cells) == 4
    loads, gpus = sweep.load_data(run), sweep.gpu_data(run)
    assert sorted(set(loads["at"])) == [0.6, 0.9]
    assert sorted(set(gpus["at"])) == [16, 32]
    for frame, cell, at in ((loads, run.cells[1], 0.9), (gpus, run.cells[2], 32)):
        for row in frame.filter(pl.col("at") == at).to_dicts():
            values = run.values(row["scheduler"], row["metric"], cell)
            assert row["mean"] == pytest.approx(np.mean(values))
            assert min(values) * (1 - 1e-9) <= row["low"] <= row["mean"] * (1 + 1e-9)
            assert row["mean"] * (1 - 1e-9) <= row["high"] <= max(values) * (1 + 1e-9)
    assert [radar.cell_name(cell, run.cells) for cell in run.cells][1] == (
        "uniform:2x8:V100, load 0.9"
    )


def test_ablation(run):
    frame = ablation.data(run)
    assert set(frame["whole"]) == {"sjf+easy"}
    pairs = set(frame.select("scheduler", "seat", "change").iter_rows())
    assert pairs == {
        ("fcfs+easy", "order", "fcfs"),
        ("smallest-area+easy", "order", "smallest-area"),
        ("sjf+easy@best-fit", "placement", "best-fit"),
    }


def test_losses_are_those_whose_interval_is_worse(run, jobs):
    frame = losses.data(run)
    assert (frame["ratio"] > 1).all()
    assert (frame.filter(pl.col("kind") != "window")["low"] > 1).all()
    best = run.ranked("jct_mean")[0]
    # fcfs must lose against the best in mean JCT, with the paired interval
    row = frame.filter((pl.col("scheduler") == "fcfs") & (pl.col("where") == "mean JCT")).row(
        0, named=True
    )
    found = paired_ratio(run.values("fcfs", "jct_mean"), run.values(best, "jct_mean"))
    assert row["against"] == best
    assert row["ratio"] == pytest.approx(found.ratio)
    groups = frame.filter((pl.col("kind") == "user") & (pl.col("scheduler") == "fcfs"))
    assert len(groups)
    for loss in groups.to_dicts():
        means = []
        for name in ("fcfs", best):
            of_windows = {}
            for job in jobs[name]:
                if job["user"] == loss["where"]:
                    of_windows.setdefault(job["window"], []).append(job["jct"])
            means.append([np.mean(values) for _, values in sorted(of_windows.items())])
        assert loss["ratio"] == pytest.approx(paired_ratio(*means).ratio, rel=1e-5)


def test_what_a_run_has_no_data_for(run):
    for data, words in (
        (sweep.load_data, "one load"),
        (sweep.gpu_data, "one number of GPUs"),
        (by_group.pool_data, "no pools"),
    ):
        with pytest.raises(NotShown, match=words):
            data(run)


def test_lineup__few_stand_out_of_many():
    names = [f"scheduler-{number}" for number in range(20)]
    lineup = line_up(names, names[3], [names[7], *names])
    assert lineup.highlighted[:2] == [names[3], names[7]]
    assert len(lineup.highlighted) == 7
    colours = [lineup.looks[name].colour for name in lineup.highlighted]
    assert len(set(colours)) == len(colours)
    assert sorted(lineup.by_weight) == sorted(names)
    assert lineup.by_weight[-1] == names[3]


def test_short_names_differ():
    long = [f"[{'wait * ' * 20}{number}]+easy" for number in range(5)]
    names = short_names(long)
    assert len(set(names.values())) == 5
    assert all(len(name) <= 40 for name in names.values())


def test_ratios_are_those_of_the_summary(run, tmp_path):
    """Over windows, and over the blocks of a continuous run."""
    blocks = compare(
        tmp_path / "run", "--continuous", "--jobs", "400", "--cluster", "uniform:2x8:V100",
        schedulers=("fcfs", "sjf+easy"),
    )  # fmt: skip
    for results in (run, results_of(open_run(blocks))):
        for name in results.schedulers:
            judged = results.result(name)["against_baseline"]
            for metric, told in judged.items():
                if name == results.baseline:
                    continue
                found = results.ratio(name, results.baseline, metric)
                for key in ("ratio", "low", "high"):  # no interval over a single window
                    expected = told[key] if told[key] is None else pytest.approx(told[key])
                    assert getattr(found, key) == expected
                if told["verdict"] != "trades JCT for slowdown":
                    assert in_words(results, name, results.baseline, metric) == told["verdict"]


def test_bound(run):
    bounds = [bound["mean"] for bound in run.cell["bounds"]]
    assert oracle_gap.mean_bound(run) == pytest.approx(np.mean(bounds))
    gaps = oracle_gap.data(run)
    assert (gaps["gap_to_bound"] >= 0).all()
