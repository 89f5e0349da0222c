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
