"""scipy instead of evaluate/statistics: differences, CPU time per call and import, and size.

For docs/decisions/0016-statistics-without-scipy.md. Run `python -m benchmarks.statistics_by_scipy`
where scipy is installed.
"""

from __future__ import annotations

import importlib.util
import resource
import statistics
import subprocess
import sys
import time
import timeit
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.evaluate.statistics.interval import score_table
from berthline.evaluate.statistics.multiple_comparisons import holm
from berthline.evaluate.statistics.paired import (
    _bootstrap_means,
    _draws,
    _p_value,
    _tail,
    log_ratios,
)
from berthline.evaluate.statistics.profiles import performance_profile
from berthline.evaluate.statistics.t_distribution import t_quantile, t_tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.evaluate.statistics.interval import Floats

DEGREES = (1, 2, 3, 5, 7, 9, 15, 19, 29, 39, 49, 99, 199, 1999)
"""Degrees of freedom of comparisons with 2 to 2,000 windows or blocks."""
RESAMPLES = 10_000
REPEATS = 7


def main() -> int:
    """Print the measurements."""
    if importlib.util.find_spec("scipy") is None:
        print("scipy is not installed: pip install scipy", file=sys.stderr)
        return 2
    sizes()
    imports()
    student()
    bootstrap()
    others()
    return 0


def sizes() -> None:
    """Print the size of an installation of scipy on disk."""
    spec = importlib.util.find_spec("scipy")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    folders = (package, package.parent / "scipy.libs")
    total = sum(file.stat().st_size for folder in folders for file in folder.rglob("*.*"))
    print(f"scipy on disk: {total / 1e6:.0f} MB")


def imports() -> None:
    """Print the CPU time of imports in new processes, in addition to Python with numpy."""
    base = _process("pass")
    for code in (
        "import berthline.evaluate.statistics.t_distribution",
        "import berthline.evaluate.compare.judge",
        "import scipy.special",
        "import scipy.stats",
        "import berthline.evaluate.compare.judge, scipy.stats",
    ):
        print(f"{code}: {1000 * (_process(code) - base):.0f} ms")


def _process(code: str) -> float:
    """Return the median CPU seconds of new processes."""
    command = [sys.executable, "-c", f"import numpy; {code}"]

    def run() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    run()  # the files are in memory from now on
    return statistics.median(run() for _ in range(REPEATS))


def student() -> None:
    """Print how tails and quantiles of Student's t differ, and the time of a call."""
    from scipy import special, stats

    points = [(t, n) for n in DEGREES for t in np.linspace(0, 40, 201)]
    ours = [t_tail(float(t), n) for t, n in points]
    theirs = [float(stats.t.sf(t, n)) for t, n in points]
    _differ("t tail", ours, theirs)
    shares = [(share, n) for n in DEGREES for share in np.linspace(0.5, 0.9999, 101)[1:]]
    found = [t_quantile(float(share), n) for share, n in shares]
    _differ("t quantile", found, [float(stats.t.ppf(share, n)) for share, n in shares])
    _times("t tail", lambda: t_tail(2.1, 19), lambda: stats.t.sf(2.1, 19))
    _times("t tail, scipy.special", lambda: t_tail(2.1, 19), lambda: special.stdtr(19, -2.1))
    _times("t quantile", lambda: t_quantile(0.975, 19), lambda: stats.t.ppf(0.975, 19))
    logs = _logs(20)
    _times("paired t test", lambda: _p_value(logs), lambda: stats.ttest_1samp(logs, 0).pvalue)


def bootstrap() -> None:
    """Print how bootstrap intervals with the same draws differ, and the time of one."""
    from scipy import stats

    ours: list[float] = []
    scipys: list[float] = []
    for windows in (2, 8, 20, 30, 100):
        for seed in range(5):
            logs = _logs(windows, seed)
            ours += _our_interval(logs, seed)
            scipys += _their_interval(stats, logs, seed)
    _differ("bootstrap interval", ours, scipys)
    for windows in (8, 30, 100):
        logs = _logs(windows)
        theirs = partial(_their_interval, stats, logs, 0)
        # The draws are the same for all schedulers and metrics of a comparison, and are kept.
        name = f"bootstrap interval of {windows} windows"
        _times(f"{name}, draws kept", partial(_our_interval, logs, 0), theirs, number=5)
        _times(f"{name}, drawn again", partial(_drawn_again, logs), theirs, number=5)


def _our_interval(logs: Floats, seed: int) -> list[float]:
    tail = _tail(len(logs))
    return np.quantile(_bootstrap_means(logs, seed, RESAMPLES), (tail, 1 - tail)).tolist()


def _drawn_again(logs: Floats) -> list[float]:
    _draws.cache_clear()
    return _our_interval(logs, 0)


def _their_interval(stats: Any, logs: Floats, seed: int) -> list[float]:
    found = stats.bootstrap(
        (logs,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=RESAMPLES,
        confidence_level=1 - 2 * _tail(len(logs)),
        method="percentile",
        rng=np.random.Generator(np.random.Philox(seed)),
    )
    return list(found.confidence_interval)


def others() -> None:
    """Print the time of Holm's procedure and performance profiles, which scipy does not have."""
    from scipy import stats

    names = [name for name in dir(stats) if "holm" in name.lower() or "profile" in name.lower()]
    print(f"scipy.stats names with holm or profile: {names or 'none'}")
    p_values = np.random.default_rng(0).random(20).tolist()
    print(f"Holm of 20: {_micro(lambda: holm(p_values)):.1f} us")
    scores = score_table(np.random.default_rng(0).random(30))
    at = np.linspace(0, 1, 50)
    own = _micro(lambda: performance_profile(scores, at), 3)
    print(f"profile of 30 windows, 2,000 resamples: {own:.0f} us")
    print(f"the same by ecdf, without a band: {_micro(lambda: stats.ecdf(scores[0])):.0f} us")


def _logs(windows: int, seed: int = 0) -> Floats:
    random = np.random.default_rng((windows, seed))
    values, baseline = random.lognormal(0, 0.3, windows), random.lognormal(0.05, 0.3, windows)
    found = log_ratios(values, baseline)
    assert found is not None
    return found


def _differ(name: str, ours: list[float], theirs: list[float]) -> None:
    a, b = np.array(ours), np.array(theirs)
    relative = np.abs(a - b) / np.maximum(np.abs(b), 1e-300)
    print(
        f"{name}: {np.count_nonzero(a != b)} of {a.size} differ, at most {relative.max():.1e} "
        "relative"
    )


def _times(
    name: str, ours: Callable[[], object], theirs: Callable[[], object], number: int = 200
) -> None:
    print(
        f"{name}: {_micro(ours, number):.0f} us by hand, {_micro(theirs, number):.0f} us by scipy"
    )


def _micro(call: Callable[[], object], number: int = 200) -> float:
    call()
    return (
        1e6
        * min(timeit.repeat(call, timer=time.process_time, repeat=REPEATS, number=number))
        / number
    )


if __name__ == "__main__":
    sys.exit(main())
