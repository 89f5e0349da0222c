"""Anonymised workloads: names gone, structure kept, codes stable and keyed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from berthline.errors import ConfigError
from berthline.model.workload import Workload
from berthline.traces.anonymize import anonymize
from berthline.traces.formats.parquet import write_parquet

KEY = "correct horse battery"
WEEK = 7 * 86_400


def workload(users=("ann", "bob", "unknown"), order=(0, 1, 0, 2)):
    return Workload.from_columns(
        submit=[0, 1, 2, 3],
        run=[5, 6, 7, 8],
        gpus=[1, 2, 4, 8],
        estimate=[9, np.nan, 9, 9],
        priority=[0, 1, 2, 3],
        user=list(order),
        user_names=users,
        pool=[0, -1, 1, 0],
        pool_names=("ann", "team-secret"),
        gpu_types=[0, -1, 0, 0],
        gpu_type_sets=("A100",),
        names=["job_of_ann", "b", "c", "d"],
        name="acme-cluster",
        provenance={
            "format": "csv",
            "path": "acme-cluster.csv",
            "rows": 5,
            "used": 4,
            "dropped": {"no GPUs": 1},
            "origin_unix_time": 1_700_000_000.0,
            "time_zone": "Europe/Berlin",
            "source": {"computer": "acme"},
        },
    )


def users_of(jobs):
    return [jobs.user_names[code] for code in jobs.user]


def test_no_name_is_left_anywhere(tmp_path):
    hidden = anonymize(workload(), key=KEY)
    content = write_parquet(hidden, tmp_path / "x.parquet").read_bytes()
    for secret in (b"ann", b"bob", b"team", b"acme", b"Berlin", b"1700000000", KEY.encode()):
        assert secret not in content
    assert hidden.provenance["origin_unix_time"] is None
    assert hidden.provenance["dropped"] == {"no GPUs": 1}
    assert json.dumps(dict(hidden.provenance))


def test_what_schedulers_see_is_kept():
    plain, hidden = workload(), anonymize(workload(), key=KEY)
    for name in ("submit", "run", "gpus", "estimate", "priority", "deadline", "gpu_types"):
        np.testing.assert_array_equal(getattr(hidden, name), getattr(plain, name))
    assert hidden.gpu_type_sets == plain.gpu_type_sets
    first, second, third, fourth = users_of(hidden)
    assert first == third != second
    assert fourth == "unknown"
    assert hidden.pool[1] == -1
    assert hidden.pool[0] == hidden.pool[3] != hidden.pool[2]
    assert len(set(hidden.names.tolist())) == 4
    assert "run times" in hidden.provenance["anonymized"]["kept"]


def test_codes_depend_on_key_salt_and_name_alone():
    one = anonymize(workload(), key=KEY)
    reordered = workload(users=("bob", "unknown", "zoe", "ann"), order=(3, 0, 3, 1))
    assert users_of(anonymize(reordered, key=KEY)) == users_of(one)
    for other in (
        anonymize(workload(), key=KEY + "!"),
        anonymize(workload(), key=KEY, salt="2024"),
        anonymize(workload()),
    ):
        assert not {*users_of(one)} & {*users_of(other)} - {"unknown"}
    assert users_of(anonymize(workload())) != users_of(anonymize(workload()))


def test_a_user_and_a_pool_of_the_same_name_have_different_codes():
    hidden = anonymize(workload(), key=KEY)
    user, pool = users_of(hidden)[0], hidden.pool_names[hidden.pool[0]]
    assert user.removeprefix("user-") != pool.removeprefix("pool-")


def test_the_clock_can_be_kept_shifted_by_weeks_or_dropped():
    origins = {
        clock: anonymize(workload(), key=KEY, clock=clock).provenance["origin_unix_time"]
        for clock in ("keep", "shift", "drop")
    }
    assert origins["keep"] == 1_700_000_000
    assert origins["drop"] is None
    shift = 1_700_000_000 - origins["shift"]
    assert shift > 0
    assert shift % WEEK == 0
    again = anonymize(workload(), key=KEY, clock="shift").provenance
    assert again["origin_unix_time"] == origins["shift"]
    assert again["time_zone"] == "Europe/Berlin"


def test_a_workload_without_names_pools_or_origin():
    plain = Workload.from_columns(submit=[0], run=[1], gpus=[1])
    hidden = anonymize(plain, key=KEY, clock="shift")
    assert hidden.names is None
    assert hidden.pool_names == ()
    assert hidden.provenance["origin_unix_time"] is None


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ConfigError, match="5 characters"):
        anonymize(workload(), key="short")
    with pytest.raises(ConfigError, match="clock 'later'"):
        anonymize(workload(), clock="later")
