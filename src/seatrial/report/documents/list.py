"""`seatrial.list/1`: what can be measured here, and what with, as one JSON object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired, TypedDict

from seatrial.model.benchmark import Benchmark, Better, Figure
from seatrial.model.json_shape import GIVEN, OPEN, From, Text, filled, shape, when
from seatrial.model.machine import Machine
from seatrial.model.mpi import Mpi, MpiFamily
from seatrial.model.parameter import Parameter
from seatrial.model.site import SiteEnvironment
from seatrial.model.units import Unit
from seatrial.report.documents.references import ReferenceJson
from seatrial.report.units import written


@dataclass(frozen=True, slots=True)
class Tools:
    """What programs can be built with here, of each the one that is used first.

    `runtimes` are MPI libraries without mpi.h, each with what it needs. `missing` says of environments of the site, by
    their names, why they cannot be used.
    """

    compilers: Sequence[str] = ()
    mpis: Sequence[Mpi] = ()
    runtimes: Sequence[tuple[Mpi, str]] = ()
    environments: Sequence[SiteEnvironment] = ()
    missing: Mapping[str, str] | None = None


_NO_NEED = {"need": {"type": "null"}}
_A_NEED = {"need": {"type": "string", "minLength": 1}}
_WORDS = {"additionalProperties": {"type": "string"}}


@shape(Mpi, when("state", "ready", _NO_NEED, _A_NEED))
class MpiJson(TypedDict):
    """An MPI library."""

    name: Annotated[Text, "What environment.mpi takes for it"]
    title: str
    family: MpiFamily
    version: str
    library: Annotated[str, From(lambda mpi: str(mpi.library)), "The file of libmpi"]
    build_id: Annotated[str, "GNU build id, or sha256: and the hash of the file"]
    launcher: Annotated[
        str | None,
        From(lambda mpi: None if mpi.launcher is None else str(mpi.launcher)),
        "null: only a batch system starts its ranks",
    ]
    generic: Annotated[bool, From("is_generic"), "A build for any machine, such as a wheel"]
    found: str
    state: Annotated[Literal["ready", "runtime-only"], GIVEN]
    need: Annotated[str | None, GIVEN]


@shape(SiteEnvironment)
class EnvironmentJson(TypedDict):
    """What programs are built and run in."""

    name: Text
    site: Annotated[bool, GIVEN, "Whether it stands in the site file"]
    compiler: str | None
    flags: list[str]
    mpi: Annotated[str | None, GIVEN, "Its MPI library by the name in mpis; null: none"]
    variables: dict[str, str]
    need: Annotated[str | None, GIVEN, "Why it cannot be used; null: it can"]


@shape(Parameter, _WORDS)
class ParameterJson(TypedDict):
    """A setting of a benchmark."""

    name: str
    default: Annotated[str, From(lambda parameter: written(parameter.name, parameter.default))]
    help: str
    accepts: Annotated[str, From(Parameter.accepts)]


@shape(Figure, _WORDS)
class ListedFigureJson(TypedDict):
    """What a benchmark publishes."""

    name: str
    unit: Unit
    better: Better
    work: str


@shape(Benchmark, OPEN | when("state", "unsupported", _A_NEED, _NO_NEED))
class BenchmarkJson(TypedDict):
    """What can be measured, and whether it can here."""

    name: str
    question: str
    state: Annotated[Literal["ready", "unsupported", "unverified"], GIVEN]
    need: Annotated[str | None, GIVEN]
    parameters: NotRequired[list[ParameterJson]]
    figures: NotRequired[list[ListedFigureJson]]


@shape(None, OPEN)
class ListJson(TypedDict):
    """What can be measured here, and what with. What is used first comes first."""

    schema: Literal["seatrial.list/1"]
    compilers: NotRequired[list[str]]
    mpis: NotRequired[Annotated[list[MpiJson], "those to build with first"]]
    environments: NotRequired[list[EnvironmentJson]]
    benchmarks: list[BenchmarkJson]
    references: NotRequired[Annotated[list[ReferenceJson], "only with --references"]]


def list_document(
    benchmarks: Iterable[Benchmark], machine: Machine, tools: Tools, missing: Mapping[str, str]
) -> ListJson:
    """The object that CONTRACT names, with compilers, MPI libraries and environments in order of preference: the first
    is used.

    `missing` says of benchmarks whose program cannot be had here what they lack.
    """
    return ListJson(
        schema="seatrial.list/1",
        compilers=list(tools.compilers),
        mpis=[
            *(filled(MpiJson, mpi, state="ready", need=None) for mpi in tools.mpis),
            *(filled(MpiJson, mpi, state="runtime-only", need=need) for mpi, need in tools.runtimes),
        ],
        environments=list(_environments(tools)),
        benchmarks=[_benchmark(benchmark, missing.get(benchmark.name)) for benchmark in benchmarks],
    )


def _environments(tools: Tools) -> Iterator[EnvironmentJson]:
    """The site's own, then one for each MPI library with the first compiler; without MPI that compiler alone."""
    missing = tools.missing or {}
    known = {mpi.name for mpi in tools.mpis}
    of_site = {environment.name for environment in tools.environments}
    first = tools.compilers[0] if tools.compilers else None
    for environment in tools.environments:
        yield filled(
            EnvironmentJson,
            environment,
            site=True,
            compiler=environment.compiler or first,
            mpi=environment.name if environment.name in known else None,
            need=missing.get(environment.name),
        )
    found: list[str | None] = [mpi.name for mpi in tools.mpis if mpi.name not in of_site]
    if not found and not tools.environments and first is not None:
        found = [None]
    for name in found:
        alone = SiteEnvironment(name or first or "", compiler=first)
        need = None if first is not None else "a C++20 compiler"
        yield filled(EnvironmentJson, alone, site=False, mpi=name, need=need)


def _benchmark(benchmark: Benchmark, missing: str | None) -> BenchmarkJson:
    state = "unsupported" if missing else "ready" if benchmark.verified else "unverified"
    return filled(BenchmarkJson, benchmark, state=state, need=missing)
