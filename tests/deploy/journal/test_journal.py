"""The journal: read while it is written, whole after kill -9, replayed, exported, anonymised."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import polars as pl
import pytest
from tests.deploy.simulated_systems import CLUSTER, controller, generated, jobs, play, system

import berthline as bl
from berthline.deploy.journal.anonymise_journal import anonymise_journal
from berthline.deploy.journal.export_journal import export_journal
from berthline.deploy.journal.journal_file import JournalReader, JournalWriter, PartStart
from berthline.deploy.journal.journal_records import CycleRecord
from berthline.deploy.journal.journal_run import journal_run
from berthline.deploy.journal.replay_journal import replay_journal
from berthline.deploy.systems.contract import RUNNING, UP, WAITING, JobRecord, Look, NodeRecord
from berthline.errors import ConfigError, RefusedError
from berthline.model.schedule import FINISH, PREEMPT, RESUME, START
from berthline.runs.run_output import RunOutput


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Return a journal, and the system that it is about, after a controller has acted."""
    directory = tmp_path_factory.mktemp("played") / "journal"
    adapter = system(generated(4, 80))
    control = controller(adapter, directory, "srpt+skip!srpt")
    while not adapter.is_over:
        play(control, adapter, 20, every=30)
    play(control, adapter, 1)
    control.journal.close()
    return directory, adapter.cluster


def test_replay__makes_the_same_decisions(played):
    found = replay_journal(played[0])
    assert (found.difference, found.left_out) == ("", 0)
    assert found.decisions == found.cycles > 100


