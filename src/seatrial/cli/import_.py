"""`seatrial import`."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from seatrial.analysis.results import Asked, results_of
from seatrial.applications.readers import reader_of, readers
from seatrial.applications.reading.text import MAX_BYTES
from seatrial.cli.command import command
from seatrial.cli.output import RESULTS, FromOption, Output, ResultsOption, SetOption, message
from seatrial.cli.sources import parse_dumps
from seatrial.engine.import_recording import record_repeats
from seatrial.engine.importing import Given, ImportedRepeat, ResultFile, read_repeats
from seatrial.errors import UsageError
from seatrial.interface.machines import machine_of
from seatrial.model.benchmark.parameter import UNKNOWN
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.sample import State
from seatrial.model.spelling import count
from seatrial.model.units import parse_quantity
from seatrial.plan.files import STDIN, read_output
from seatrial.plan.points import parse_settings
from seatrial.report.blocks import Detail
from seatrial.report.documents.results import results_document
from seatrial.report.text.results import results_text
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

_log = logging.getLogger(__name__)
_MOST_NAMED = 10
_RUNS = "runs"
_PEAKS = {"peak_flops": "flop/s", "peak_Bps": "B/s"}


class ImportResult(Frozen):
    """The repeats in the files, and the experiments that they belong to."""

    repeats: tuple[ImportedRepeat, ...]
    experiments: tuple[ExperimentResult, ...]
    environments: Mapping[str, Mapping[str, Any]] = {}
    left_out: tuple[str, ...] = ()
    """The files whose text was imported before, also under another name: it counts once."""

    @property
    def is_ok(self) -> bool:
        """Whether there are results, and all are ok, but for what the tool skipped. (An experiment is ok if one of its
        repeats is.)"""
        outcomes = [*(repeat.outcome for repeat in self.repeats), *(result.outcome for result in self.experiments)]
        states = {outcome.state for outcome in outcomes}
        return State.OK in states and states <= {State.OK, State.SKIPPED}


@command("import")
def _import(
    files: Annotated[list[str], typer.Argument(metavar="KIND=FILE", help="result files of other tools")],
    dumps: FromOption = None,
    live: Annotated[bool, typer.Option("--live", help="the files were measured on this machine")] = False,
    settings: SetOption = None,
    results: ResultsOption = RESULTS,
    *,
    out: Annotated[Output, {"quiet": "only results and problems, no progress and hints"}],
) -> int:
    chosen = _settings(settings or ())
    peaks = {name: _peak(name, chosen.pop(name)) for name in _PEAKS if name in chosen}
    read = [_file(text) for text in files]
    machine = machine_of(parse_dumps(dumps), live=live) if dumps or live else None
    are_repeats = _are_repeats(chosen.pop(_RUNS, None))
    found = _imported(
        read, Given(machine, chosen, peaks.get("peak_flops"), peaks.get("peak_Bps"), are_repeats), results
    )
    if not found.repeats:
        message("nothing was imported: the files contain no result")
    if out.as_json or found.repeats:
        out.show(
            lambda: results_document(found.experiments, found.environments),
            lambda style: results_text(found.experiments, style, Detail.FULL),
        )
    if found.repeats and not out.as_json:
        out.announce(f"records: {results}; the page: seatrial report {shlex.quote(str(results))} -o FILE.html")
    _report(found.repeats)
    if found.left_out:
        left_out = count(len(found.left_out), "file")
        message(f"{left_out} not counted again (the same text as another): {_names(found.left_out)}")
    return 0 if found.is_ok else 3


def _imported(files: Iterable[ResultFile], given: Given, results: Path) -> ImportResult:
    """Record each file as one repeat; a file that is imported again does not count twice. `given` is what is known
    in addition to the files. Raises UsageError before anything is written, and StoreError."""
    repeats = read_repeats(tuple(files), given)
    if not repeats:
        return ImportResult((), ())
    run = record_repeats(repeats, ResultsFolder.create(results))
    contents = read_contents(ResultsFolder.existing(results))
    for line in contents.damaged:
        _log.warning("ignored: %s", line)
    found = results_of(contents, [Asked(e, measured_now=e.id in run.added) for e in run.experiments])
    return ImportResult(repeats, found, run.environments, run.left_out)


def _report(repeats: Sequence[ImportedRepeat]) -> None:
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


def _are_repeats(text: str | None) -> bool:
    if text not in (None, "repeats"):
        raise UsageError(
            f"{_RUNS} cannot be {text!r}", f"--set {_RUNS}=repeats: runs of one text with equal settings are repeats"
        )
    return text is not None


def _file(text: str) -> ResultFile:
    """The file that `KIND=FILE` names, read; FILE may be "-" for standard input. Raises UsageError for an unknown kind
    and for a file that cannot be read."""
    kind, equals, name = text.partition("=")
    if not equals or not name:
        raise UsageError(
            f"{text!r} is not of the form KIND=FILE",
            f"for example: seatrial import stream=stream.txt; the kinds are {', '.join(readers())}",
        )
    reader_of(kind)
    data = read_output(name, MAX_BYTES)
    if name == STDIN:
        return ResultFile(kind, "standard input", data)
    path = Path(name)
    return ResultFile(kind, path.name, data, path.stat().st_mtime)
