"""`bench model` and `bench packing`."""

from __future__ import annotations

import pytest

from berthline.cli.bench import model as bench_model
from berthline.cli.bench import packing as bench_packing
from berthline.cli.bench.model import CASES, JOBS, ModelSpeed, show_model
from berthline.experiments import packing
from berthline.model.cluster import Cluster, NodeGroup


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(bench_model, "QUICK_JOBS", 200)
    monkeypatch.setattr(bench_model, "MILP_QUEUES", 1)


@pytest.fixture
def small_cluster(monkeypatch, tmp_path):
    groups = [NodeGroup(count=10, gpus=8, cpus=96_000, memory_mib=393_216)]
    monkeypatch.setattr(packing, "packing_cluster", lambda: Cluster.from_groups(groups))
    monkeypatch.setattr(bench_packing, "GENERATED_PODS", 150)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestModel:
    def test_rows(self, run, few, tmp_path):
        outcome = run("bench", "model", "--quick", "--json", "--out", str(tmp_path / "x"))
        assert (outcome.code, outcome.err) == (0, "")
        speeds = outcome.json["speeds"]
        simulated = [speed for speed in speeds if speed["case"] != "MILP"]
        assert [speed["scheduler"] for speed in simulated] == [case.scheduler for case in CASES]
        assert all(speed["figure"] > 0 for speed in speeds)
        assert all(speed["meets_target"] is None for speed in simulated)
        assert {speed["cluster"] for speed in simulated} == {
            "uniform:1x512:V100",
            "uniform:64x8:V100",
            "mixed:P100+V100+H100",
            "openb-2023",
        }
        assert (tmp_path / "x" / "summary.json").exists()

    def test_program_of_32_jobs_and_64_nodes(self):
        pytest.importorskip("highspy", reason="the extra milp is not installed")
        speed = bench_model._measure_milp(rounds=1)
        assert speed.jobs == 32
        assert speed.cluster == "uniform:64x8"
        assert "without a plan" not in speed.detail

    def test_table(self, run, few):
        outcome = run("bench", "model", "--jobs", "100")
        assert (outcome.code, outcome.err) == (0, "")
        assert "not checked" in outcome.out
        assert ">= 1,500,000" in outcome.out
        assert max(map(len, outcome.out.splitlines())) <= 80

    def test_missed_targets_are_counted(self, capsys):
        def speed(figure: float) -> ModelSpeed:
            return ModelSpeed(
                case="SRPT",
                scheduler="srpt+skip!srpt",
                cluster="uniform:1x512:V100",
                jobs=JOBS,
                load=0.9,
                figure=figure,
                unit="jobs per CPU-second",
                target=500_000,
                meets_target=figure >= 500_000,
                detail="7 preempted",
            )

        show_model([speed(400_000), speed(600_000)])
        assert "1 of 2 targets missed" in capsys.readouterr().out
        show_model([speed(600_000)])
        assert "all targets met" in capsys.readouterr().out

    def test_the_mixed_cluster_is_as_loaded_as_said(self):
        case = next(case for case in CASES if case.nodes == "mixed")
        cluster, workload = bench_model._inputs(case, 20_000)
        speeds = [cluster.types[kind].speed for kind in cluster.gpu_type]
        assert len(set(speeds)) == 3
        does = 8 * sum(speeds) * workload.submit[-1]
        assert workload.work / does == pytest.approx(case.load, rel=0.1)

    def test_pods_are_as_many_as_said(self):
        case = next(case for case in CASES if case.nodes == "openb")
        cluster, workload = bench_model._inputs(case, 20_000)
        asked = workload.work / (cluster.total_gpus * workload.submit[-1])
        assert asked == pytest.approx(case.load, rel=0.05)
        assert (workload.gpu_milli < 1000).any()
        assert (workload.gpus == 0).any()


class TestPacking:
    def test_table_and_figure(self, run, small_cluster):
        pytest.importorskip("matplotlib", reason="the extra report is not installed")
        outcome = run("bench", "packing", "--seeds", "2", "--figure", "f.png")
        assert outcome.code in (0, 1)  # so few GPUs may well be packed better by another rule
        assert "pods of similar shapes are generated" in outcome.err
        for text in ("published", "12.53", "dot-product, smallest", "more GPUs in use", "f.png"):
            assert text in outcome.out
        assert ("WRONG" in outcome.out) == (outcome.code == 1)
        assert max(map(len, outcome.out.splitlines())) <= 80
        assert (small_cluster / "f.png").stat().st_size > 10_000

    def test_json_from_a_pod_list(self, run, small_cluster):
        path = small_cluster / "pods.csv"
        rows = ["4000,1000,1,500,", "8000,2000,2,1000,", "64000,9000,8,1000,"]
        path.write_text("cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + "\n".join(rows))
        outcome = run("bench", "packing", "--quick", "--pods", str(path), "--json")
        assert outcome.err == ""
        found = outcome.json
        assert found["packing"]["pods"] == "pods.csv"
        assert found["packing"]["gpus"] == 80
        assert found["packing"]["seeds"] == 2
        assert outcome.code == (0 if found["fgd_wins"] else 1)

    def test_order_of_the_nodes(self, run, small_cluster):
        outcome = run("bench", "packing", "--seeds", "1", "--node-order", "large-first", "--json")
        assert outcome.json["packing"]["node_order"] == "large-first"
        assert outcome.code == 0  # a fact about that order, and no failure of the benchmark
        outcome = run("bench", "packing", "--node-order", "small-first")
        assert outcome.code == 2
        assert "large-first" in outcome.err

    def test_the_fetched_trace_is_found(self, run, small_cluster):
        path = small_cluster / bench_packing.FETCHED
        path.parent.mkdir(parents=True)
        path.write_text("cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n1000,10,1,1000,\n")
        outcome = run("bench", "packing", "--seeds", "1", "--json")
        assert (outcome.err, outcome.json["packing"]["pods"]) == ("", path.name)

    def test_no_such_file(self, run, small_cluster):
        outcome = run("bench", "packing", "--pods", "nowhere.csv")
        assert outcome.code == 2
        assert "nowhere.csv" in outcome.err

    @pytest.mark.parametrize(
        ("what", "option"),
        [("sim", "--seeds"), ("packing", "--jobs"), ("model", "--pods"), ("load", "--figure")],
    )
    def test_options_of_another_benchmark(self, run, what, option):
        outcome = run("bench", what, option, "3")
        assert outcome.code == 2
        assert f"{option} does not apply to berthline bench {what}" in outcome.err
