"""`berthline sim`: results, JSON, and what it says about bad input."""

import subprocess
import sys
from pathlib import Path

import pytest

from berthline.cli.options import read_settings
from berthline.errors import ConfigError

KEYS = (
    *("scheduler", "workload", "cluster", "conditions", "knowledge", "seed", "run_times"),
    *("jobs", "jct", "wait", "slowdown", "bounded_slowdown", "makespan", "utilization"),
    *("energy_kwh", "energy_per_job_kwh", "fairness", "starvation", "queue", "preemptions"),
    *("preemptions_by_reason", "lost_gpu_hours", "refusals", "outages", "deadline_miss_rate"),
    *(
        "load_imbalance",
        "fragmentation",
        "by_priority",
        "fallbacks",
        "wall_seconds",
        "decision_latency",
        "events",
        "decisions",
        "log_sha256",
    ),
)


def test_json_has_exactly_the_promised_keys(run):
    outcome = run("sim", "synthetic", "--jobs", "50", "--scheduler", "sjf+easy", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    summary = outcome.json
    assert tuple(summary) == KEYS
    assert list(summary["jobs"]) == ["submitted", "completed", "rejected", "unfinished"]
    for key in ("jct", "wait", "slowdown", "bounded_slowdown"):
        assert list(summary[key]) == ["mean", "p50", "p95", "p99", "max"]
    assert list(summary["utilization"]) == ["gpu", "flops", "available"]
    assert list(summary["fairness"]) == ["jain", "rho"]
    assert list(summary["queue"]) == ["mean", "max"]
    assert summary["scheduler"] == "sjf+easy@first-fit"
    assert summary["workload"] == "synthetic"
    assert summary["cluster"] == "uniform:8x8:V100"
    assert summary["knowledge"] == "estimate"
    assert summary["jobs"]["submitted"] == 50


def test_measure__leaves_out_a_warm_up(run):
    argv = ["sim", "synthetic", "--jobs", "400", "--load", "1.2", "--by", "size"]
    whole, part = run(*argv, "--json"), run(*argv, "--measure", "2000:9000", "--json")
    assert list(part.json)[6] == "measure"
    assert part.json["measure"] == [2000, 9000]
    assert 0 < part.json["jobs"]["submitted"] < whole.json["jobs"]["submitted"] == 400
    sizes = sum(row["jobs"] for row in part.json["by_size"].values())
    assert sizes == part.json["jobs"]["submitted"]
    assert part.json["log_sha256"] == whole.json["log_sha256"]
    everything = run(*argv, "--measure", "0:", "--json").json
    assert everything["jct"] == whole.json["jct"]
    assert "jobs submitted from 2,000 s to 9,000 s" in run(*argv, "--measure", "2000:9000").out


def test_measure__no_window__is_refused(run):
    outcome = run("sim", "synthetic", "--jobs", "10", "--measure", "20:10")
    assert outcome.code == 2
    assert "the measurement window is 20:10" in outcome.err


@pytest.mark.parametrize("simulator", ["native", "reference"])
def test_decision_latency__is_measured_on_request(run, simulator):
    argv = ["sim", "synthetic", "--jobs", "40", "--simulator", simulator]
    plain, timed = run(*argv, "--json").json, run(*argv, "--time-decisions", "--json").json
    latency = plain["decision_latency"]
    assert latency["mean"] == pytest.approx(plain["wall_seconds"] / plain["decisions"])
    assert (latency["p50"], latency["p99"], latency["max"]) == (None, None, None)
    latency = timed["decision_latency"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["max"] <= timed["wall_seconds"]
    assert timed["log_sha256"] == plain["log_sha256"]
    assert "us at the 99th percentile" in run(*argv, "--time-decisions").out
    assert "percentile" not in run(*argv).out


def test_published_numbers(run):
    summary = run(
        *("sim", "synthetic", "--cluster", "uniform:1x64", "--jobs", "1000", "--load", "0.9"),
        *("--seed", "42", "--json"),
    ).json
    assert round(summary["wait"]["mean"], 3) == 163.482


def test_simulators_agree(run):
    argv = ["sim", "synthetic", "--jobs", "60", "--load", "2", "--scheduler", "sjf+easy", "--json"]
    native, reference = run(*argv), run(*argv, "--simulator", "reference")
    assert native.json["log_sha256"] == reference.json["log_sha256"]


def test_same_seed_same_log(run):
    def digest(seed):
        argv = ["sim", "synthetic", "--jobs", "99", "--scheduler", "random+skip", "--seed", seed]
        return run(*argv, "--json").json["log_sha256"]

    assert digest("3") == digest("3")
    assert digest("3") != digest("4")


def test_table(run):
    outcome = run("sim", "synthetic", "--jobs", "200", "--load", "1.2", "--knowledge", "exact")
    assert (outcome.code, outcome.err) == (0, "")
    for text in ("knowledge exact", "seed 0", "bounded slowdown", "p99", "200 submitted"):
        assert text in outcome.out
    results, again = outcome.out.rsplit("again", 1)
    assert max(map(len, results.splitlines())) <= 80
    assert again.split()[:3] == ["berthline", "sim", "synthetic"]


def test_printed_command_gives_the_same_again(run):
    import shlex

    argv = [
        "synthetic",
        "--jobs",
        "80",
        "--order",
        "-gpus * wait",
        "--set",
        "users=3",
        "--load",
        "2",
    ]
    shown = run("sim", *argv).out.rsplit("again", 1)[1].strip()
    first = run("sim", *argv, "--json").json
    again = run(*shlex.split(shown)[1:], "--json").json
    assert first["log_sha256"] == again["log_sha256"]


def test_rejected_and_dropped_are_told(run, trace):
    outcome = run("sim", str(trace), "--cluster", "uniform:1x8")
    assert outcome.code == 0
    assert "4 submitted, 3 completed, 1 rejected, 0 unfinished" in outcome.out
    assert "rejected   more GPUs than the nodes it may use have (1)" in outcome.out
    assert "trace      1 of 5 rows left out: 1 cancelled before start" in outcome.out


def test_dropped_rows_are_told_beside_json(run, trace):
    outcome = run("sim", str(trace), "--cluster", "uniform:1x8", "--json")
    assert outcome.json["jobs"]["rejected"] == 1
    assert outcome.err == "note: trace: 1 of 5 rows left out: 1 cancelled before start\n"


def test_rows_left_out_of_the_origin_are_told_as_such(run, trace, tmp_path):
    copy = str(tmp_path / "copy.parquet")
    assert run("traces", "import", str(trace), "--out", copy).code == 0
    for argv, place in (
        ((copy,), "small.swf"),
        ((copy, "--jobs", "2"), "small.swf"),
        ((str(trace), "--jobs", "2"), "the whole file"),
    ):
        text = f"{place}: 1 of 5 rows left out: 1 cancelled before start"
        outcome = run("sim", *argv, "--cluster", "uniform:1x8")
        assert f"origin     {text}\n" in outcome.out
        assert "\ntrace " not in outcome.out
        outcome = run("sim", *argv, "--cluster", "uniform:1x8", "--json")
        assert outcome.err == f"note: origin: {text}\n"


def test_caution__a_run_shorter_than_its_longest_job(run, trace):
    out = run("sim", str(trace), "--cluster", "uniform:1x8").out
    assert "caution    jobs arrive over 0-00:00:21 but one runs 0-00:01:40: use more jobs\n" in out
    rows = trace.read_text()
    trace.write_text(rows + "6 200 -1 50 1 -1 -1 1 60 -1 1 2 1 -1 -1 -1 -1 -1\n")
    assert "caution  " not in run("sim", str(trace), "--cluster", "uniform:1x8").out
    trace.write_text(rows.splitlines()[1] + "\n")
    assert "caution  " not in run("sim", str(trace), "--cluster", "uniform:1x8").out


def test_one_of_a_thing_is_singular(run, trace):
    outcome = run("sim", str(trace), "--cluster", "uniform:1x1", "--jobs", "1")
    assert "(1 GPU), " in outcome.out
    trace.write_text(trace.read_text().replace("MaxProcs: 8", "MaxProcs: 1"))
    assert "has 1 processor: " in run("sim", str(trace), "--cluster", "uniform:1x8").out


def test_horizon(run, trace):
    outcome = run("sim", str(trace), "--cluster", "uniform:1x8", "--horizon", "110")
    assert "2 unfinished" in outcome.out
    assert "counted with the time they have spent so far" in outcome.out


def test_formulas_may_start_with_a_minus(run):
    for form in (["--order", "-wait"], ["--order=-wait"]):
        summary = run("sim", "synthetic", "--jobs", "9", *form, "--json").json
        assert summary["scheduler"] == "[-wait]+strict@first-fit"
    summary = run("sim", "synthetic", "--jobs", "9", "--gate", "-gpus + 8", "--json").json
    assert summary["scheduler"] == "fcfs+strict@first-fit?[-gpus + 8]"


def test_settings_in_both_forms(run):
    together = run("sim", "synthetic", "--set", "users=2", "priorities=1", "--jobs", "9", "--json")
    apart = run(
        "sim", "--set", "users=2", "--set", "priorities=1", "synthetic", "--jobs=9", "--json"
    )
    assert together.code == apart.code == 0
    assert together.json["by_priority"].keys() == {"0"}
    assert together.json["log_sha256"] == apart.json["log_sha256"]


@pytest.mark.parametrize(
    ("argv", "texts"),
    [
        (["--scheduler", "sjff"], ["unknown ordering 'sjff'", "did you mean 'sjf'?"]),
        (["--scheduler", "fcfs+easi"], ["unknown discipline 'easi'", "did you mean 'easy'?"]),
        (["--scheduler", "fcfs@bestfit"], ["unknown placement", "did you mean 'best-fit'?"]),
        (["--scheduler", "fcfs?expres"], ["unknown gate", "did you mean 'express-lane'?"]),
        (["--scheduler", ""], ["cannot read scheduler ''", "order[+discipline]"]),
        (["--cluster", "venus"], ["unknown cluster 'venus'", "uniform:NODESxGPUS"]),
        (["--cluster", "none.toml"], ["cannot read the cluster file", "none.toml"]),
        (["--cluster", "uniform:0x8"], ["count is 0", "1 or more"]),
        (["--cluster", "uniform:2x8:V10"], ["unknown GPU type 'V10'", "did you mean 'V100'?"]),
        (["--order", "wait / estimat"], ["position 8", "'estimat'", "did you mean 'estimate'?"]),
        (["--order", "sjf+easy"], ["'sjf+easy', which is a scheduler", "--scheduler sjf+easy?"]),
        (["--order", "sjf@bestfit"], ["which is a scheduler", "--scheduler sjf@bestfit?"]),
        (["--order", "sjf + 1"], ["unknown word 'sjf'"]),
        (["--order", "wait +"], ["the formula ends early", "position 7"]),
        (["--gate", "gpus gpus"], ["position 6 of formula 'gpus gpus'"]),
        (["--knowledge", "none", "--scheduler", "sjf"], ["needs run times", "--knowledge"]),
        (["--knowledge", "exakt"], ["--knowledge is 'exakt'", "did you mean 'exact'?"]),
        (["--simulator", "nativ"], ["--simulator is 'nativ'", "did you mean 'native'?"]),
        (["--set", "users"], ["cannot read --set 'users'", "KEY=VALUE"]),
        (["--set", "user=3"], ["unknown dial 'user'", "did you mean 'users'?"]),
        (["--set", "users=x"], ["users is 'x'", "a whole number"]),
        (["--set", "users=1", "users=2"], ["--set users is given twice"]),
        (["--jobs", "0"], ["--jobs is '0'", "a whole number, 1 or more"]),
        (["--jobs", "-5"], ["--jobs is '-5'", "a whole number, 1 or more"]),
        (["--jobs", "1.5"], ["--jobs is '1.5'", "a whole number, 1 or more"]),
        (["--jobs", "many"], ["--jobs is 'many'"]),
        (["--load", "0"], ["--load is '0'", "a number, more than 0"]),
        (["--load", "nan"], ["--load is 'nan'"]),
        (["--load", "inf"], ["--load is 'inf'"]),
        (["--seed", "-1"], ["--seed is '-1'", "0 or more"]),
        (["--horizon", "1y"], ["--horizon or --until is '1y'", "a time such as 30m"]),
        (["--map", "submit=a"], ["a column mapping given for a generator"]),
        (["--format", "swf"], ["--format swf given for a generator"]),
        (["--force"], ["--force has no effect without --out"]),
        (["--out", ""], ["--out is empty"]),
    ],
)
@pytest.mark.parametrize("json", [[], ["--json"]])
def test_bad_options(run, argv, texts, json):
    outcome = run("sim", "synthetic", *argv, *json)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    for text in texts:
        assert text in outcome.err
    assert "Traceback" not in outcome.err


def test_unknown_workload(run):
    outcome = run("sim", "synthetc")
    assert outcome.code == 2
    assert "unknown workload 'synthetc'" in outcome.err
    assert "did you mean 'synthetic'?" in outcome.err


def test_missing_and_damaged_files(run, trace, tmp_path):
    assert "no such file" in run("sim", str(tmp_path / "absent.swf")).err
    assert "unknown trace format 'swff'" in run("sim", str(trace), "--format", "swff").err
    trace.write_text(trace.read_text().replace("4 20 -1 50", "4 20 -1 fifty"))
    outcome = run("sim", str(trace))
    assert outcome.code == 2
    assert "line 5" in outcome.err


def test_read_settings():
    assert read_settings(["a=1", "b = x=y"]) == {"a": "1", "b": "x=y"}
    for bad in ("a", "=1", "a=", ""):
        with pytest.raises(ConfigError, match="cannot read --set"):
            read_settings([bad])


def test_own_table__columns_are_told_by_a_setting(run, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("when,how_long,cards\n-5,10,1\n3,4,2\n")
    mapping = "mapping=submit=when,run=how_long,gpus=cards"
    outcome = run("sim", str(path), "--set", mapping, "--json")
    assert outcome.json["jobs"]["completed"] == 2
    assert outcome.json["makespan"] == 12  # the clock starts with the job at -5


def test_own_table__columns_are_told_by_a_map(run, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("when,how_long,cards\n-5,10,1\n3,4,2\n")
    mapping = "submit=when,run=how_long,gpus=cards"
    outcome = run("sim", str(path), "--map", mapping)
    assert outcome.out.rstrip().endswith(f"--map {mapping}")
    assert "2 completed" in outcome.out
    outcome = run("sim", str(path), "--map", mapping, "--set", f"mapping={mapping}")
    assert "--map and --set mapping are both given" in outcome.err


def test_notes__a_node_list_leaves_nodes_out(run, tmp_path):
    path = tmp_path / "nodes.csv"
    path.write_text("machineId,number of GPUs\nm1,8\nm2,0\n")
    outcome = run("sim", "synthetic", "--jobs", "9", "--cluster", str(path), "--json")
    text = "1 of 2 nodes left out: no GPUs; assumed: GPU type P100"
    assert outcome.err == f"note: {path}: {text}\n"


def test_notes__the_cluster_is_not_the_traces_machine(run, trace):
    assert (
        "note       the trace's machine has 8 processors"
        in run("sim", str(trace), "--cluster", "uniform:1x9").out
    )
    assert "the trace's machine" not in run("sim", str(trace), "--cluster", "uniform:1x8").out
    assert (
        "no job names one of the cluster's 17 pools"
        in run("sim", "synthetic", "--cluster", "helios-venus", "--jobs", "10").out
    )


def test_narrow_terminal__rows_keep_their_names(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    out = run("sim", "synthetic", "--jobs", "50").out
    assert all(name in out for name in ("wait, s", "JCT, s", "bounded slowdown"))


def test_full_disk__is_not_called_a_fault_of_ours():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "berthline", "sim", "synthetic"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "error: cannot write the output: No space left on device\n"


class TestConditions:
    RUN = ("sim", "synthetic", "--jobs", "120", "--cluster", "uniform:2x8", "--load", "1.2")

    def test_in_the_header_the_json_and_the_command(self, run):
        given = ("--condition", "restart=30", "--condition", "checkpoint=inf")
        shown = run(*self.RUN, *given)
        assert (shown.code, shown.err) == (0, "")
        assert "seed 0\nconditions checkpoint=inf, restart=30\n\n" in shown.out
        assert "--condition restart=30 --condition checkpoint=inf" in shown.out
        found = run(*self.RUN, *given, "--json").json
        assert found["conditions"] == {"checkpoint": "inf", "restart": 30}

    def test_defaults_are_not_shown(self, run):
        given = ("--condition", "restart=60")
        assert "conditions" not in run(*self.RUN, *given).out
        assert run(*self.RUN, *given, "--json").json["conditions"] == {}

    def test_several_after_one_option(self, run):
        found = run(*self.RUN, "--condition", "restart=30", "tick=5", "--json").json
        assert found["conditions"] == {"restart": 30, "tick": 5}

    def test_of_the_cluster_file(self, run, tmp_path):
        path = tmp_path / "my.toml"
        path.write_text("[[nodes]]\ncount = 2\ngpus = 8\n[conditions]\ntick = 60\nrestart = 5\n")
        argv = ("sim", "synthetic", "--jobs", "20", "--cluster", str(path), "--json")
        assert run(*argv).json["conditions"] == {"restart": 5, "tick": 60}
        changed = run(*argv, "--condition", "tick=0")
        assert changed.json["conditions"] == {"restart": 5}

    def test_many_fit_the_terminal(self, run):
        given = [
            *("--condition", "mtbf=86400", "mttr=600", "rack_mtbf=864000", "rack_mttr=6000"),
            *("start_delay=10", "tick=30", "refusal_rate=0.05", "retry_delay=10", "restart=5"),
        ]
        results = run(*self.RUN, *given).out.rsplit("again", 1)[0]
        assert "conditions restart=5, start_delay=10" in results
        assert max(map(len, results.splitlines())) <= 80

    def test_they_change_the_run(self, run):
        plain = run(*self.RUN, "--json").json
        late = run(*self.RUN, "--condition", "start_delay=100", "--json").json
        assert late["jct"]["mean"] >= plain["jct"]["mean"] + 99

    def test_config_of_the_run_directory(self, run, tmp_path):
        import tomllib

        given = (
            "--condition",
            "restart=30",
            "--condition",
            "mtbf=inf",
            "--out",
            str(tmp_path / "r"),
        )
        assert run(*self.RUN, *given).code == 0
        config = tomllib.loads((tmp_path / "r" / "config.toml").read_text())
        assert config["conditions"] == {"restart": 30}
        assert "condition" not in config

    @pytest.mark.parametrize(
        ("given", "texts"),
        [
            ("restrat=3", ["unknown condition 'restrat'", "did you mean 'restart'?"]),
            ("restart=soon", ["--condition restart is 'soon'", "a number"]),
            ("restart", ["cannot read --condition 'restart'", "NAME=VALUE"]),
            ("restart=", ["cannot read --condition 'restart='"]),
            ("restart=-1", ["condition restart is -1", "0 or more"]),
            ("refusal_rate=1", ["condition refusal_rate is 1", "0 to 0.99"]),
            ("restart=nan", ["condition restart is nan"]),
        ],
    )
    def test_errors(self, run, given, texts):
        outcome = run(*self.RUN, "--condition", given)
        assert (outcome.code, outcome.out) == (2, "")
        for text in texts:
            assert text in outcome.err

    def test_twice(self, run):
        outcome = run(*self.RUN, "--condition", "tick=1", "--condition", "tick=2")
        assert outcome.code == 2
        assert "--condition tick is given twice" in outcome.err


class TestDisturbances:
    RUN = ("sim", "synthetic", "--jobs", "200", "--cluster", "uniform:2x8", "--load", "1")

    def test_none(self, run):
        out = run(*self.RUN).out
        for name in ("preempted", "refused", "outages"):
            assert f"\n{name} " not in out

    def test_preemptions_by_reason(self, run):
        argv = (*self.RUN, "--scheduler", "srpt+skip!srpt", "--knowledge", "exact")
        found = run(*argv, "--json").json
        times = found["preemptions"]
        assert times > 0
        assert found["preemptions_by_reason"]["for another job"] == times
        assert f", {times} times: for another job ({times})\n" in run(*argv).out

    def test_outages_and_refusals(self, run):
        argv = (*self.RUN, "--condition", "mtbf=86400", "refusal_rate=0.1")
        found = run(*argv, "--json").json
        out = run(*argv).out
        assert f"\nrefused    {found['refusals']} starts\n" in out
        assert f"\noutages    nodes went down {found['outages']} times; " in out
        assert "its node went down (" in out


SWF = """\
; MaxProcs: 100
1 0 0 100 80 -1 -1 80 200 -1 1 1 1 -1 1 -1 -1 -1
2 5 9 100 90 -1 -1 90 200 -1 1 1 1 -1 2 -1 -1 -1
"""
SACCT = """\
JobID|State|Submit|Start|ElapsedRaw|AllocTRES
1|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:00:00|1000|gres/gpu=1
2|COMPLETED|2024-01-01T00:01:00|2024-01-01T00:01:00|1000|gres/gpu:v100=1,gres/gpu=1
"""


def test_a_log_of_a_real_cluster_runs_at_recorded_speed(run, tmp_path):
    log = tmp_path / "log.sacct"
    log.write_text(SACCT.replace("gres/gpu:v100=1,", ""))
    argv = ["sim", str(log), "--scheduler", "fcfs", "--cluster", "uniform:1x4:A100"]
    found = run(*argv, "--json").json
    assert found["jct"]["mean"] == 1000
    assert found["run_times"] is None
    assert "run times" not in run(*argv).out
    asked = run(*argv, "--set", "reference_type=V100", "--json").json
    assert asked["run_times"]["types"] == [
        {
            "recorded": "V100-32",
            "on": "A100-80",
            "factor": pytest.approx(0.568, abs=1e-3),
            "jobs": 2,
        }
    ]
    assert asked["jct"]["mean"] == pytest.approx(568, abs=0.1)


def test_a_run_that_scales_says_by_how_much(run, tmp_path):
    log = tmp_path / "log.sacct"
    log.write_text(SACCT)
    outcome = run("sim", str(log), "--scheduler", "fcfs", "--cluster", "uniform:1x4:A100")
    told = "run times x 0.568: recorded on V100-32, run on A100-80; 1 of 2 jobs"
    assert told in outcome.out.splitlines()[:4]
    explained = run("explain", "2", str(log), "--cluster", "uniform:1x4:A100")
    assert told in explained.out


def test_a_trace_that_states_its_cluster_runs_on_it(run, tmp_path):
    log = tmp_path / "kth.swf"
    log.write_text(SWF)
    outcome = run("sim", str(log), "--scheduler", "fcfs")
    assert "no cluster is given: uniform:1x100, as the header of kth.swf states" in outcome.err
    assert "0 rejected" in outcome.out
    assert "--cluster uniform:1x100" in outcome.out
    other = run("sim", str(log), "--scheduler", "fcfs", "--cluster", "uniform:1x64")
    assert (other.err, "2 rejected" in other.out) == ("", True)


@pytest.mark.parametrize(
    "argv",
    [
        ("compare", "LOG", "--schedulers", "fcfs,sjf"),
        ("explain", "2", "LOG"),
        ("export", "swf", "LOG", "--out", "OUT"),
    ],
)
def test_other_verbs_take_the_stated_cluster_too(run, tmp_path, argv):
    log = tmp_path / "kth.swf"
    log.write_text(SWF)
    names = {"LOG": str(log), "OUT": str(tmp_path / "out.swf")}
    outcome = run(*(names.get(word, word) for word in argv))
    assert outcome.code == 0, outcome.err
    assert "uniform:1x100, as the header of kth.swf states" in outcome.err
