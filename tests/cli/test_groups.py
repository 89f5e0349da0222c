"""`--by`: groups of jobs in `sim` and `compare`."""

import json

import pytest

import berthline as bl
from berthline.cli.groups import MOST_ROWS, read_groupings
from berthline.errors import ConfigError

SIM = ("sim", "synthetic", "--jobs", "200", "--scheduler", "sjf+easy")
COMPARE = ("compare", "synthetic", "--jobs", "100", "--schedulers", "fcfs,sjf+easy")


def test_json_has_the_groupings_asked_for(run):
    plain = run(*SIM, "--json").json
    found = run(*SIM, "--by", "user,size", "--by", "pool", "--json").json
    assert found.keys() - plain.keys() == {"by_user", "by_size", "by_pool"}
    assert found["by_priority"] == plain["by_priority"]
    for key in ("by_user", "by_size", "by_pool"):
        rows = found[key]
        assert sum(row["jobs"] for row in rows.values()) == 200
        assert all(row["group"] == label for label, row in rows.items())
        held = sum(row["energy_kwh"] for row in rows.values())
        assert held == pytest.approx(200 * found["energy_per_job_kwh"])


def test_by_priority_does_not_change_what_is_there_already(run):
    plain = run(*SIM, "--json").json
    assert run(*SIM, "--by", "priority", "--json").json["by_priority"] == plain["by_priority"]


def test_a_table_for_each_grouping(run):
    out = run(*SIM, "--by", "size,priority").out
    assert [line.split()[0] for line in out.splitlines() if "jobs" in line and "mean" in line] == [
        "size",
        "priority",
    ]
    assert "5 to 8 GPUs" in out
    assert "--by size,priority" in out  # the command that gives it again


def test_of_many_groups_the_largest_are_shown(run):
    found = run(*SIM, "--set", "users=40", "--by", "user", "--json").json["by_user"]
    assert len(found) > MOST_ROWS
    out = run(*SIM, "--set", "users=40", "--by", "user").out
    shown = [line.split()[0] for line in out.splitlines() if line.startswith("user")][1:]
    largest = sorted(found, key=lambda user: -found[user]["gpu_seconds"])[:MOST_ROWS]
    assert shown == largest
    assert f"of {len(found)}; --json has all in by_user" in out


def test_compare_has_groups_of_every_scheduler(run):
    found = run(*COMPARE, "--windows", "3", "--by", "size", "--json").json["schedulers"]
    plain = run(*COMPARE, "--windows", "3", "--json").json["schedulers"]
    for each, without in zip(found, plain, strict=True):
        assert each.keys() - without.keys() == {"by_size"}
        assert sum(row["jobs"] for row in each["by_size"].values()) == 300
    out = run(*COMPARE, "--windows", "3", "--by", "size").out
    assert "means over windows with such jobs" in out
    assert out.count("1 GPU ") == 1


def test_result_by_gives_the_same_rows(run):
    found = run(*SIM, "--by", "user", "--json").json["by_user"]
    cluster = bl.Cluster.parse("uniform:8x8:V100")
    workload = bl.generate("synthetic", jobs=200, cluster=cluster, seed=0)
    rows = bl.simulate(workload, cluster, "sjf+easy").by("user")
    assert {row.group: row.jct.mean for row in rows} == {
        label: row["jct"]["mean"] for label, row in found.items()
    }


def test_groups_are_in_the_run_directory(run, tmp_path):
    out = tmp_path / "run"
    run(*SIM, "--by", "user", "--out", str(out))
    summary = json.loads((out / "summary.json").read_text())
    assert summary["by_user"]
    assert 'by = ["user"]' in (out / "config.toml").read_text()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["usr"], "unknown grouping 'usr'"),
        (["user,"], "empty entry"),
        (["user", "size,user"], "--by user is given twice"),
    ],
)
def test_bad_groupings(given, message):
    with pytest.raises(ConfigError, match=message):
        read_groupings(given)
