"""Programs: the interface of all kinds, what they write, and where their ranks are.

`seatrial.engine.kinds` defines how programs of each kind are found, prepared, started and read. What a measuring
program writes is JSON lines, version 1 of the protocol. `parse_record` is a pure function from bytes to
`ProgramRecord`. A record without `end` is valid (the run died); a line that violates the protocol is a ProtocolError.
docs/methodology.md describes every event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from seatrial.errors import ProtocolError
from seatrial.model.benchmark.declaration import Declaration, StoredDeclaration, parameters_in
from seatrial.model.benchmark.parameter import Params, Value, whole
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Outcome, Sample


class Program(Frozen):
    """The program of a benchmark. A kind overrides some of these defaults."""

    can_run: ClassVar[bool] = True
    """Whether it can be run; otherwise its figures come only from files."""

    @property
    def source(self) -> Path | None:
        """The file that is compiled in each environment; None if nothing is."""
        return None

    @property
    def library(self) -> str | None:
        """The kind of library that it loads at run time, found on the host; None if there is none."""
        return None

    @property
    def uses_devices(self) -> bool:
        """Whether it runs on GPUs, or on processors that OpenCL presents as devices: its library is one of these."""
        return self.library == "gpu"

    @property
    def launched(self) -> str:
        """The parameter with the number of processes that a launcher starts. If it is that of nodes, the process of
        each node starts the others."""
        return RANKS

    @property
    def takes_turns(self) -> bool:
        """Whether it can run concurrently with others and take turns sampling."""
        return False

    @property
    def may_start_mpi(self) -> bool:
        """Whether it may start MPI processes that are not the ranks of its benchmark."""
        return False

    @property
    def declaration(self) -> Declaration | StoredDeclaration | None:
        """The user's declaration of its command, with the parameters in it; None if it has none."""
        return None

    def stated_arguments(self, params: Params) -> Sequence[str]:
        """The arguments that its record states for these parameters."""
        return ()

    def is_chosen_by(self, parameter: str) -> bool:
        """Whether a parameter of that name selects the programs that it starts or the library that it loads."""
        return self.declaration is not None and parameter in parameters_in(self.declaration.argv)

    def sets_by(self, parameter: str) -> frozenset[str]:
        """The environment variables that it gets from a parameter of that name."""
        pairs = {} if self.declaration is None else dict(self.declaration.variables)
        return frozenset(name for name, text in pairs.items() if parameter in parameters_in([text]))

    def is_sensitive_to(self, variable: str) -> bool:
        """Whether the value of that environment variable is part of the program's identity."""
        return False


PROTOCOL_VERSION = 1

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""The exceptions that parsing arbitrary content as a record may raise."""


class Hello(Frozen):
    """The first line: the program, its build, the CPUs of its threads, the libraries that it loaded."""

    program: str
    build: str
    host: str
    rank: int = 0
    ranks: int = 1
    cpus: tuple[tuple[int, ...], ...] = ()
    """The affinity mask of each thread (of an MPI program: each rank), as read back by that thread."""
    libs: Mapping[str, str] = {}
    """SONAME -> build id of every shared library that was loaded."""
    lib_paths: Mapping[str, str] = {}
    hosts: tuple[str, ...] = ()
    """The host of each rank of an MPI program."""
    isa: tuple[str, ...] = ()
    """Instruction-set features that the compiler was allowed to use."""
    clock_step_s: float = 0.0
    """The smallest time that the clock of the samples can show, in seconds; 0: unknown."""
    hypervisor: str = ""
    """The signature of the hypervisor as CPUID has it; "" if there is none or it is unknown."""


class ProgramRecord(Frozen):
    """All that one program run reported. `ended` is False if the run died before its `end` or `skip`. `need` is a
    word for what is missing on the machine, if that is why the program skipped."""

    hello: Hello | None = None
    samples: tuple[Sample, ...] = ()
    checks: Mapping[str, float | None] = {}
    notes: Mapping[str, Any] = {}
    skip: str | None = None
    ended: bool = False
    need: str | None = None

    @property
    def declined(self) -> Outcome | None:
        """The outcome of a program that skipped itself; None if it did not."""
        if self.skip is None:
            return None
        return Outcome.skipped(self.skip) if self.need is None else Outcome.unsupported(self.need, self.skip)


def parse_record(data: bytes) -> ProgramRecord:
    """The record that `data` holds. An incomplete last line (no newline) is ignored: the program died while writing it.

    Raises ProtocolError with the number of the first line that violates the protocol.
    """
    hello: Hello | None = None
    samples: list[Sample] = []
    checks: dict[str, float | None] = {}
    notes: dict[str, Any] = {}
    skip: str | None = None
    need: str | None = None
    ended = False
    decode = _DECODER.decode
    lines = data.split(b"\n")[:-1]
    for number, line in enumerate(lines, start=1):
        try:
            event = decode(line)
            kind = event["ev"]
            if ended:
                raise ValueError("an event after the end")
            if kind == "hello":
                hello = _hello(event)
            elif hello is None:
                raise ValueError("the first event is not hello")
            elif kind == "sample":
                samples.append(_sample(event))
            elif kind == "check":
                value = event["value"]
                checks[str(event["name"])] = None if value is None else float(value)
            elif kind == "note":
                notes[str(event["key"])] = event["value"]
            elif kind == "skip":
                skip, ended = str(event["reason"]), True
                need = str(event["need"]) if "need" in event else None
            elif kind == "end":
                ended = True
            else:
                raise ValueError(f"unknown event {kind!r}")
        except UNREADABLE as error:
            text = line[:200].decode("utf-8", "replace")
            raise ProtocolError(f"line {number} of the program's record: {error!r}: {text!r}") from error
    return ProgramRecord(hello, tuple(samples), checks, notes, skip, ended, need)


def _hello(event: Mapping[str, Any]) -> Hello:
    if event["v"] != PROTOCOL_VERSION:
        raise ValueError(f"protocol version {event['v']!r} instead of {PROTOCOL_VERSION}")
    return Hello(
        program=str(event["program"]),
        build=str(event["build"]),
        host=str(event["host"]),
        rank=int(event.get("rank", 0)),
        ranks=int(event.get("ranks", 1)),
        cpus=tuple(tuple(int(cpu) for cpu in mask) for mask in event["cpus"]),
        libs={str(name): str(build_id) for name, build_id in event.get("libs", {}).items()},
        lib_paths={str(name): str(path) for name, path in event.get("lib_paths", {}).items()},
        hosts=tuple(str(host) for host in event.get("hosts", ())),
        isa=tuple(str(feature) for feature in event.get("isa", ())),
        clock_step_s=_step(event.get("clock_step_s", 0.0)),
        hypervisor=str(event.get("hypervisor", "")),
    )


def _step(value: Any) -> float:
    step_s = float(value)
    if not 0.0 <= step_s < float("inf"):
        raise ValueError(f"a clock step of {value!r} s")
    return step_s


_SAMPLE_KEYS = frozenset({"ev", "series", "rank", "i", "elapsed_s", "work", "point"})
_DECODER = msgspec.json.Decoder()  # a program may write thousands of lines in a repeat


def _sample(event: Mapping[str, Any]) -> Sample:
    return Sample(
        series=str(event["series"]),
        i=int(event["i"]),
        elapsed_s=_nan_if_none(event["elapsed_s"]),
        work={str(name): _nan_if_none(amount) for name, amount in event.get("work", {}).items()},
        rank=int(event.get("rank", 0)),
        point={str(name): _point_value(value) for name, value in event.get("point", {}).items()},
        extra={name: value for name, value in event.items() if name not in _SAMPLE_KEYS},
    )


def _point_value(value: Any) -> Value:
    if not isinstance(value, bool | int | float | str):
        raise TypeError(f"invalid coordinate {value!r}")
    return value


def _nan_if_none(value: Any) -> float:
    """A number; programs write null for a value that is not finite."""
    return float("nan") if value is None else float(value)


RANKS, THREADS, NODES = "ranks", "threads", "nodes"
"""The parameters of an MPI program: its ranks, the threads of each, and its nodes (1 if it has no such parameter)."""


BINDING, UNBOUND = "binding", "none"
"""The setting of an environment for unbound ranks, which the kernel's scheduler may move."""


