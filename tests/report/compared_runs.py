"""Runs of `berthline compare` to report on, in directories of their own."""

from __future__ import annotations

from berthline.cli.main import main

SCHEDULERS = ("fcfs", "fcfs+easy", "sjf+easy", "sjf+easy@best-fit", "smallest-area+easy")
HOSTILE = '"><script>window.hacked=1</script><img src=x onerror=window.hacked=1>'


def compare(path, *more, workload="synthetic", schedulers=SCHEDULERS):
    code = main(
        ["compare", str(workload), "--schedulers", ",".join(schedulers), "--out", str(path), *more]
    )
    assert code == 0
    return path
