"""`berthline explain`: what it prints, and for which job."""

from __future__ import annotations

import json

import pytest

from berthline.sim.reasons.reason_codes import Reason

SIM = ("synthetic", "--cluster", "uniform:4x8", "--jobs", "200", "--load", "1.2")


@pytest.fixture
def directory(run, tmp_path):
    out = str(tmp_path / "run")
    assert run("sim", *SIM, "--scheduler", "fcfs+easy", "--out", out).code == 0
    return out


class TestExplain:
    def test_text(self, run, directory):
        outcome = run("explain", "longest", directory, "--draws", "5")
        assert (outcome.code, outcome.err) == (0, "")
        for text in ("Why", "Timeline", "Ahead at", "What would have helped", "As known at"):
            assert text in outcome.out
        assert any(reason.value in outcome.out for reason in Reason)
        assert "again      berthline explain longest" in outcome.out
        lines = outcome.out.splitlines()
        assert max(len(line) for line in lines if not line.startswith("again")) <= 100

    def test_json_is_the_same_from_a_directory_and_by_simulating(self, run, directory):
        read = run("explain", "longest", directory, "--json", "--draws", "5").json
        made = run(
            "explain", "longest", *SIM, "--scheduler", "fcfs+easy", "--json", "--draws", "5"
        ).json
        assert read == made
        assert sum(read["reasons"].values()) == pytest.approx(read["wait"])
        assert set(read["reasons"]) <= {reason.value for reason in Reason}
        assert read["forecast"]["draws"] == 5
        assert {change["who"] for change in read["changes"]} <= {"user", "operator", "others"}
        assert json.dumps(read)  # no value that JSON does not have

    def test_quick(self, run, directory):
        found = run("explain", "longest", directory, "--quick", "--json").json
        assert (found["forecast"], found["changes"]) == (None, [])

    def test_at(self, run, directory):
        wait = run("explain", "longest", directory, "--quick", "--json").json["waits"][0]
        middle = (wait["begin"] + wait["end"]) / 2
        found = run("explain", "longest", directory, "--quick", "--json", "--at", str(middle)).json
        assert wait["begin"] < found["moment"]["time"] <= middle

    def test_names_of_the_trace_come_first(self, run, trace):
        # Row 1 of the workload is job 3 of the trace, which is wider than the cluster.
        outcome = run("explain", "3", str(trace), "--cluster", "uniform:1x8", "--json")
        assert (outcome.json["name"], outcome.json["job"]) == ("3", 1)
        assert outcome.json["reject_reason"] == "more GPUs than the nodes it may use have"
        assert outcome.json["changes"][0]["change"] == "8 GPUs instead of 16, same run time"
        text = run("explain", "3", str(trace), "--cluster", "uniform:1x8")
        assert "REJECTED: more GPUs than the nodes it may use have" in text.out

    def test_no_wait(self, run, trace):
        outcome = run("explain", "1", str(trace), "--cluster", "uniform:1x8")
        assert "It started at the instant it was submitted." in outcome.out

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("7", "{trace}"), "there is no job '7'"),
            (("1", "{trace}", "--at", "50"), "job 0 did not wait at 50 s"),
            (("1", "nothing"), "unknown workload 'nothing'"),
            (("1",), "RUN is missing"),
            (("1", "{trace}", "--top", "0"), "--top is '0'"),
        ],
    )
    def test_mistakes(self, run, trace, words, message):
        outcome = run("explain", *(word.format(trace=trace) for word in words))
        assert (outcome.code, outcome.out) == (2, "")
        assert message in outcome.err


