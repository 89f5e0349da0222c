"""`berthline doctor`: what is installed, what is missing, and whether it works."""

from __future__ import annotations

import importlib
import importlib.util
import platform
import re
import sys
from importlib import metadata
from typing import Final, Literal

import msgspec

from berthline.cli.machine import cpu_count, cpu_features
from berthline.cli.options import Json, parse_options
from berthline.cli.output import new_table, print_json, print_table
from berthline.errors import BerthlineError
from berthline.package_version import NOT_INSTALLED, package_version

State = Literal["ok", "missing", "broken"]
OK: Final = "ok"
MISSING: Final = "missing"
BROKEN: Final = "broken"

SELF_CHECK = ("fcfs+easy", "sjf+skip@best-fit", "wfp3+conservative@scatter")


class Doctor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Check the installation: versions, native core, optional parts, and a small run.

    Exit code 1: something is broken. Missing optional parts are not an error.

    Examples:
      berthline doctor
      berthline doctor --json > report.json
    """

    json: Json = False


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was checked.

    Attributes:
        name: what was checked.
        state: ok, missing (optional, and not installed) or broken.
        detail: a version, or what was found.
        fix: the command that fixes it.
    """

    name: str
    state: State
    detail: str
    fix: str = ""


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Doctor, argv, verb="doctor")
    findings = [*examine_platform(), *examine_packages(), *examine_core(), *examine_extras()]
    broken = [finding for finding in findings if finding.state == BROKEN]
    if options.json:
        print_json({"ok": not broken, "findings": findings})
    else:
        table = new_table("what")
        for column in ("state", "found"):
            table.add_column(column, overflow="fold")
        for finding in findings:
            fix = f"\n{finding.fix}" if finding.fix else ""
            table.add_row(finding.name, finding.state, finding.detail + fix)
        print_table(table)
        verdict = f"{len(broken)} broken: " + ", ".join(finding.name for finding in broken)
        print(f"\n{verdict}" if broken else "\neverything works; missing parts are optional")
    return 1 if broken else 0


def examine_platform() -> list[Checked]:
    """Check Python, the machine and the package itself."""
    supported = sys.version_info >= (3, 11)
    features = cpu_features()
    return [
        Checked(name="berthline", state=OK, detail=package_version()),
        Checked(
            name="Python",
            state=OK if supported else BROKEN,
            detail=f"{platform.python_version()} on {platform.platform()}",
            fix="" if supported else "install Python 3.11 or newer",
        ),
        Checked(name="CPU", state=OK, detail=f"{cpu_count()}; {' '.join(features) or 'unknown'}"),
    ]


def examine_packages() -> list[Checked]:
    """Check the packages that Berthline requires."""
    return [_package(name) for name in requirements().get("", CORE_PACKAGES)]


CORE_PACKAGES = ["gymnasium", "msgspec", "numpy", "polars", "rich", "tyro"]
"""The packages to check when the metadata of Berthline cannot be read."""


def requirements() -> dict[str, list[str]]:
    """Return the packages that each extra needs; the key "" has those always needed."""
    try:
        lines = metadata.requires("berthline") or []
    except metadata.PackageNotFoundError:
        return {}
    found: dict[str, list[str]] = {}
    for line in lines:
        name = re.match(r"[A-Za-z0-9._-]+", line)
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", line)
        if name and name[0] != "berthline":
            found.setdefault(extra[1] if extra else "", []).append(name[0])
    return found


def _package(name: str) -> Checked:
    """Import a package: an installed package may still fail to load."""
    try:
        importlib.import_module(name)
        return Checked(name=name, state=OK, detail=metadata.version(name))
    except Exception as error:
        return Checked(
            name=name,
            state=BROKEN,
            detail=f"{type(error).__name__}: {error}",
            fix=f"pip install --force-reinstall {name}",
        )


def examine_core() -> list[Checked]:
    """Check the native core, and make the same small runs with both simulators."""
    try:
        native = importlib.import_module("berthline._native")
    except ImportError as error:
        return [
            Checked(
                name="native core",
                state=BROKEN,
                detail=f"not built: {error}",
                fix="pip install --force-reinstall berthline",
            )
        ]
    built_for, package = native.version(), package_version()
    stale = built_for != package and package != NOT_INSTALLED
    core = Checked(
        name="native core",
        state=BROKEN if stale else OK,
        detail=f"{built_for}, compiler {getattr(native, 'compiler', 'unknown')}"
        + (f"; the package is {package}" if stale else ""),
        fix="pip install --force-reinstall berthline" if stale else "",
    )
    return [core, *_check_runs("self-check")]


def _check_runs(name: str) -> list[Checked]:
    from berthline.model.cluster import Cluster
    from berthline.sim.simulate import simulate
    from berthline.traces.generators.synthetic import generate

    cluster = Cluster.uniform(nodes=4, gpus_per_node=8)
    try:
        workload = generate(cluster=cluster, jobs=200, load=1.0, seed=1, estimate_error=0.5)
        for scheduler in SELF_CHECK:
            native = simulate(workload, cluster, scheduler)
            completed = native.metrics().jobs.completed
            if completed != len(workload):
                detail = f"{scheduler}: {completed} of {len(workload)} jobs completed"
                return [Checked(name=name, state=BROKEN, detail=detail)]
            expected = simulate(workload, cluster, scheduler, simulator="reference")
            if native.log.sha256() != expected.log.sha256():
                detail = f"{scheduler}: native and reference simulator disagree"
                return [Checked(name=name, state=BROKEN, detail=detail)]
    except Exception as error:
        detail = str(error) if isinstance(error, BerthlineError) else repr(error)
        return [Checked(name=name, state=BROKEN, detail=f"the run failed: {detail}")]
    runs = f"{len(SELF_CHECK)} runs of {len(workload)} jobs"
    return [Checked(name=name, state=OK, detail=f"{runs}: both simulators agree")]


def examine_extras() -> list[Checked]:
    """Check the optional parts."""
    findings = []
    for extra, packages in sorted(requirements().items()):
        if extra in ("", "all"):
            continue
        present, absent = [], []
        for package in packages:
            try:
                present.append(f"{package} {metadata.version(package)}")
            except metadata.PackageNotFoundError:
                absent.append(package)
        findings.append(
            Checked(
                name=f"extra {extra}",
                state=MISSING if absent else OK,
                detail=f"without {', '.join(absent)}" if absent else ", ".join(present),
                fix=f"pip install 'berthline[{extra}]'" if absent else "",
            )
        )
    return [*findings, *_torch_threads()]


def _torch_threads() -> list[Checked]:
    if not importlib.util.find_spec("torch"):
        return []
    try:
        torch = importlib.import_module("torch")
        detail = f"{torch.get_num_threads()}; Berthline uses 1 by default"
    except Exception as error:
        return [Checked(name="torch", state=BROKEN, detail=repr(error), fix="reinstall torch")]
    return [Checked(name="torch threads", state=OK, detail=detail)]
