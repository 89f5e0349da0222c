"""`demo`, `policies`, `doctor` and `bench`."""

import importlib
import json

import pytest

from berthline.cli import doctor
from berthline.cli.bench import command as bench
from berthline.cli.bench import load as bench_load
from berthline.cli.bench import load_samples, speed
from berthline.cli.demo import command as demo
from berthline.cli.output import clock, fold_scheduler, number, seconds
from berthline.cli.policies import command as policies
from berthline.cli.policies.command import TOPICS
from berthline.env.columns import COLUMN_SETS
from berthline.env.presets import PRESETS
from berthline.env.questions import QUESTIONS
from berthline.env.registration import SEATS, env_id
from berthline.env.rewards import REWARDS
from berthline.model.conditions import MEANINGS
from berthline.policies.orders import ORDERS
from berthline.policies.reward_words import REWARD_WORDS
from berthline.policies.rules import COMMON_OPTIONS, PREEMPTIONS
from berthline.policies.scheduler import Scheduler
from berthline.policies.vocabulary import VOCABULARY
from berthline.sim.simulate import simulate


@pytest.fixture
def small_demo(monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "JOBS", 150)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestDemo:
    def test_table_and_results(self, run, small_demo):
        outcome = run("demo", "--tables-only")
        assert (outcome.code, outcome.err) == (0, "")
        assert len(demo.SCHEDULERS) >= 8
        for text in ("against fcfs", "Verdict: ", "runs/demo", "next", "knowledge estimate"):
            assert text in outcome.out
        assert max(map(len, outcome.out.splitlines())) <= 80
        found = json.loads((small_demo / "runs" / "demo" / "summary.json").read_text())
        assert [result["scheduler"] for result in found["schedulers"]] == list(demo.SCHEDULERS)

    def test_again_replaces_its_own_results_only(self, run, small_demo):
        assert run("demo", "--tables-only").code == 0
        assert run("demo", "--tables-only", "--seed", "1").code == 0
        (small_demo / "runs" / "demo" / "mine.txt").write_text("")
        outcome = run("demo", "--tables-only")
        assert outcome.code == 2
        assert "the output directory holds 'mine.txt'" in outcome.err
        assert "--force" not in outcome.err  # which demo does not have

    def test_a_foreign_directory_is_left_alone(self, run, small_demo):
        (small_demo / "thesis").mkdir()
        (small_demo / "thesis" / "chapter1.tex").write_text("")
        outcome = run("demo", "--tables-only", "--out", "thesis")
        assert outcome.code == 2
        assert "something other than results of berthline demo" in outcome.err
        assert "--force" not in outcome.err

    def test_json(self, run, small_demo):
        outcome = run("demo", "--tables-only", "--json", "--out", "elsewhere")
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.json["baseline"] == "fcfs"
        assert (small_demo / "elsewhere" / "summary.json").exists()


