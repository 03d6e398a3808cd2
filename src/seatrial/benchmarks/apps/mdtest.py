"""apps.mdtest: mdtest, many processes that make, look at, read and remove files; what it prints is read as `seatrial
import mdtest=FILE` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.benchmarks.apps.given_input import TARGET, Made, application, target, with_target
from seatrial.benchmarks.imported.mdtest import BENCHMARK as IMPORTED
from seatrial.model.given_input import InputCase
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole

_FEWEST_PER_S = 200.0
_IMPORTED = replace(IMPORTED, figures=tuple(figure for figure in IMPORTED.figures if figure.name.startswith("file")))
"""Files alone are made: of folders, only the tree that they are in."""


def _arguments(params: Params) -> Sequence[str]:
    own_folder = ["-u"] if params["layout"] == "per-process" else []
    bytes_of_a_file = [word for option in ("-w", "-e") for word in (option, str(params["file_B"]))]
    return ["-n", str(params["files"]), "-i", "1", "-F", "-C", "-T", "-E", "-r", *own_folder, *bytes_of_a_file]


def _places(params: Params, directory: Path) -> Sequence[str]:
    return ["-d", str(target(params, directory))]


def _estimate_s(params: Params) -> float:
    return 5.0 + whole(params["files"]) * whole(params["ranks"]) / _FEWEST_PER_S


BENCHMARK = application(
    "apps.mdtest",
    "How many operations on files per second do many processes reach?",
    _IMPORTED,
    tool="mdtest",
    programs=("mdtest",),
    install="install IOR with mdtest (Spack: spack install ior; https://github.com/hpc/ior) and put mdtest on PATH",
    arguments=_arguments,
    places=_places,
    output="stdout",
    cases=(InputCase("made", "as many files of each process, made, looked at, read and removed", ""),),
    made=Made(
        inputs=lambda params: {},
        parameters=(
            TARGET,
            Parameter("files", ParameterKind.INTEGER, 1000, "files of each process", minimum=1),
            Parameter("file_B", ParameterKind.BYTES, 0, "bytes that are written to each file, and read"),
            Parameter(
                "layout",
                ParameterKind.CHOICE,
                "shared",
                "one folder, or one of each process",
                words=("shared", "per-process"),
            ),
        ),
        prepare=with_target,
        estimate_s=_estimate_s,
    ),
    has_start=False,
    stated={"ranks": "ranks"},
)
