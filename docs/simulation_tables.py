"""The generated tables about what is simulated: workloads, clusters, and what a log may say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markdown_text import code, table

if TYPE_CHECKING:
    from collections.abc import Callable


def formats() -> str:
    """Return the formats that can be read, with their options."""
    from berthline.traces.formats.format_table import FORMATS

    def options(entry: Any) -> str:
        return "; ".join(f"{code(name)}: {text}" for name, text in entry.options.items())

    return table(
        ("format", "what it is", "options (`--set`)"),
        ((code(e.name), e.description, options(e)) for e in FORMATS.values()),
    )


def generators() -> str:
    """Return the generators, and the load they have by default."""
    from berthline.traces.generators.synthetic import GENERATORS

    def load(entry: Any) -> str:
        if entry.load is not None:
            return f"{entry.load:g}"
        return "its own rate" if entry.own_gap is not None else "none"

    return table(
        ("generator", "load", "what it makes"),
        ((code(e.name), load(e), e.description) for e in GENERATORS.values()),
    )


def dials() -> str:
    """Return every dial once, with the generators that have it and those with other defaults."""
    from berthline.traces.generators.synthetic import GENERATORS

    owners: dict[tuple[str, str], dict[str, str]] = {}
    for entry in GENERATORS.values():
        for dial in entry.dials:
            found = owners.setdefault((dial.name, dial.meaning), {})
            found[entry.name] = dial.default_text
    rows = []
    for (name, meaning), values in owners.items():
        usual = max(values.values(), key=list(values.values()).count)
        others = [f"{value} in {code(who)}" for who, value in values.items() if value != usual]
        missing = [who for who in GENERATORS if who not in values]
        if not missing:
            where = "all"
        elif len(missing) < len(values):
            where = "all but " + ", ".join(map(code, missing))
        else:
            where = ", ".join(map(code, values))
        rows.append((code(name), "; ".join([usual, *others]), meaning, where))
    return table(("`--set`", "default", "meaning", "of"), rows)


def presets() -> str:
    """Return the clusters that have a name."""
    from berthline.model.cluster_presets import PRESETS

    return table(
        ("preset", "nodes", "GPUs", "what it is", "source"),
        (
            (code(p.name), f"{p.num_nodes:,}", f"{p.total_gpus:,}", p.description, p.source)
            for p in PRESETS.values()
        ),
    )


def gpu_types() -> str:
    """Return the GPU types with their figures; the source of a guess says so."""
    from berthline.model.gpu_types import ALIASES, GPU_TYPES

    def name(kind: Any) -> str:
        spellings = [code(other) for other in ("V100", "A100") if ALIASES.get(other) == kind.name]
        return ", ".join([code(kind.name), *spellings])

    return table(
        (
            *("type", "speed", "TFLOPS", "single precision", "memory, MiB"),
            *("idle, W", "peak, W", "source"),
        ),
        (
            (
                name(kind),
                f"{kind.speed:.2f}",
                f"{kind.tflops:g}",
                "" if kind.tflops_fp32 is None else f"{kind.tflops_fp32:g}",
                f"{kind.memory_mib:,}",
                f"{kind.idle_w:g}",
                f"{kind.peak_w:g}",
                f"**guess**{kind.source.removeprefix('guess')}" if kind.is_guess else kind.source,
            )
            for kind in GPU_TYPES.values()
        ),
    )


def conditions() -> str:
    """Return the conditions of clusters."""
    from berthline.cli.policies.command import conditions as rows

    def default(value: float | str) -> str:
        return value if isinstance(value, str) else f"{value:g}"

    return table(
        ("condition", "default", "meaning"),
        ((code(row["name"]), default(row["default"]), row["meaning"]) for row in rows()),
    )


def preempt_reasons() -> str:
    """Return why a job may be preempted."""
    from berthline.model.schedule import PREEMPT_REASONS

    return table(("detail", "reason"), enumerate(PREEMPT_REASONS))


def fallback_reasons() -> str:
    """Return why best-fit may stand in for a plan."""
    from berthline.model.schedule import FALLBACK_REASONS

    return table(("detail", "reason"), enumerate(FALLBACK_REASONS))


def reject_reasons() -> str:
    """Return why a job may be rejected, in the order in which reasons are tried."""
    from berthline.model.schedule import REJECT_REASONS

    return table(("detail", "reason"), enumerate(REJECT_REASONS))


def reason_codes() -> str:
    """Return why a job may wait."""
    from berthline.sim.reasons.reason_codes import MEANINGS

    return table(
        ("code", "meaning"), ((code(reason.value), text) for reason, text in MEANINGS.items())
    )


PARTS: dict[str, Callable[[], str]] = {
    "formats": formats,
    "generators": generators,
    "dials": dials,
    "presets": presets,
    "GPU types": gpu_types,
    "conditions": conditions,
    "preempt reasons": preempt_reasons,
    "fallback reasons": fallback_reasons,
    "reject reasons": reject_reasons,
    "reason codes": reason_codes,
}
"""Each generated part and what makes it."""
