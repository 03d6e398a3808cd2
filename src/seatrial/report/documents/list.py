"""`seatrial.list/1`: what can be measured here, and with which tools, as one JSON object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from seatrial.applications.readers import readers
from seatrial.environments.blas import Blas
from seatrial.environments.settings.knobs import OfferedSetting
from seatrial.fabric import dumps as fabric_dumps
from seatrial.machine import dumps
from seatrial.model.benchmark.benchmark import Benchmark, Better, Check, Figure, area_of
from seatrial.model.benchmark.parameter import Parameter
from seatrial.model.environment.mpi import Mpi
from seatrial.model.environment.site import SiteEnvironment
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import filled
from seatrial.model.json_shape import GIVEN, OPEN, From, Json, Keywords, Text, shape, view, when
from seatrial.model.results.history import Qualifier, Reference
from seatrial.model.spelling import written
from seatrial.model.units import Unit
from seatrial.places.containers.trial import RuntimeTrial
from seatrial.places.guest.of_run import OfferedGuest


class BuildTools(Frozen):
    """The tools to build programs with, the default of each kind first.

    `runtimes` are MPI libraries without mpi.h, each with what it needs. `missing`: name of an environment of the site
    file -> why it cannot be used. `blas` are the libraries for `cpu.gemm`, `containers` the container runtimes,
    `guests` the virtual machines, and `settings` those of this machine.
    """

    compilers: Sequence[str] = ()
    mpis: Sequence[Mpi] = ()
    runtimes: Sequence[tuple[Mpi, str]] = ()
    environments: Sequence[SiteEnvironment] = ()
    missing: Mapping[str, str] | None = None
    blas: Sequence[Blas] = ()
    containers: Sequence[RuntimeTrial] = ()
    guests: Sequence[OfferedGuest] = ()
    settings: Sequence[OfferedSetting] = ()


_NOT_LISTED = ("compile_flags", "link_flags", "variables", "runtime_only")
_NEED_IS_NULL = {"need": {"type": "null"}}
_NEED_IS_TEXT = {"need": {"type": "string", "minLength": 1}}
_MORE_STRINGS = {"additionalProperties": {"type": "string"}}


@view(Mpi, when("state", "ready", _NEED_IS_NULL, _NEED_IS_TEXT), without=_NOT_LISTED)
class MpiJson(TypedDict):
    """An MPI library."""

    name: Annotated[Text, "The value of environment.mpi that selects it"]
    title: str
    library: Annotated[str, From(lambda mpi: str(mpi.library)), "The path of libmpi"]
    build_id: Annotated[str, "GNU build id, or sha256: and the hash of the file"]
    launcher: Annotated[
        str | None,
        From(lambda mpi: None if mpi.launcher is None else str(mpi.launcher)),
        "null: only a batch system can start its ranks",
    ]
    generic: Annotated[bool, From("is_generic"), "Whether it is built for any machine, such as a wheel"]
    state: Annotated[Literal["ready", "runtime-only"], GIVEN]
    need: Annotated[str | None, GIVEN]


@shape(Blas)
class BlasJson(TypedDict):
    """A BLAS library."""

    name: Annotated[Text, "The value of blas that selects it"]
    family: str
    library: Annotated[str, From(lambda blas: str(blas.path)), "The path of the library"]
    version: Annotated[str | None, From(lambda blas: blas.kernels.version or None), "null: it does not report one"]
    kernels: Annotated[
        str | None,
        From(lambda blas: blas.kernels.core or None),
        "The processor whose kernels it selects on this CPU; null: it does not report that",
    ]
    found: Annotated[str, "Where it was found"]
    remark: Annotated[str, "What is known of its speed on this CPU"]


@shape(SiteEnvironment)
class EnvironmentJson(TypedDict):
    """An environment that programs are built and run in."""

    name: Text
    site: Annotated[bool, GIVEN, "Whether it comes from the site file"]
    compiler: str | None
    flags: list[str]
    mpi: Annotated[str | None, GIVEN, "The name of its MPI library in mpis; null: none"]
    variables: dict[str, str]
    need: Annotated[str | None, GIVEN, "Why it cannot be used; null: it can be used"]


@shape(Parameter, _MORE_STRINGS)
class ParameterJson(TypedDict):
    """A setting of a benchmark."""

    name: str
    default: Annotated[str, From(lambda parameter: written(parameter.name, parameter.default))]
    help: str
    accepts: Annotated[str, From(Parameter.accepts)]


def _limit(figure: Figure) -> Literal["physical", "measured"] | None:
    if figure.limit is not None:
        return "physical"
    return None if figure.ceiling is None else "measured"


@shape(Figure, _MORE_STRINGS)
class ListedFigureJson(TypedDict):
    """A figure that a benchmark publishes."""

    name: str
    unit: Unit
    better: Better
    work: str
    limit: NotRequired[
        Annotated[
            Literal["physical", "measured"] | None,
            From(_limit),
            "What it is compared with, where the machine's facts allow: a formula, or a ceiling that was measured",
        ]
    ]


@shape(Check)
class ListedCheckJson(TypedDict):
    """A condition that must hold before a figure is published."""

    name: str
    meaning: str


@shape(Benchmark, OPEN | when("state", "unsupported", _NEED_IS_TEXT, _NEED_IS_NULL))
class BenchmarkJson(TypedDict):
    """A benchmark, and whether it can run here."""

    name: str
    question: str
    state: Annotated[Literal["ready", "unsupported", "unverified"], GIVEN]
    need: Annotated[str | None, GIVEN]
    area: NotRequired[Annotated[str, From(lambda benchmark: area_of(benchmark.name))]]
    evidence: NotRequired[
        Annotated[
            str,
            "what the adapter of an application was checked with, if it was never run; the GPU that a benchmark ran on",
        ]
    ]
    ranks: NotRequired[Annotated[Literal["one", "mpi"], "mpi: it runs as MPI ranks"]]
    parameters: NotRequired[list[ParameterJson]]
    figures: NotRequired[list[ListedFigureJson]]
    checks: NotRequired[list[ListedCheckJson]]


@view(Reference)
class ReferenceJson(TypedDict):
    """A published value from another machine, without an interval."""

    qualifier: Annotated[
        str | None,
        Keywords(enum=[*(one.value for one in Qualifier if one.value), None]),
        From(lambda reference: reference.qualifier.value or None),
        "How the source qualifies the value; null: not qualified",
    ]


def references_document(references: Iterable[Reference]) -> list[Json]:
    """One object for each reference, its value in the SI unit of `unit`."""
    return [filled(ReferenceJson, reference) for reference in references]


@shape(None)
class FormatJson(TypedDict):
    """A format of other tools that is read."""

    kind: str
    use: Annotated[Literal["import", "discover"], "The command that reads it: `import KIND=FILE`, `discover --from`"]
    from_documentation: Annotated[bool, "True: no test reads a real text of it"]


@shape(None, OPEN)
class ListJson(TypedDict):
    """What can be measured here, and with which tools. Of each kind, the default comes first."""

    schema: Literal["seatrial.list/1"]
    compilers: NotRequired[list[str]]
    mpis: NotRequired[Annotated[list[MpiJson], "those that programs can be built with first"]]
    environments: NotRequired[list[EnvironmentJson]]
    blas: NotRequired[list[BlasJson]]
    containers: NotRequired[Annotated[list[RuntimeTrial], "the runtimes that are known, installed or not"]]
    guests: NotRequired[Annotated[list[OfferedGuest], "virtual machines; none was started or reached"]]
    machine_settings: NotRequired[Annotated[list[OfferedSetting], "clocks, governors and limits of this machine"]]
    benchmarks: list[BenchmarkJson]
    formats: NotRequired[list[FormatJson]]
    references: NotRequired[Annotated[list[ReferenceJson], "only with --references"]]


def list_document(benchmarks: Iterable[Benchmark], tools: BuildTools, missing: Mapping[str, str]) -> Json:
    """The document of CONTRACT, with compilers, MPI libraries and environments in order of preference: the first
    is the default.

    `missing`: name of a benchmark whose program is not available here -> what it needs.
    """
    return filled(
        ListJson,
        None,
        compilers=tools.compilers,
        mpis=[
            *(filled(MpiJson, mpi, state="ready", need=None) for mpi in tools.mpis),
            *(filled(MpiJson, mpi, state="runtime-only", need=need) for mpi, need in tools.runtimes),
        ],
        environments=list(_environments(tools)),
        blas=tools.blas,
        containers=tools.containers,
        guests=tools.guests,
        machine_settings=tools.settings,
        benchmarks=[_benchmark(benchmark, missing.get(benchmark.name)) for benchmark in benchmarks],
        formats=list(_formats()),
    )


def _formats() -> Iterator[Json]:
    for reader in readers().values():
        yield {"kind": reader.kind, "use": "import", "from_documentation": reader.is_from_documentation}
    documented = dumps.FROM_DOCUMENTATION | fabric_dumps.FROM_DOCUMENTATION
    for kind in (*dumps.READERS, *fabric_dumps.FABRIC_READERS):
        yield {"kind": kind, "use": "discover", "from_documentation": kind in documented}


def _environments(tools: BuildTools) -> Iterator[Json]:
    """Those of the site file, then one for each MPI library with the first compiler; without MPI that compiler
    alone."""
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


def _benchmark(benchmark: Benchmark, missing: str | None) -> Json:
    state = "unsupported" if missing else "ready" if benchmark.verified else "unverified"
    return filled(BenchmarkJson, benchmark, state=state, need=missing)