class TestPolicies:
    def test_all(self, run):
        outcome = run("policies")
        assert outcome.code == 0
        for text in (
            *ORDERS,
            "conservative",
            "worst-fit",
            "express-lane",
            "srpt+skip",
            "policies words",
        ):
            assert text in outcome.out
        assert max(map(len, outcome.out.splitlines())) <= 80

    def test_shipped(self, run):
        cards = run("policies", "shipped", "--json").json["shipped"]
        assert "holdback" in {card["name"] for card in cards}
        outcome = run("policies", "shipped")
        for card in cards:
            for text in (card["name"], card["scheduler"], card["command"]):
                assert text in outcome.out
        lines = [
            x for x in outcome.out.splitlines() if x.strip() not in {c["scheduler"] for c in cards}
        ]
        assert max(map(len, lines)) <= 80
        assert "holdback" in run("policies").out
        assert run("policies", "--json").json["shipped"] == cards

    def test_words(self, run):
        outcome = run("policies", "words")
        for word in (*VOCABULARY, *REWARD_WORDS):
            assert word in outcome.out
        assert "functions: " in outcome.out
        assert max(map(len, outcome.out.splitlines())) <= 80

    def test_words_say_what_they_are_about(self, run):
        rows = {row["name"]: row for row in run("policies", "words", "--json").json["words"]}
        assert rows["node_speed"]["scope"] == "node"
        assert rows["power_w"]["scope"] == "system"
        assert rows["mean_jct"]["scope"] == "end"

    @pytest.mark.parametrize("topic", TOPICS)
    def test_json(self, run, topic):
        found = run("policies", topic, "--json").json
        assert list(found) == [topic]
        assert all(row["name"] for row in found[topic])

    def test_what_needs_run_times(self, run):
        rows = {row["name"]: row for row in run("policies", "orders", "--json").json["orders"]}
        assert rows["sjf"]["needs_run_times"]
        assert not rows["fcfs"]["needs_run_times"]

    def test_placements_have_their_formulas(self, run):
        rows = run("policies", "placements", "--json").json["placements"]
        assert {row["name"]: row["formula"] for row in rows}.items() >= {
            ("first-fit", ""),
            ("least-loaded", "-(node_free_gpus / node_total_gpus)"),
        }
        out = run("policies", "placements").out
        assert "-(node_free_gpus / node_total_gpus)" in out
        assert max(map(len, out.splitlines())) <= 80

    def test_preemptions(self, run):
        found = run("policies", "preemptions", "--json").json["preemptions"]
        rows = {row["name"]: row for row in found}
        assert set(rows) == set(PREEMPTIONS)
        assert rows["srpt"]["index"] == "remaining"
        assert rows["srpt"]["needs_run_times"]
        assert not rows["las"]["needs_run_times"]
        assert rows["defrag"]["index"] == ""
        assert set(rows["las"]["options"]) == {"q1", "q2", "promote", *COMMON_OPTIONS}
        out = run("policies", "preemptions").out
        for text in (*PREEMPTIONS, *COMMON_OPTIONS, "q1=3250", "margin=2"):
            assert text in out
        assert max(map(len, out.splitlines())) <= 80

    def test_conditions(self, run):
        rows = {r["name"]: r for r in run("policies", "conditions", "--json").json["conditions"]}
        assert list(rows) == list(MEANINGS)
        assert (rows["restart"]["default"], rows["mtbf"]["default"]) == (60, "inf")
        out = run("policies", "conditions").out
        for text in (*MEANINGS, "--condition restart=30"):
            assert text in out
        assert max(map(len, out.splitlines())) <= 80

    @pytest.mark.parametrize(
        ("topic", "names"),
        [
            ("environments", [env_id(name) for name in SEATS]),
            ("columns", list(COLUMN_SETS)),
            ("rewards", list(REWARDS)),
            ("presets", list(PRESETS)),
        ],
    )
    def test_what_environments_are_made_of(self, run, topic, names):
        assert [row["name"] for row in run("policies", topic, "--json").json[topic]] == names
        out = run("policies", topic).out
        assert all(name in out for name in names)
        assert "`" not in out
        assert max(map(len, out.splitlines())) <= 80

    def test_columns_that_need_run_times(self, run):
        rows = {row["name"]: row for row in run("policies", "columns", "--json").json["columns"]}
        assert rows["lookahead"]["needs_run_times"]
        assert not rows["blind"]["needs_run_times"]
        assert rows["lsf"]["jobs"] == ["gpus / 4", "memory_mib / 4096"]

    def test_terms_of_rewards(self, run):
        rows = {row["name"]: row for row in run("policies", "rewards", "--json").json["rewards"]}
        assert {
            "name": "use",
            "occasion": "second",
            "weight": 1.5,
            "formula": "utilization",
        } in rows["drl-scheduler"]["terms"]
        assert "use (second): 1.5 x utilization" in run("policies", "rewards").out

    def test_options_of_presets(self, run):
        rows = {row["name"]: row for row in run("policies", "presets", "--json").json["presets"]}
        assert rows["rltune"]["environment"] == "berthline/Pick-v0"
        assert rows["rltune"]["options"]["semantics"] == "wait"
        assert rows["rltune"]["differences"] == list(PRESETS["rltune"].differences)

    def test_every_seat_has_a_question(self):
        assert list(QUESTIONS) == list(SEATS.values())

    def test_schedulers_of_the_examples_are_schedulers(self):
        first = policies.EXAMPLES.replace("schedulers:", "").splitlines()[:3]
        for line in first:
            Scheduler.parse(line.strip())

    def test_unknown_topic(self, run):
        outcome = run("policies", "word")
        assert outcome.code == 2
        assert "did you mean 'words'?" in outcome.err


