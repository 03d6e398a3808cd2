"""`seatrial import`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from seatrial.cli.output import message, print_json, style_of
from seatrial.cli.sources import parse_dumps
from seatrial.engine.importing import Given, Repeat, ResultFile
from seatrial.errors import UsageError
from seatrial.imports.readers import readers
from seatrial.interface.import_ import import_results, result_file
from seatrial.interface.machines import machine_of
from seatrial.model.parameter import UNKNOWN
from seatrial.model.spelling import count
from seatrial.model.units import parse_quantity
from seatrial.plan.points import parse_settings
from seatrial.report.documents.results import results_document
from seatrial.report.text.results import results_text

_MOST_NAMED = 10
_PEAKS = {"peak_flops": "flop/s", "peak_Bps": "B/s"}


def import_command(
    files: Sequence[str],
    results: Path,
    *,
    dumps: Sequence[str] = (),
    live: bool = False,
    settings: Sequence[str] = (),
    quiet: bool = False,
    as_json: bool,
) -> int:
    """Import and print; the exit status of CONTRACT. Raises UsageError before anything is written."""
    chosen = _settings(settings)
    peaks = {name: _peak(name, chosen.pop(name)) for name in _PEAKS if name in chosen}
    read = [_file(text) for text in files]
    machine = machine_of(parse_dumps(dumps), live=live) if dumps or live else None
    found = import_results(read, Given(machine, chosen, peaks.get("peak_flops"), peaks.get("peak_Bps")), results)
    if not found.repeats:
        message("nothing was imported: the files contain no result")
    if as_json:
        print_json(results_document(found.experiments, found.environments))
    elif found.repeats:
        print(results_text(found.experiments, style_of(sys.stdout)))
        if not quiet:
            message(f"records: {results}; the page: seatrial report {results} -o FILE.html")
    _report(found.repeats)
    if found.left_out:
        left_out = count(len(found.left_out), "file")
        message(f"{left_out} not counted again (imported before, or named twice): {_names(found.left_out)}")
    return 0 if found.is_ok else 3


def _report(repeats: Sequence[Repeat]) -> None:
    """Report which files are invalid, what of them no figure shows, and which parameters they do not state."""
    for repeat in repeats:
        if not repeat.outcome.is_ok:
            message(f"{repeat.file}: {repeat.experiment.benchmark} is {repeat.outcome.state}: {repeat.outcome.reason}")
        for remark in repeat.remarks:
            message(f"{repeat.file}: {repeat.experiment.benchmark}: {remark}")
    for experiment, names in {r.experiment.benchmark: (r.experiment, r.missing) for r in repeats if r.missing}.values():
        taken = "unknown" if UNKNOWN in experiment.parameters.values() else "the defaults are taken"
        message(f"{experiment.benchmark}: the files do not state {', '.join(names)}: {taken} (--set states them)")


def _names(files: Sequence[str]) -> str:
    more = f" and {len(files) - _MOST_NAMED} more" if len(files) > _MOST_NAMED else ""
    return ", ".join(files[:_MOST_NAMED]) + more


def _settings(options: Sequence[str]) -> dict[str, str]:
    settings = parse_settings(options)
    several = next((name for name, values in settings.items() if len(values) > 1), None)
    if several is not None:
        raise UsageError(
            f"--set gives {several} {len(settings[several])} values, but a result file has one",
            "import files with different values in separate commands",
        )
    return {name: values[0] for name, values in settings.items()}


def _peak(name: str, text: str) -> float:
    """A peak in SI units, from a number with or without its unit (118Gflop/s)."""
    quantity = parse_quantity(text)
    if quantity.unit not in ("1", _PEAKS[name]) or "%" in text or not 0 < quantity.value < float("inf"):
        raise UsageError(f"{name} cannot be {text!r}", f"write a number above 0 in {_PEAKS[name]}, such as 1.18e11")
    return quantity.value


def _file(text: str) -> ResultFile:
    """The file that `KIND=FILE` names, read; FILE may be "-" for standard input."""
    kind, equals, name = text.partition("=")
    if not equals or not name:
        raise UsageError(
            f"{text!r} is not of the form KIND=FILE",
            f"for example: seatrial import stream=stream.txt; the kinds are {', '.join(readers())}",
        )
    return result_file(kind, name)
