"""apps.cfx: the solver of Ansys CFX on the user's definition file; its .out is read as `seatrial import cfx=FILE`
does."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, application
from seatrial.benchmarks.imported.cfx import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT
from seatrial.model.parameter import Params, whole


def _arguments(params: Params) -> Sequence[str]:
    processes = whole(params["processes"])
    return ["-def", str(params[INPUT]), *(["-par-local", "-part", str(processes)] if processes > 1 else [])]


BENCHMARK = application(
    "apps.cfx",
    "How long does the solver of CFX take?",
    IMPORTED,
    tool="CFX",
    programs=("cfx5solve",),
    install="CFX needs a licence (https://www.ansys.com): put cfx5solve on PATH",
    arguments=_arguments,
    output="*.out",
    cases=(),
    starts="itself",
    evidence=FORMAT_SEEN,
)
