"""`berthline export`: write a run for other tools, or a learned policy for deployment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from berthline.cli.options import Json, check_choice, command_line, parse_options
from berthline.cli.output import (
    counted,
    note_dropped_rows,
    print_facts,
    print_json,
    progress,
    trace_facts,
)
from berthline.cli.run_source import RunName, RunOptions, is_run_directory, read_result
from berthline.cli.traces.file import Replace, check_out
from berthline.cli.traces.list_known import size
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from berthline.sim.simulate import Result

WHAT: dict[str, tuple[str, ...]] = {
    "perfetto": (".json", ".json.gz"),
    "chrome": (".json", ".json.gz"),
    "batsim": (),
    "swf": (".swf",),
    "onnx": (".onnx",),
}
"""What can be written, and the suffixes of such files; none = a directory."""


class Export(RunOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Write a run for Perfetto (a zoomable picture), for Batsim, or as SWF with waits.

    Or write a learned policy as ONNX: a scheduler that does not need torch.

    Examples:
      berthline export perfetto synthetic --scheduler sjf+easy --out trace.json.gz
      berthline export swf synthetic --jobs 200 --out schedule.swf
      berthline export batsim trace.swf --cluster uniform:2x8 --out batsim
      berthline export onnx runs/ppo
    """

    what: Annotated[Positional[str], arg(metavar="WHAT")]
    """perfetto or chrome (the same: open it at ui.perfetto.dev), batsim, swf, or onnx."""
    workload: RunName
    out: Annotated[
        str | None,
        arg(metavar="FILE", help_behavior_hint="(required; for onnx: policy.onnx)"),
    ] = None
    """The file to write: .json or .json.gz, .swf, .onnx; for batsim a directory. A manifest is
    written beside .onnx; without --out both go into the run directory."""
    force: Replace = False
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Export, argv, verb="export")
    check_choice("WHAT", options.what, WHAT)
    if options.what == "onnx":
        return _export_onnx(options)
    if options.out is None:
        raise ConfigError("--out is missing", expected="the file or directory to write")
    suffixes = WHAT[options.what]
    if suffixes:
        out = check_out(options.out, suffixes=suffixes, force=options.force)
    else:
        out = _check_directory(options.out, force=options.force)
    result = read_result(options.workload, options)
    with progress("writing") as report:
        written = _write(
            options.what,
            result,
            out,
            lambda done, of: report(done, of, counted(done, "event")),
        )
    files = [out] if suffixes else sorted(out.iterdir())
    written |= {"out": str(out), "bytes": sum(file.stat().st_size for file in files)}
    if options.json:
        note_dropped_rows(result.workload)
        print_json({"what": options.what, "scheduler": str(result.scheduler), **written})
        return 0
    losses = [f"{what}, {counted(count, 'job')}" for what, count in written["lost"].items()]
    print_facts(
        {
            "run": f"{result.scheduler}, {counted(len(result.workload), 'job')} of "
            f"{result.workload.name} on {result.cluster.name}",
            **trace_facts(result.workload),
            "written": f"{out}, {size(written['bytes'])}"
            + (f", {counted(written['events'], 'event')}" if "events" in written else ""),
            "lost": losses[0] if losses else "nothing" if options.what != "perfetto" else "",
            **{" " * (n + 1): text for n, text in enumerate(losses[1:])},
            "next": _next(options.what, out),
            "again": command_line("export", options, briefly=is_run_directory(options.workload))
            + f" --out {options.out}",
        }
    )
    return 0


def _export_onnx(options: Export) -> int:
    from berthline.deploy.export_onnx import export_onnx
    from berthline.policies.learned import Learned, manifest_of

    learned = Learned.find(options.workload)
    if learned is None:
        raise ConfigError(
            "RUN is not a learned policy",
            where=options.workload,
            expected="a run directory of berthline train, or a checkpoint",
        )
    own = str(Path(options.workload.partition("#")[0]) / "policy.onnx")
    out = check_out(options.out or own, suffixes=WHAT["onnx"], force=options.force)
    manifest = export_onnx(learned, out)
    checked = manifest["checked"]
    if options.json:
        print_json({"what": "onnx", "out": str(out), "bytes": out.stat().st_size, **manifest})
        return 0
    layout = manifest["layout"]
    print_facts(
        {
            "policy": f"{learned.name}, {manifest['algorithm']} for the seat {learned.seat}",
            "network": f"{manifest['config']['network']['kind']}, "
            f"{counted(manifest['input']['shape'][1], 'number')} in, "
            f"{counted(layout['actions'], 'action')} out",
            "checked": f"against torch on {counted(checked['states'], 'random state')}: scores "
            f"differ by at most {checked['largest_difference']:.2g}",
            "written": f"{out}, {size(out.stat().st_size)}, and {manifest_of(out)}",
            "next": f"berthline sim WORKLOAD --scheduler {out}",
        }
    )
    return 0


def _write(what: str, result: Result, out: Path, report: Any) -> dict[str, Any]:
    if what in ("perfetto", "chrome"):
        from berthline.report.exports.perfetto import write_perfetto

        return {"events": write_perfetto(result, out, progress=report), "lost": {}}
    if what == "swf":
        from berthline.evaluate.metrics.job_table import job_table
        from berthline.traces.formats.swf_writer import write_swf

        lost = write_swf(
            result.workload,
            out,
            max_procs=result.cluster.total_gpus,
            start=job_table(result.log, result.workload).start,
            note=f"waits under {result.scheduler} on {result.cluster.name}",
        )
        return {"lost": lost}
    from berthline.report.exports.batsim import write_batsim

    out.mkdir(exist_ok=True)
    return {"lost": write_batsim(result, out)}


def _check_directory(text: str, *, force: bool) -> Path:
    """Return the directory to write Batsim's files into.

    Raises:
        ConfigError: the path exists and must not be replaced, or its parent does not exist.
    """
    from berthline.report.exports.batsim import FILES

    path = Path(text)
    if path.exists() and not path.is_dir():
        raise ConfigError("--out is a file", where=text, expected="a directory, for batsim")
    present = sorted(entry.name for entry in path.iterdir()) if path.exists() else []
    foreign = [name for name in present if name not in FILES]
    if foreign or (present and not force):
        raise ConfigError(
            f"--out holds {(foreign or present)[0]!r}",
            where=text,
            expected="a new or an empty directory",
            hint="" if foreign else "replace an earlier export with --force",
        )
    if not path.parent.is_dir():
        raise ConfigError(
            "the directory of --out does not exist", where=text, hint=f"mkdir -p {path.parent}"
        )
    return path


def _next(what: str, out: Path) -> str:
    if what in ("perfetto", "chrome"):
        return "open https://ui.perfetto.dev and drop the file there; nothing is uploaded"
    if what == "swf":
        return f"berthline sim {out} --cluster CLUSTER"
    return f"batsim -p {out}/platform.xml -w {out}/workload.json, with a scheduler"