class TestDoctor:
    def test_all_is_well(self, run):
        outcome = run("doctor")
        assert (outcome.code, outcome.err) == (0, "")
        assert "both simulators agree" in outcome.out
        assert "everything works" in outcome.out
        assert max(map(len, outcome.out.splitlines())) <= 80

    def test_json(self, run):
        found = run("doctor", "--json").json
        assert found["ok"] is True
        assert {"berthline", "Python", "native core", "self-check"} <= {
            finding["name"] for finding in found["findings"]
        }

    def test_missing_extra_names_the_command(self, monkeypatch):
        monkeypatch.setattr(doctor, "requirements", lambda: {"magic": ["no-such-package"]})
        finding = doctor.examine_extras()[0]
        assert (finding.state, finding.fix) == ("missing", "pip install 'berthline[magic]'")

    def test_broken_core_fails(self, run, monkeypatch):
        load = importlib.import_module

        def no_core(name, *rest):
            if name == "berthline._native":
                raise ImportError("no such core")
            return load(name, *rest)

        monkeypatch.setattr(doctor.importlib, "import_module", no_core)
        outcome = run("doctor")
        assert outcome.code == 1
        assert "1 broken: native core" in outcome.out

    def test_stale_core_is_found(self, run, monkeypatch):
        monkeypatch.setattr(doctor, "package_version", lambda: "99.0")
        outcome = run("doctor")
        assert outcome.code == 1
        assert "the package is 99.0" in " ".join(outcome.out.split())

    def test_disagreement_is_found(self, monkeypatch):
        def differently(*arguments, simulator="native", **options):
            seed = 1 if simulator == "native" else 2
            return simulate(*arguments, **options, simulator=simulator, seed=seed)

        monkeypatch.setattr("berthline.sim.simulate.simulate", differently)
        monkeypatch.setattr(doctor, "SELF_CHECK", ("random+skip",))
        (finding,) = doctor._check_runs("self-check")
        assert finding.state == "broken"
        assert "disagree" in finding.detail


class TestBench:
    def test_published_numbers_and_report(self, run, monkeypatch):
        monkeypatch.setattr(speed, "FEWEST_ROUNDS", 1)
        monkeypatch.setattr(speed, "MOST_ROUNDS", 1)
        sizes = speed._measure_cell
        monkeypatch.setattr(
            speed, "_measure_cell", lambda n, g: sizes(n, g) if (n, g) in speed.PUBLISHED else ()
        )
        monkeypatch.setattr(speed, "YARDSTICK", (1_000, 64))
        outcome = run("bench", "sim", "--quick")
        assert (outcome.code, outcome.err) == (0, "")
        assert "load average" in outcome.out
        assert "SimPy reference" in outcome.out
        assert "plain Python, heapq" in outcome.out
        assert "mean waits equal the published ones in all 12 cases" in outcome.out
        assert max(map(len, outcome.out.splitlines())) <= 80

    def test_wrong_numbers_fail(self, run, monkeypatch):
        wrong = speed.Speed(
            configuration="fcfs strict, pool",
            jobs=1_000,
            gpus=64,
            jobs_per_cpu_second=1.0,
            rounds=1,
            mean_wait=163.481,
            published_mean_wait="163.482",
            agrees=False,
        )
        stick = speed.Yardstick(program="x", jobs_per_cpu_second=1.0, mean_wait=1.0, agrees=True)
        monkeypatch.setattr(bench, "measure_speeds", lambda **_: [wrong])
        monkeypatch.setattr(bench, "measure_yardsticks", lambda: [stick])
        outcome = run("bench", "--quick", "--json")
        assert outcome.code == 1
        assert outcome.json["agrees"] is False

    def test_heapq_yardstick(self):
        workload = speed.common_workload(1_000, 64)
        columns = (workload.submit.tolist(), workload.run.tolist(), workload.gpus.tolist())
        assert f"{speed.heapq_fcfs(*columns, 64):.3f}" == "163.482"

    def test_memory_is_measured_in_a_new_process(self):
        assert 20 < speed.max_rss_mb(1_000, 64) < 300

    def test_loading(self, run, monkeypatch, tmp_path):
        few = {name: load_samples.SAMPLES[name] for name in ("csv", "swf")}
        monkeypatch.setattr(bench_load, "SAMPLES", few)
        monkeypatch.setattr(bench_load, "QUICK_ROWS", 1_000)
        outcome = run("bench", "load", "--quick", "--json", "--out", str(tmp_path / "x"))
        assert (outcome.code, outcome.err) == (0, "")
        loads = outcome.json["loads"]
        assert [(load["file"], load["rows"], load["jobs"]) for load in loads] == [
            ("csv", 1_000, 1_000),
            ("swf", 1_000, 1_000),
        ]
        assert all(load["cpu_seconds"] > 0 and load["max_rss_mb"] > 20 for load in loads)
        outcome = run("bench", "load", "--quick")
        assert "rows per CPU-second" in outcome.out
        assert max(map(len, outcome.out.splitlines())) <= 80

    def test_unknown_target(self, run):
        outcome = run("bench", "simm")
        assert outcome.code == 2
        assert "did you mean 'sim'?" in outcome.err


def test_formats():
    assert (number(1234567.8), number(float("nan")), number(None)) == ("1,234,568", "-", "-")
    assert (seconds(12.34), seconds(1234.5)) == ("12.3", "1,234")
    assert clock(93784.4) == "1-02:03:04"
    assert fold_scheduler("las+skip!las:every=60", 12) == "las+skip\n  !las:every=60"
    assert fold_scheduler("[a + b ? c]+easy@best-fit", 12) == "[a + b ? c]\n  +easy\n  @best-fit"