class Layout(Frozen):
    """`cpus` are the CPUs of each rank on its host, in rank order; empty if ranks are unbound. `hosts` are the nodes,
    filled one after another with equal numbers of ranks; empty: this one. `shares_cpus`: more ranks than CPUs, so
    waiting ranks must yield."""

    ranks: int
    cpus: tuple[tuple[int, ...], ...] = ()
    hosts: tuple[str, ...] = ()
    shares_cpus: bool = False

    def __post_init__(self) -> None:
        if self.cpus and len(self.cpus) != self.ranks:
            raise ValueError(f"{len(self.cpus)} lists of CPUs for {self.ranks} ranks")
        if self.hosts and self.ranks % len(self.hosts):
            raise ValueError(f"{self.ranks} ranks do not fill {len(self.hosts)} nodes evenly")

    @property
    def is_bound(self) -> bool:
        """Whether each rank is bound to its own CPUs."""
        return bool(self.cpus)

    @property
    def ranks_per_host(self) -> int:
        """The number of ranks on each node."""
        return self.ranks // max(1, len(self.hosts))

    @property
    def cpus_of_a_host(self) -> tuple[tuple[int, ...], ...] | None:
        """The CPUs of the ranks on one node if all nodes are alike; None if they differ. Empty: unbound."""
        each = self.ranks_per_host
        first = self.cpus[:each]
        alike = all(self.cpus[start : start + each] == first for start in range(0, len(self.cpus), each))
        return first if alike else None

    @property
    def threads(self) -> int:
        """The largest number of CPUs of a rank; 1 if unbound."""
        return max((len(rank) for rank in self.cpus), default=1)


def layout_of(
    params: Params,
    cpus: Sequence[int],
    binding: str | None = None,
    hosts: tuple[str, ...] = (),
    launched: str = RANKS,
) -> Layout:
    """The layout for resolved parameters and the CPUs from a benchmark's `placement`: one CPU per thread, rank by rank.
    `launched` is the parameter with the number of ranks (Program.launched). No CPUs: ranks share them. `binding` is the
    setting of a study; `none`: no binding. `hosts` are the nodes; empty: this one. Raises ValueError for a wrong number
    of CPUs."""
    ranks = whole(params[launched])
    threads = whole(params.get(THREADS, 1)) if launched == RANKS else len(cpus) // ranks
    if not cpus:
        return Layout(ranks, hosts=hosts, shares_cpus=True)
    if len(cpus) != ranks * threads:
        raise ValueError(f"{len(cpus)} CPUs for {ranks} ranks of {threads} threads")
    if binding == UNBOUND:
        return Layout(ranks, hosts=hosts)
    return Layout(ranks, tuple(tuple(cpus[r * threads : (r + 1) * threads]) for r in range(ranks)), hosts)
