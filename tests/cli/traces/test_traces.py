"""`berthline traces`: every verb, what it writes, and what it says about bad input."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.cli.traces import command as traces
from berthline.model.cluster_presets import PRESETS
from berthline.traces import catalog
from berthline.traces.formats.format_table import FORMATS
from berthline.traces.generators.synthetic import GENERATORS
from berthline.traces.load import load_trace

SHARED = SHARED_TRACES
real = pytest.mark.skipif(not SHARED.is_dir(), reason="shared trace files are not here")


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A log of 300 jobs over 10 days; the current directory is its own."""
    generator = np.random.default_rng(5)
    submit = np.sort(generator.integers(0, 864_000, 300))
    rows = [
        f"{job} {time} -1 {generator.integers(60, 9000)} {2 ** generator.integers(0, 4)} -1 -1 -1"
        f" 9000 -1 1 {generator.integers(0, 9)} -1 -1 -1 -1 -1 -1"
        for job, time in enumerate(submit, start=1)
    ]
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 32\n; UnixStartTime: 1700000000\n" + "\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    return path.name


def widths(text):
    return max(map(len, text.splitlines()))


class TestVerbs:
    @pytest.mark.parametrize("verb", traces.VERBS)
    def test_help(self, run, verb):
        outcome = run("traces", verb, "--help")
        assert (outcome.code, outcome.err) == (0, "")
        assert "Example" in outcome.out
        assert f"berthline traces {verb}" in outcome.out
        assert "--json" in outcome.out
        assert "None" not in outcome.out
        assert widths(outcome.out) <= 80

    @pytest.mark.parametrize("argv", [[], ["--help"], ["-h"]])
    def test_list_of_verbs(self, run, argv):
        outcome = run("traces", *argv)
        assert outcome.code == 0
        for verb in traces.VERBS:
            assert f"\n  {verb} " in outcome.out
        assert widths(outcome.out) <= 80

    def test_unknown_verb(self, run):
        outcome = run("traces", "shwo", "log.swf")
        assert outcome.code == 2
        assert "did you mean 'show'?" in outcome.err
        assert "berthline traces --help" in outcome.err

    @pytest.mark.parametrize("verb", ["show", "validate", "import", "convert", "split", "fit"])
    def test_a_file_is_required(self, run, verb):
        outcome = run("traces", verb)
        assert outcome.code == 2
        assert "FILE" in outcome.err
        assert f"berthline traces {verb} --help" in outcome.err


class TestList:
    @pytest.mark.parametrize(
        ("topic", "names"),
        [
            ("traces", catalog.catalog()),
            ("formats", FORMATS),
            ("generators", GENERATORS),
            ("clusters", PRESETS),
        ],
    )
    def test_topics(self, run, topic, names):
        outcome = run("traces", "list", topic)
        assert (outcome.code, outcome.err) == (0, "")
        for name in names:
            assert name in outcome.out
        assert widths(outcome.out) <= 82  # an address is not broken
        rows = run("traces", "list", topic, "--json").json[topic]
        assert [row["name"] for row in rows] == list(names)

    def test_the_catalog_is_the_default(self, run):
        outcome = run("traces", "list")
        assert outcome.out == run("traces", "list", "traces").out
        for text in ("CC-BY-4.0", "117,325", "1.1 GB", "lost: ", "cite: ", "traces fetch NAME"):
            assert text in outcome.out

    def test_one_generator_has_its_dials(self, run):
        outcome = run("traces", "list", "generators", "synthetic")
        assert outcome.code == 0
        for dial in GENERATORS["synthetic"].dials:
            assert dial.name in outcome.out
        assert widths(outcome.out) <= 80
        assert "user_skew" not in run("traces", "list", "generators").out

    @pytest.mark.parametrize(
        ("topic", "name", "near"),
        [("traces", "phily", "philly"), ("clusters", "filly", "philly"), ("formats", "wsf", "swf")],
    )
    def test_one_of_a_topic(self, run, topic, name, near):
        outcome = run("traces", "list", topic, name)
        assert outcome.code == 2
        assert f"did you mean {near!r}?" in outcome.err
        rows = run("traces", "list", topic, near, "--json").json[topic]
        assert [row["name"] for row in rows] == [near]

    def test_unknown_topic(self, run):
        outcome = run("traces", "list", "format")
        assert outcome.code == 2
        assert "did you mean 'formats'?" in outcome.err

    def test_files_without_a_checksum_are_named(self, run):
        for name, trace in catalog.catalog().items():
            unchecked = [file.address for file in trace.files if not file.sha256]
            (row,) = run("traces", "list", "traces", name, "--json").json["traces"]
            assert row["without_checksum"] == unchecked
            out = run("traces", "list", "traces", name).out
            assert ("no checksum is known: " in out) == bool(unchecked)
        assert "no checksum is known: trace_seren.csv" in run("traces", "list").out


