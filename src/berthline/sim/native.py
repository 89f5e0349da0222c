"""The native simulator: hands the inputs to the C++ core and wraps the log it returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline import _native
from berthline.model.schedule import Schedule
from berthline.sim.inputs import FIRST_PREDICTION, Inputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.policies.formulas import Formula


def run(inputs: Inputs, progress: Callable[[int], None] | None = None) -> Schedule:
    """Simulate the inputs and return the log.

    Args:
        inputs: the run.
        progress: called now and then with the number of jobs that have arrived.
    """
    workload, cluster, scheduler = inputs.workload, inputs.cluster, inputs.scheduler
    arrays = _native.run(
        submit=workload.submit,
        run_time=workload.run,
        estimate=inputs.estimate,
        gpus=workload.gpus,
        cpus=workload.cpus,
        memory_mib=workload.memory_mib,
        priority=workload.priority,
        deadline=workload.deadline,
        user=workload.user,
        job_class=inputs.job_class,
        random=inputs.random,
        node_gpus=cluster.gpus,
        node_cpus=cluster.cpus,
        node_memory_mib=cluster.memory_mib,
        may_use=inputs.may_use.view("u1"),
        class_reason=inputs.class_reason,
        order=_instructions(scheduler.order),
        order_changes=scheduler.order.changes,
        gate=_instructions(scheduler.gate) if scheduler.gate else [],
        gate_changes=scheduler.gate.changes if scheduler.gate else "never",
        discipline=scheduler.discipline,
        placement=scheduler.placement,
        predicted=inputs.knowledge == "predicted",
        first_prediction=FIRST_PREDICTION,
        max_priority=inputs.max_priority,
        placement_key=inputs.placement_key,
        horizon=inputs.horizon,
        progress=progress,
    )
    return Schedule(**arrays, horizon=inputs.horizon)


def _instructions(formula: Formula) -> list[tuple[str, str | float]]:
    return [(operation, operand) for operation, operand, _ in formula.bytecode()]
