"""Evaluation: what schedule logs say about schedulers.

- `metrics/`: metrics of one run, each a function of the log and the workload
- `statistics/`: intervals, tests and power for paired results
- `compare/`: several schedulers on the same jobs, on one machine's processes
- `explain/`: why a job waited, and when it will start
- `whatif/`: what other schedulers would have done to a log
- `trace_checks/`: contents and problems of a trace; how close a generated workload is to it
- `bounds.py`, `optimum.py`: bounds that no scheduler can beat

The package can be called: `berthline.evaluate(...)` is `compare.evaluate.evaluate`. A function
`evaluate` in `berthline` would be hidden as soon as a module of this package is imported, because
the import binds the package to the same name.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import inspect

    from berthline.evaluate.compare.evaluate import EvaluationResult


class _CallablePackage(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> EvaluationResult:
        from berthline.evaluate.compare.evaluate import evaluate

        return evaluate(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        import inspect

        from berthline.evaluate.compare.evaluate import evaluate

        return inspect.signature(evaluate)


sys.modules[__name__].__class__ = _CallablePackage