class TestFetch:
    @pytest.fixture
    def offline(self, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("no_proxy", "*")
        entry = msgspec.structs.replace(
            catalog.public_trace("philly"), base="http://publisher.invalid"
        )
        monkeypatch.setitem(catalog.catalog(), "philly", entry)
        return tmp_path

    def test_offline(self, run, offline):
        outcome = run("traces", "fetch", "philly")
        assert outcome.code == 1
        lines = outcome.err.splitlines()
        assert lines[0].startswith("error: cannot fetch trace-data.tar.gz: no connection to ")
        assert lines[0].endswith("http://publisher.invalid/trace-data.tar.gz")
        assert lines[1].startswith("expected: a network")
        assert "https://github.com/msr-fiddle/philly-traces" in lines[2]
        assert "traces/philly/trace-data.tar.gz" in lines[3]
        assert "tar -xzf" in lines[4]
        assert "berthline traces import traces/philly/" in lines[5]
        assert "CC-BY-4.0" in outcome.out
        assert list(offline.iterdir()) == []

    def test_what_is_there_is_kept(self, run, offline, monkeypatch):
        content = b"some jobs"
        monkeypatch.setitem(
            catalog.catalog(),
            "philly",
            msgspec.structs.replace(
                catalog.public_trace("philly"),
                files=(catalog.TraceFile(address="trace-data.tar.gz"),),
            ),
        )
        (offline / "here").mkdir()
        (offline / "here" / "trace-data.tar.gz").write_bytes(content)
        outcome = run("traces", "fetch", "philly", "--out", "here")
        assert outcome.code == 0
        assert "1 already there: here" in outcome.out
        assert "unpack     (cd here && tar -xzf trace-data.tar.gz)" in outcome.out
        assert "berthline traces show here/trace-data/cluster_job_log" in outcome.out
        assert "no checksum is known" in outcome.err
        found = run("traces", "fetch", "philly", "--out", "here", "--json").json
        assert found["files"] == {"here/trace-data.tar.gz": "kept"}

    def test_unknown_name(self, run):
        outcome = run("traces", "fetch", "filly")
        assert outcome.code == 2
        assert "did you mean 'philly'?" in outcome.err


class TestShow:
    def test_card(self, run, log):
        outcome = run("traces", "show", log)
        assert (outcome.code, outcome.err) == (0, "")
        for text in (
            "run time, s",
            "300 of 9 users",
            "GPU-hours",
            "missing",
            "as stated in the file",
        ):
            assert text in outcome.out
        assert "2023-11-1" in outcome.out
        assert widths(outcome.out) <= 80

    def test_a_copy_has_no_rows_left_out_but_its_origin_may(self, run, trace, tmp_path):
        copy = str(tmp_path / "copy.parquet")
        assert run("traces", "import", str(trace), "--out", copy).code == 0
        out = run("traces", "show", copy).out
        assert "rows       4, none left out\n" in out
        assert "origin     small.swf (swf); rows 5; 1 was left out: " in out
        found = run("traces", "show", copy, "--json").json
        assert (found["format"], found["rows"], found["dropped"]) == ("parquet", 4, {})
        assert found["origin"]["dropped"] == {"cancelled before start": 1}
        assert "left out" not in run("traces", "validate", copy).out
        converted = run("traces", "convert", copy, "--out", str(tmp_path / "again.swf")).out
        assert "\nleft out " not in converted
        assert "\norigin     small.swf: 1 of 5 rows left out" in converted

    def test_one_of_a_thing_is_singular(self, run, tmp_path):
        path = tmp_path / "one.csv"
        path.write_text("submit_time,duration,num_gpus,user\n0,3600,1,alice\n")
        out = run("traces", "show", str(path), "--cluster", "uniform:1x1").out
        assert "jobs       1 of 1 user\n" in out
        assert "arrivals   1 job a day" in out
        assert "work       1 GPU-hour\n" in out
        assert "1 GPU at once on average" in out
        assert ", 1 GPU: " in out
        assert "users" not in out
        assert ": csv, 1 job\n" in run("traces", "validate", str(path)).out
        out = str(tmp_path / "one.parquet")
        assert ": csv, 1 job\n" in run("traces", "import", str(path), "--out", out).out

    def test_a_short_span_is_no_zero_days(self, run, trace):
        assert "span       0-00:00:21, dates not known" in run("traces", "show", str(trace)).out

    def test_against_a_cluster(self, run, log):
        outcome = run("traces", "show", log, "--cluster", "uniform:1x4")
        assert "uniform:1x4:V100, 4 GPUs: load " in outcome.out
        assert "more GPUs than the nodes it may use have" in " ".join(outcome.out.split())

    def test_json(self, run, log):
        found = run("traces", "show", log, "--cluster", "uniform:2x8", "--json").json
        assert (found["jobs"], found["users"], found["format"]) == (300, 9, "swf")
        assert found["cluster"]["gpus"] == 16
        assert set(found["run"]) == {"mean", "min", "p10", "p50", "p90", "p99", "max"}

    @pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
    def test_figure(self, run, log, suffix):
        pytest.importorskip("matplotlib")
        outcome = run("traces", "show", log, "--figure", f"new/card.{suffix}")
        assert (outcome.code, outcome.err) == (0, "")
        assert f"new/card.{suffix}" in outcome.out
        assert Path(f"new/card.{suffix}").stat().st_size > 10_000
        assert [path.name for path in Path("new").iterdir()] == [f"card.{suffix}"]

    def test_figure_of_no_known_kind(self, run, log):
        outcome = run("traces", "show", log, "--figure", "card.docx")
        assert outcome.code == 2
        assert ".png, .pdf, .svg" in outcome.err

    def test_figure_without_matplotlib(self, run, log, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        outcome = run("traces", "show", log, "--figure", "card.png")
        assert outcome.code == 2
        assert "pip install 'berthline[report]'" in outcome.err
        assert outcome.out == ""

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_the_smallest_traces(self, run, log, jobs):
        pytest.importorskip("matplotlib")
        lines = Path(log).read_text().splitlines()
        Path("tiny.swf").write_text("\n".join(lines[2 : 2 + jobs]) + "\n")
        outcome = run(
            *("traces", "show", "tiny.swf", "--cluster", "uniform:1x8", "--figure", "tiny.png")
        )
        assert (outcome.code, outcome.err) == (0, "")

    def test_no_such_file(self, run, log):
        outcome = run("traces", "show", "none.swf")
        assert outcome.code == 2
        assert outcome.err.startswith("error: no such trace file: none.swf")


class TestValidate:
    def test_usable(self, run, log):
        outcome = run("traces", "validate", log)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.endswith("log.swf: swf, 300 jobs\n0 errors, 0 warnings: usable\n")

    def test_errors(self, run, log):
        lines = Path(log).read_text().splitlines()
        lines[9] = lines[9].replace(" -1 ", " x ", 1).replace(" -1 ", " y ")
        lines[20] = "1 2 3"
        Path(log).write_text("\n".join(lines) + "\n")
        outcome = run("traces", "validate", log)
        assert outcome.code == 1
        assert "error: the line has only 3 fields\n  at: log.swf, line 21\n" in outcome.out
        assert "not usable as it is" in outcome.out
        assert widths(outcome.out) <= 80
        found = run("traces", "validate", log, "--json")
        assert found.code == 1
        assert 21 in [problem["line"] for problem in found.json["errors"]]

    def test_against_a_cluster(self, run, log):
        outcome = run("traces", "validate", log, "--cluster", "uniform:1x4")
        assert outcome.code == 0
        assert "can never run on uniform:1x4:V100" in outcome.out
        assert widths(outcome.out) <= 80


class TestImport:
    def test_same_jobs_again(self, run, log):
        outcome = run("traces", "import", log, "--out", "log.parquet")
        assert (outcome.code, outcome.err) == (0, "")
        assert "log.parquet" in outcome.out
        before, after = load_trace(log), load_trace("log.parquet")
        assert np.array_equal(before.submit, after.submit)
        assert np.array_equal(before.run, after.run)
        assert after.provenance["origin"]["path"] == before.provenance["path"] == log
        assert after.provenance["origin_unix_time"] == before.provenance["origin_unix_time"]

    def test_with_a_map(self, run, log):
        Path("mine.csv").write_text("when,minutes,n\n0,10,1\n60,5,2\n")
        outcome = run(
            *("traces", "import", "mine.csv", "--out", "mine.parquet"),
            *("--map", "submit=when,run=minutes*60,gpus=n"),
        )
        assert (outcome.code, outcome.err) == (0, "")
        assert load_trace("mine.parquet").run.tolist() == [600, 300]

    def test_with_an_option_of_the_format(self, run, log):
        outcome = run("traces", "import", log, "--out", "x.parquet", "--set", "nonsense=1")
        assert outcome.code == 2
        assert "nonsense" in outcome.err

    def test_anonymized(self, run, log):
        Path("key").write_text("a secret that is long enough\n")
        argv = ("traces", "import", log, "--anonymize", "--key-file", "key", "--json")
        found = run(*argv, "--out", "one.parquet").json
        assert found["anonymized"]["clock"] == "drop"
        assert run(*argv, "--out", "two.parquet").code == 0
        one, two = load_trace("one.parquet"), load_trace("two.parquet")
        assert one.user_names == two.user_names
        assert set(one.user_names).isdisjoint(load_trace(log).user_names)
        assert one.provenance["origin_unix_time"] is None
        assert run("traces", "import", log, "--anonymize", "--out", "three.parquet").code == 0
        assert load_trace("three.parquet").user_names != one.user_names

    @pytest.mark.parametrize(
        ("argv", "text"),
        [
            (["--out", "x.csv"], "ends in .parquet"),
            (["--out", "none/x.parquet"], "does not exist"),
            (["--out", "x.parquet", "--clock", "shift"], "add --anonymize"),
            (["--out", "x.parquet", "--anonymize", "--clock", "stop"], "drop, shift, keep"),
            (["--out", "x.parquet", "--anonymize", "--key-file", "none"], "key file"),
            ([], "--out"),
        ],
    )
    def test_wrong_options(self, run, log, argv, text):
        outcome = run("traces", "import", log, *argv)
        assert outcome.code == 2
        assert text in outcome.err
        assert not Path("x.parquet").exists()

    def test_what_exists_is_not_replaced_unasked(self, run, log):
        Path("log.parquet").write_text("mine")
        argv = ("traces", "import", log, "--out", "log.parquet")
        outcome = run(*argv)
        assert outcome.code == 2
        assert "--force" in outcome.err
        assert Path("log.parquet").read_text() == "mine"
        assert run(*argv, "--force").code == 0


class TestConvert:
    def test_to_swf_and_back(self, run, log):
        assert run("traces", "convert", log, "--out", "log.parquet").code == 0
        outcome = run("traces", "convert", "log.parquet", "--out", "again.swf")
        assert (outcome.code, outcome.err) == (0, "")
        assert "lost" in outcome.out
        before, after = load_trace(log), load_trace("again.swf")
        assert np.array_equal(before.submit, after.submit)
        assert np.array_equal(before.gpus, after.gpus)
        assert after.provenance["max_procs"] == 32

    def test_what_is_lost_is_said(self, run, log):
        Path("mine.csv").write_text("submit,run,gpus,priority\n0,10.5,1,3\n60,5,2,0\n")
        found = run("traces", "convert", "mine.csv", "--out", "mine.swf", "--json").json
        assert found["lost"] == {"times rounded to whole seconds": 1, "priorities": 1}
        outcome = run("traces", "convert", "mine.csv", "--out", "mine.swf", "--force")
        assert "lost       times rounded to whole seconds, 1 job\n" in outcome.out
        assert "           priorities, 1 job\n" in outcome.out

    def test_the_cluster_goes_into_the_header(self, run, log):
        run("traces", "convert", log, "--out", "big.swf", "--cluster", "uniform:16x8")
        assert load_trace("big.swf").provenance["max_procs"] == 128

    def test_unknown_ending(self, run, log):
        outcome = run("traces", "convert", log, "--out", "log.xlsx")
        assert outcome.code == 2
        assert ".swf or .parquet" in outcome.err


class TestSplit:
    def test_parts(self, run, log):
        outcome = run("traces", "split", log, "--out", "parts", "--gap", "2h")
        assert (outcome.code, outcome.err) == (0, "")
        assert widths(outcome.out) <= 80
        parts = [load_trace(f"parts/{name}.parquet") for name in ("train", "validation", "test")]
        summary = json.loads(Path("parts/summary.json").read_text())
        counts = [summary["parts"][name]["jobs"] for name in summary["parts"]]
        assert [len(part) for part in parts] == counts
        assert sum(counts) + sum(summary["gap_jobs"]) == 300
        assert summary["gap_seconds"] == 7200
        starts = [summary["parts"][name]["start_seconds"] for name in summary["parts"]]
        spans = [summary["parts"][name]["span_seconds"] for name in summary["parts"]]
        for number in (1, 2):
            assert starts[number] >= starts[number - 1] + spans[number - 1] + 7200

    def test_json_is_the_summary(self, run, log):
        found = run("traces", "split", log, "--out", "parts", "--json").json
        assert found == json.loads(Path("parts/summary.json").read_text())

    def test_only_an_earlier_split_is_replaced(self, run, log):
        argv = ("traces", "split", log, "--out", "parts")
        assert run(*argv).code == 0
        outcome = run(*argv)
        assert outcome.code == 2
        assert "--force" in outcome.err
        assert run(*argv, "--force", "--gap", "0").code == 0
        Path("parts/mine.txt").write_text("")
        outcome = run(*argv, "--force")
        assert outcome.code == 2
        assert "mine.txt" in outcome.err
        assert sorted(path.name for path in Path().iterdir()) == ["log.swf", "parts"]

    @pytest.mark.parametrize(
        ("argv", "text"),
        [
            (["--gap", "soon"], "such as 30m, 12h"),
            (["--fractions", "a,b,c"], "three numbers"),
            (["--fractions", "0.5,0.5"], "three numbers"),
            (["--gap", "52w"], "part has no jobs"),
        ],
    )
    def test_wrong_options(self, run, log, argv, text):
        outcome = run("traces", "split", log, "--out", "parts", *argv)
        assert outcome.code == 2
        assert text in outcome.err
        assert not Path("parts").exists()


class TestFit:
    def test_report_and_file(self, run, log):
        outcome = run("traces", "fit", log, "--out", "log.fit.json")
        assert (outcome.code, outcome.err) == (0, "")
        assert "how close" in outcome.out
        assert re.search(r"^verdict +(good|fair|poor)", outcome.out, re.MULTILINE)
        assert widths(outcome.out) <= 80
        assert Path("log.fit.json").stat().st_size > 1000

    def test_json(self, run, log):
        found = run("traces", "fit", log, "--out", "log.fit.json", "--json").json
        assert found["jobs"] == 300
        assert 0 <= found["closeness"]["run_distance"] < 0.5
        assert set(found["verdict"]) == {"grade", "because", "not_judged"}

    def test_other_endings_are_refused(self, run, log):
        outcome = run("traces", "fit", log, "--out", "log.json")
        assert outcome.code == 2
        assert ".fit.json" in outcome.err


@real
class TestRealTraces:
    @pytest.mark.parametrize(
        ("path", "cluster"),
        [
            ("philly/philly_2017-09-04_2017-11-14.csv.gz", "philly"),
            ("alibaba_gpu_v2023/openb_pod_list_gpuspec10.csv.gz", "openb-2023"),
            ("alibaba_spot_v2026/jobs_reduced_batch_1.csv.gz", "spot-2026"),
            ("mit_supercloud_slurm/slurm_log_sample_2021-01-01_2021-02-14.csv.gz", "uniform:9x8"),
            ("google_2011/job_events", "uniform:100x8"),
        ],
    )
    def test_cards_fit_the_terminal(self, run, path, cluster):
        outcome = run("traces", "show", str(SHARED / path), "--cluster", cluster)
        assert (outcome.code, outcome.err) == (0, "")
        assert widths(outcome.out) <= 80
