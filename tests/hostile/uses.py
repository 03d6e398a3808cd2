"""Everything that reads a results folder, as the commands do: name -> use(folder, a good folder), the text it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from seatrial.analysis.folder import contents_in, trial_of
from seatrial.analysis.network_fit import network_tables
from seatrial.analysis.rank_layout import bindings
from seatrial.analysis.results import results_without_limits
from seatrial.analysis.rules import findings
from seatrial.interface.machines import discovered
from seatrial.interface.results import compare, results
from seatrial.model.machine.document import machine_document
from seatrial.report.documents.check import check_document
from seatrial.report.documents.compare import compare_document
from seatrial.report.documents.results import results_document
from seatrial.report.drawing import machine_svg
from seatrial.report.pages.page import compare_page, page
from seatrial.report.text.check import check_text
from seatrial.report.text.compare import compare_text
from seatrial.report.text.machine import machine_text
from seatrial.report.text.results import results_text

Use = Callable[[Path, Path], str]


def _report(folder: Path, good: Path) -> str:
    found = results(folder)
    return page(found.trials, "link", found.studies, found.profiles)


def _results(folder: Path, good: Path) -> str:
    found = results(folder)
    environments = {key: one for trial in found.trials for key, one in trial.environments.items()}
    return _plain(results_document(found.experiments, environments)) + results_text(found.experiments)


def _sides(folder: Path, good: Path) -> str:
    return _compared(str(good), str(folder))


def _along_parameter(folder: Path, good: Path) -> str:
    return _compared(str(folder), along="cores")


def _along_repeats(folder: Path, good: Path) -> str:
    return _compared(str(folder), along="repeat")


def _along_nodes(folder: Path, good: Path) -> str:
    return _compared(str(folder), along="node")


def _compared(*sides: str, along: str | None = None) -> str:
    found = compare(*sides, along=along)
    document = _plain(compare_document(found.compared, found.screen))
    shown = (found.compared, found.screen)
    return document + compare_text(*shown) + compare_page(*shown)


def _discover(folder: Path, good: Path) -> str:
    found = discovered((), live=False, results=folder)
    svg = machine_svg(found.measured, found.copies)
    return _plain(machine_document(found.measured)) + machine_text(found.measured, found.copies) + svg


def _check(folder: Path, good: Path) -> str:
    machine = discovered((), live=False, results=folder).machine
    trial = trial_of(machine, folder)
    shown = (findings(machine, trial.results, trial.seen), bindings(machine))
    return _plain(check_document(*shown)) + check_text(*shown)


def _network(folder: Path, good: Path) -> str:
    return str(network_tables(results_without_limits(contents_in(folder))))


def _plain(document: Mapping[str, object]) -> str:
    return json.dumps(document, allow_nan=False)


USES: Mapping[str, Use] = {
    "report": _report,
    "results": _results,
    "compare A B": _sides,
    "compare --along cores": _along_parameter,
    "compare --along repeat": _along_repeats,
    "compare --along node": _along_nodes,
    "discover --results": _discover,
    "check --results": _check,
    "profile --trace": _network,
}
