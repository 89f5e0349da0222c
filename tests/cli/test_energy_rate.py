"""`--energy-rate`: prices and carbon in `sim` and `compare`."""

import pytest

SIM = ("sim", "synthetic", "--jobs", "100", "--scheduler", "sjf+easy")
COMPARE = ("compare", "synthetic", "--jobs", "60", "--schedulers", "fcfs,sjf+easy")


@pytest.fixture
def rate(tmp_path):
    """Return a function that writes a rate file of (time, value) rows."""

    def write(*rows, name="rate.csv"):
        path = tmp_path / name
        path.write_text("time,value\n" + "".join(f"{time},{value}\n" for time, value in rows))
        return str(path)

    return write


def test_a_constant_rate_is_a_factor_on_the_energy(run, rate):
    plain = run(*SIM, "--json").json
    found = run(*SIM, "--energy-rate", rate((0, 0.25)), "--json").json
    assert found.keys() - plain.keys() == {"energy_cost"}
    assert found["energy_cost"] == pytest.approx(0.25 * plain["energy_kwh"])


def test_a_period_repeats_the_rate(run, rate):
    """An hour at 1, an hour at 0: in all hours it is about half of the energy, not the first."""
    steps = rate((0, 1), (3600, 0))
    energy = run(*SIM, "--json").json["energy_kwh"]
    once = run(*SIM, "--energy-rate", steps, "--json").json["energy_cost"]
    again = run(*SIM, "--energy-rate", steps, "--energy-period", "7200", "--json").json
    assert once < 0.2 * energy
    assert 0.35 * energy < again["energy_cost"] < 0.65 * energy


def test_the_cost_is_printed(run, rate):
    out = run(*SIM, "--energy-rate", rate((0, 0.25))).out
    assert "for energy, at the rates given" in out
    assert "--energy-rate" in out.split("again")[1]


def test_compare_has_the_cost_of_every_scheduler(run, rate):
    path = rate((0, 2.0))
    found = run(*COMPARE, "--windows", "2", "--energy-rate", path, "--json").json["schedulers"]
    for each in found:
        assert each["energy_cost"] == pytest.approx(2 * each["metrics"]["energy_kwh"])
    assert "cost" in run(*COMPARE, "--energy-rate", path).out
    plain = run(*COMPARE, "--json").json["schedulers"]
    assert not any("energy_cost" in each for each in plain)


def test_compare__windows_of_a_trace_keep_their_time_in_the_rate(run, rate, trace):
    """All energy is free until the second window begins, at 20 s."""
    options = ("--cluster", "uniform:1x8", "--schedulers", "fcfs", "--windows", "2", "--json")
    free = rate((0, 0), (20, 1))
    flat = rate((0, 1), name="flat.csv")
    found, dear = (
        run("compare", str(trace), *options, "--energy-rate", path).json["schedulers"][0]
        for path in (free, flat)
    )
    assert 0 < found["energy_cost"] < dear["energy_cost"]


def test_unix_times_need_a_trace_with_a_date(run, rate):
    outcome = run(*SIM, "--energy-rate", rate((1.6e9, 1.0)))
    assert outcome.code == 2
    assert "Unix times" in outcome.err
    assert "hint: subtract" in outcome.err


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(0, 1), (0, 2)], "line 3"),
        ([(0, "dear")], "value is 'dear'"),
        ([(50, 1)], "begins at 50"),
        ([], "no step"),
    ],
)
def test_bad_files_are_named(run, rate, rows, words):
    outcome = run(*SIM, "--energy-rate", rate(*rows))
    assert outcome.code == 2
    assert words in outcome.err
    assert "rate.csv" in outcome.err


def test_a_late_begin_hints_at_the_period(run, rate):
    assert "--energy-period" in run(*SIM, "--energy-rate", rate((50, 1))).err
    assert run(*SIM, "--energy-rate", rate((50, 1)), "--energy-period", "100").code == 0


def test_missing_file_and_lone_period(run):
    outcome = run(*SIM, "--energy-rate", "nowhere.csv")
    assert (outcome.code, "is not a file: nowhere.csv" in outcome.err) == (2, True)
    outcome = run(*SIM, "--energy-period", "5")
    assert (outcome.code, "without --energy-rate" in outcome.err) == (2, True)