def test_replay__finds_a_changed_decision(played, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in played[0].glob("journal-*.sqlite"):
        source, target = sqlite3.connect(file), sqlite3.connect(copy / file.name)
        source.backup(target)
        source.close()
        target.close()
    changed = next(e.cycle for e in JournalReader(copy).entries() if e.cycle.decision)
    wrong = msgspec.structs.replace(changed, decision=())
    from berthline.deploy.journal.journal_records import packed_record

    with sqlite3.connect(copy / "journal-0001.sqlite") as file:
        file.execute(
            "UPDATE cycles SET cycle = ? WHERE number = ?", (packed_record(wrong), wrong.number)
        )
    assert replay_journal(copy).difference.startswith(f"cycle {wrong.number}: action 0")


def test_run__is_what_really_happened(played):
    directory, cluster = played
    run = journal_run(directory)
    names = run.workload.names.tolist()
    log = run.log
    told = [
        (round(float(log.time[row]), 6), int(log.kind[row]), names[log.job[row]])
        for row in range(len(log))
        if log.kind[row] in (START, RESUME, FINISH)
    ]
    real = [
        (round(time, 6), kind, cluster.jobs[job].id)
        for time, kind, job, _ in cluster.truth
        if kind in (START, FINISH)
    ]
    shown = {name for _, _, name in told}
    assert len(shown) >= 75  # a job that began and ended between two looks is not there
    told = [(time, START if kind == RESUME else kind, name) for time, kind, name in told]
    assert sorted(told) == sorted(one for one in real if one[2] in shown)
    assert (log.kind == PREEMPT).sum() == sum(kind == PREEMPT for _, kind, _, _ in cluster.truth)


def test_export__is_a_run_directory(played, tmp_path):
    result = export_journal(played[0], RunOutput(str(tmp_path / "run"), "test"))
    run = bl.open_run(tmp_path / "run")
    assert run.kind == "deploy"
    assert run.log.sha256() == result.log.sha256()
    assert run.cluster.total_gpus == CLUSTER.total_gpus
    decisions = pl.read_parquet(tmp_path / "run" / "decisions.parquet")
    assert set(decisions["decided"]) >= {"start", "preempt"}
    assert set(decisions["job"]) <= set(run.workload.names) | {"load"}
    with pytest.raises(ConfigError, match="not empty"):
        export_journal(played[0], RunOutput(str(tmp_path / "run"), "test"))


def test_anonymised_copy__has_no_names_and_replays(played, tmp_path):
    names = {job.user for entry in JournalReader(played[0]).entries() for job in entry.look.jobs}
    anonymise_journal(played[0], tmp_path / "copy")
    found = {
        job.user for entry in JournalReader(tmp_path / "copy").entries() for job in entry.look.jobs
    }
    assert len(found) == len(names)
    assert not found & names
    assert replay_journal(tmp_path / "copy").difference == ""
    with pytest.raises(ConfigError, match="exists"):
        anonymise_journal(played[0], tmp_path / "copy")


def test_reader__beside_the_writer(tmp_path):
    adapter = system(jobs((0, 500, 8), (50, 50, 8)))
    control = controller(adapter, tmp_path / "j", mode="shadow")
    for number in range(1, 5):
        play(control, adapter, 1)
        assert JournalReader(tmp_path / "j").last().number == number


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from tests.deploy.simulated_systems import *
adapter = system(generated(1, 50))
control = controller(adapter, {journal!r}, "sjf+easy")
while True:
    cycle = control.cycle()
    print(cycle.number, flush=True)
    adapter.wait(15)
"""


def test_kill_9__loses_no_cycle_that_was_written(tmp_path):
    journal = tmp_path / "j"
    code = KILLED.format(tests=str(Path.cwd()), journal=str(journal))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    told = 0
    for line in process.stdout:
        told = int(line)
        if told == 40:
            process.send_signal(signal.SIGKILL)
            break
    told = max([told, *map(int, process.stdout.read().split())])
    process.stdout.close()
    process.wait()
    numbers = [entry.cycle.number for entry in JournalReader(journal).entries()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= told
    assert replay_journal(journal).difference == ""


def test_other_system__is_refused(tmp_path):
    adapter = system(generated(1, 20))
    control = controller(adapter, tmp_path / "j")
    play(control, adapter, 1)
    control.journal.close()
    with pytest.raises(RefusedError, match="is about"):
        JournalWriter(tmp_path / "j", "another system")


def test_damaged_and_missing_journals__are_told(tmp_path):
    with pytest.raises(ConfigError, match="there is no journal"):
        JournalReader(tmp_path / "none")
    (tmp_path / "journal-0001.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(ConfigError, match="cannot be read"):
        JournalReader(tmp_path).start()


def look_of(number):
    """Return a look at 1,000 waiting jobs, of which a few change each time."""
    records = []
    for job in range(number, number + 1000):
        runs = job < number + 20
        records.append(
            JobRecord(
                id=str(job),
                submitted=10.0 * job,
                state=RUNNING if runs else WAITING,
                ours=True,
                gpus=4,
                estimate=3600.0 + job,
                user=f"user{job % 37}",
                name=f"training number {job}",
                started=10.0 * job + 5 if runs else None,
                nodes={f"node{job % 64}": 4} if runs else {},
                words="RUNNING" if runs else "PENDING",
                reason="" if runs else "Resources",
            )
        )
    nodes = [NodeRecord(name=f"node{n}", gpus=8, state=UP, gpus_in_use=n % 8) for n in range(64)]
    return Look(time=20_000.0 + 15.0 * number, jobs=tuple(records), nodes=tuple(nodes))


def test_size__of_a_day_with_a_thousand_jobs(tmp_path):
    """A job comes and one goes in every cycle of 15 s: 48 cycles, as a part of a day."""
    writer = JournalWriter(tmp_path, "test")
    writer.begin_part(
        PartStart(schema=1, system="test", origin=0.0, nodes=[], jobs=[], next_number=0, began=0.0)
    )
    cycles = 48
    sizes = []
    for number in range(1, cycles + 1):
        cycle = CycleRecord(number=number, time=0.0, wall=0.0, mode="shadow", scheduler="fcfs")
        writer.write_cycle(cycle, look_of(number))
        rows = writer._file.execute("SELECT sum(length(look) + length(cycle)) FROM cycles")
        sizes.append(rows.fetchone()[0])
    first, others = sizes[0], (sizes[-1] - sizes[0]) / (cycles - 1)
    of_a_day = 24 * first + 5760 * others  # a whole look each hour
    assert of_a_day < 75e6  # of 150 MB: the rest is for decisions, actions and pages
    writer.close()
    assert JournalReader(tmp_path).last_look() == look_of(cycles)


def test_parts__each_can_be_read_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("berthline.deploy.control.controller.PART_SECONDS", 1800.0)
    adapter = system(generated(1, 60))
    control = controller(adapter, tmp_path / "j", "sjf+easy")
    play(control, adapter, 300, every=30)
    reader = JournalReader(tmp_path / "j")
    assert len(reader.parts) > 3
    assert replay_journal(tmp_path / "j").difference == ""
    for part in reader.parts[:2]:  # moved away
        part.rename(tmp_path / part.name)
    found = replay_journal(tmp_path / "j")
    assert (found.difference, found.cycles < 300) == ("", True)
    control.journal.close()
    again = controller(adapter, tmp_path / "j", "sjf+easy")
    assert again.cycle().number == 301
