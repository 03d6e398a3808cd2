"""apps.ior: IOR, many processes that write a file, or one each, and read it again; what it prints is read as `seatrial
import ior=FILE` does.

Each rank reads what its neighbour wrote (`-C`), which on several nodes is not in its own cache; on one node the data
may come from memory. Writing ends with fsync.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.benchmarks.apps.given_input import TARGET, Made, application, target, with_target
from seatrial.benchmarks.imported.ior import BENCHMARK as IMPORTED
from seatrial.model.benchmark import Skip
from seatrial.model.given_input import InputCase
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole


def _arguments(params: Params) -> Sequence[str]:
    sizes = ["-t", str(params["transfer_B"]), "-b", str(params["block_B"]), "-s", str(params["segments"])]
    own_file = ["-F"] if params["layout"] == "per-process" else []
    return ["-a", str(params["api"]), *sizes, *own_file, "-w", "-r", "-e", "-C", "-i", "1"]


def _prepare(params: Params) -> Params:
    if whole(params["block_B"]) % whole(params["transfer_B"]):
        raise Skip("the block is no multiple of the transfer")
    return with_target(params)


def _estimate_s(params: Params) -> float:
    return 5.0 + 2e-8 * whole(params["block_B"]) * whole(params["segments"]) * whole(params["ranks"])


def _places(params: Params, directory: Path) -> Sequence[str]:
    return ["-o", str(target(params, directory))]


BENCHMARK = application(
    "apps.ior",
    "How fast do many processes write and read files?",
    IMPORTED,
    tool="IOR",
    programs=("ior",),
    install="install IOR (Spack: spack install ior; https://github.com/hpc/ior) and put ior on PATH",
    arguments=_arguments,
    places=_places,
    output="stdout",
    cases=(InputCase("made", "blocks of block_B in segments, in transfers of transfer_B", ""),),
    made=Made(
        inputs=lambda params: {},
        parameters=(
            TARGET,
            Parameter("api", ParameterKind.CHOICE, "POSIX", "the interface", words=("POSIX", "MPIIO", "HDF5")),
            Parameter(
                "layout",
                ParameterKind.CHOICE,
                "shared",
                "one file, or one of each process",
                words=("shared", "per-process"),
            ),
            Parameter("transfer_B", ParameterKind.BYTES, 1 << 20, "bytes of a call", minimum=8),
            Parameter(
                "block_B", ParameterKind.BYTES, 64 << 20, "contiguous bytes of a process in a segment", minimum=8
            ),
            Parameter("segments", ParameterKind.INTEGER, 1, "segments of a file", minimum=1),
        ),
        prepare=_prepare,
        estimate_s=_estimate_s,
    ),
    has_start=False,
    stated={name: name for name in ("ranks", "transfer_B", "block_B", "segments")},
)