class TestSubmit:
    def test_one_more_job(self, run, directory):
        outcome = run(
            "explain", "--submit", "gpus=2,estimate=2h", directory, "--at", "60000", "--draws", "9"
        )
        assert (outcome.code, outcome.err) == (0, "")
        assert "Submitted at 0-16:40:00, it would start between" in outcome.out
        assert "again      berthline explain" in outcome.out
        read = run("explain", "--submit", "gpus=2,estimate=2h", directory, "--json").json
        assert read["forecast"]["draws"] == 100
        assert read["at"] <= read["forecast"]["low"] <= read["forecast"]["median"]
        assert json.dumps(read)

    def test_never_fits(self, run, directory):
        outcome = run("explain", "--submit", "gpus=99", directory)
        assert "REJECTED: more GPUs than the nodes it may use have" in outcome.out
        read = run("explain", "--submit", "gpus=99", directory, "--json").json
        assert read["forecast"] is None
        assert read["reject_reason"] == "more GPUs than the nodes it may use have"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("gpus=1,estimat=2h", "unknown key 'estimat'"),
            ("gpus", "gpus has no value"),
            ("gpus=1,gpus=2", "gpus is given twice"),
            ("gpus=many", "gpus is 'many'"),
            ("estimate=2h", "neither gpus nor cpus is given"),
            ("gpus=1,estimate=soon", "estimate is 'soon'"),
            ("gpus=1,priority=high", "priority is 'high'"),
            ("gpus=1,pool=research", "unknown pool 'research'"),
            ("gpus=1,gpu_types=V10", "unknown GPU type 'V10'"),
        ],
    )
    def test_wrong_requests(self, run, directory, text, message):
        outcome = run("explain", "--submit", text, directory)
        assert outcome.code == 2
        assert message in outcome.err
        if "estimat=" in text:
            assert "did you mean 'estimate'?" in outcome.err
        if "V10" in text:
            assert "did you mean 'V100-32'?" in outcome.err

    def test_wrong_places(self, run, directory):
        for words in (
            ("5", directory, "--submit", "gpus=1"),
            ("5",),
            ("--calibrate", "5", directory),
            ("--submit", "gpus=1", directory, "--at", "1e9"),
            ("--submit", "gpus=1", directory, "--draws", "0"),
        ):
            outcome = run("explain", *words)
            assert outcome.code == 2, words

    def test_the_past_of_the_run_corrects_the_interval(self, run, directory):
        request = ("explain", "--submit", "gpus=4", directory, "--points", "40", "--draws", "9")
        plain = run(*request, "--json").json
        corrected = run(*request, "--json", "--calibrate").json
        assert plain["correction"] is None
        stretch = corrected["correction"]["later"]
        before, after = plain["forecast"], corrected["forecast"]
        assert after["median"] == before["median"]
        high = before["median"] + stretch * (before["high"] - before["median"] + 60)
        assert after["high"] == pytest.approx(high)
        assert f"{stretch:.2f} times after it" in run(*request, "--calibrate").out
        few = run("explain", "--submit", "gpus=4", directory, "--points", "3", "--calibrate").out
        assert "not corrected: fewer than 10 instants" in few

    def test_keys_are_those_of_the_library(self):
        from berthline.cli.explain.command import ASKED_KEYS
        from berthline.evaluate.forecast.asked_job import KEYS

        assert tuple(KEYS) == ASKED_KEYS

    def test_all_keys(self):
        from berthline.evaluate.forecast.asked_job import asked_job
        from berthline.model.cluster import Cluster

        cluster = Cluster.parse("uniform:2x4:A100")
        job = asked_job(
            "gpus=1, gpu_milli=500, estimate=1-02:03:04, cpus=3, memory_mib=9, user=ann,"
            "gpu_types=A100, priority=2.5",
            cluster,
        )
        assert job.gpu_amount.tolist() == [0.5]
        assert job.estimate.tolist() == [93784.0]
        assert (job.cpus[0], job.memory_mib[0], job.priority[0]) == (3, 9, 2.5)
        assert (job.user_names, job.gpu_type_sets) == (("ann",), ("A100",))
        for text, seconds in (("90", 90), ("1.5h", 5400), ("30m", 1800), ("02:30", 9000)):
            assert asked_job(f"gpus=1,estimate={text}", cluster).estimate[0] == seconds


class TestCalibrate:
    def test_table_and_verdict(self, run, directory):
        words = ("explain", "--calibrate", directory, "--points", "5", "--draws", "10")
        outcome = run(*words)
        assert outcome.code == 0
        assert "of starts are inside 80% intervals" in outcome.out
        lines = outcome.out.splitlines()
        assert max(len(line) for line in lines if not line.startswith("again")) <= 100
        read = run(*words, "--json").json
        assert (read["points"], read["draws"], read["level"]) == (5, 10, 0.8)
        assert read["all"]["forecasts"] == sum(each["forecasts"] for each in read["by_place"])
        assert "inside 80% intervals" in read["verdict"]

    def test_nothing_waited(self, run):
        outcome = run("explain", "--calibrate", "synthetic", "--jobs", "9", "--load", "0.01")
        assert outcome.code == 2
        assert "no job waited" in outcome.err
