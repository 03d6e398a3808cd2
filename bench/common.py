"""Code shared by the benchmark scripts: running one of our programs, provenance, results as JSON."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from one_point import measure_point, prepare_point

from seatrial import __version__
from seatrial.engine.ready import Ready
from seatrial.environments.chosen import native_environment
from seatrial.machine.live import discover_live
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.plan.points import Setting


def ready(machine: Machine, benchmark: str, **settings: Setting) -> Ready:
    """One point of a benchmark, built; ends the script where it cannot run here."""
    item = prepare_point(benchmark, machine, settings)
    if not isinstance(item, Ready):
        raise SystemExit(f"{benchmark} cannot run here: {item.outcome.reason}")
    return item


def measure(item: Ready, machine: Machine, sample_s: float | None = None) -> RepeatRecord:
    """One repeat of a point, judged; ends the script where it is not ok. See `measure_point`."""
    record = measure_point(item, machine, sample_s=sample_s)
    if not record.outcome.is_ok:
        raise SystemExit(f"{item.point.benchmark.name}: {record.outcome.state}: {record.outcome.reason}")
    return record


def provenance(machine: Machine, item: Ready) -> dict[str, Any]:
    """Date, machine, compiler and flags of a result."""
    environment = native_environment(machine).document()
    return {
        **machine_provenance(machine),
        "compiler": environment["compiler"]["version"],
        "flags": environment["flags"],
    }


def machine_provenance(machine: Machine) -> dict[str, Any]:
    """Date and machine of a result."""
    package = machine.of_kind(DeviceKind.PACKAGE)[0].facts
    return {
        "date": today(),
        "seatrial": __version__,
        "commit": _commit(),
        "cpu": f"{package.text('model_name')}, {package.text('microarchitecture') or 'microarchitecture unknown'}",
        "cpus": len(machine.allowed_cpus),
        "hypervisor": machine.facts.text("hypervisor"),
        "kernel": platform.release(),
        "load_before": os.getloadavg()[0],
    }


def today() -> str:
    """The current date and time in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def rival_provenance(program: Path) -> dict[str, str]:
    """Compiler and flags of a rival's program, if recorded in the binary (GCC: -frecord-gcc-switches)."""
    return {
        "path": program.name,
        "compiler": _section(program, ".comment") or "not recorded in the binary",
        "flags": _section(program, ".GCC.command.line") or "not recorded in the binary",
    }


def write(name: str, document: Mapping[str, Any], output: Path | None) -> None:
    """Print a result, and write it to `output` if given."""
    text = json.dumps({"benchmark": name, **document}, indent=1)
    print(text)
    if output is not None:
        output.write_text(text + "\n", encoding="utf-8")


def output_of(command: Sequence[str], **variables: str) -> str:
    """Stdout of a rival."""
    return subprocess.run(
        list(command), check=True, capture_output=True, text=True, env={**os.environ, **variables}
    ).stdout


def live_machine() -> Machine:
    """The machine that the script runs on."""
    return discover_live()


def _commit() -> str:
    done = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


def _section(program: Path, name: str) -> str:
    done = subprocess.run(["readelf", "-p", name, str(program)], capture_output=True, text=True)
    return " ".join(re.findall(r"^\s+\[\s*[0-9a-f]+\]\s+(.*)$", done.stdout, re.MULTILINE))
