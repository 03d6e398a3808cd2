"""What a benchmark is: one declaration from which command line, planner, validation, report and docs derive.

A benchmark stands in `seatrial.benchmarks` as one module with a `BENCHMARK`; its program stands beside it under the
same stem. docs/add-a-benchmark.md shows one from end to end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Literal

from seatrial.errors import UnknownNameError
from seatrial.model.limit import Limit
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, Params, Value
from seatrial.model.program import Program
from seatrial.model.protocol import ProgramRecord
from seatrial.model.role import HostCopies, Intensity, Role
from seatrial.model.sample import Sample
from seatrial.model.units import Unit


class Better(StrEnum):
    """Which way a figure is better."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A measured ceiling: the best rate that other experiments of the same machine reached, times `factor`.

    It stands in where the physical limit is unknown. `roles` and `parameters` select those figures (parameters
    not named must equal those of the figure that asks, but for `ignored`, which may have any value). `{benchmark}` in
    the derivation stands for the name of the benchmark that reached it.
    """

    roles: tuple[Role, ...]
    parameters: Params
    factor: float
    derivation: str
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Attainable:
    """The share of a limit that counted work can reach at most by its nature, 0..1, and why in a few words.

    STREAM counts 24 B of the 32 B that a plain triad moves: at the full rate of the memory 75 % can be counted.
    """

    share: float = 1.0
    why: str = ""


ALL_OF_IT = Attainable()


def _all_of_it(params: Params) -> Attainable:
    return ALL_OF_IT


def _always(params: Params) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of merit. `series` names the samples that it is read from; `value` reads one of them, in `unit`.

    `work` says what is counted, for people ("24 B per element, as STREAM"). `limit` derives the most it can be from the
    machine, the parameters and the samples of one repeat at one point (which carry the clock of the run).

    `attainable` is the share of that limit that a sound machine can come near; a value above the whole limit is
    impossible all the same. `one_limit_over` names the parameters, and the coordinates of points inside the program,
    over which the limit is one and the same (threads that share one memory): the best of those points is held against
    it, since the others show what a setting costs. `is_there` says whether these parameters ask for the figure at all.
    `customary` says a value as the users of an application say it ("20.1 ns/day"), beside the SI unit. `role` says what
    it is the measure of, `intensity` (None where the parameters settle none) where it stands in a roofline.
    """

    name: str
    series: str
    unit: Unit
    better: Better
    value: Callable[[Sample], float]
    work: str
    limit: Callable[[Machine, Params, Sequence[Sample]], Limit] | None = None
    ceiling: Callable[[Params], Ceiling | None] | None = None
    attainable: Callable[[Params], Attainable] = _all_of_it
    one_limit_over: tuple[str, ...] = ()
    is_there: Callable[[Params], bool] = _always
    customary: Callable[[Params, float], str] | None = None
    role: Role | HostCopies | None = None
    intensity: Callable[[Params], Intensity | None] | None = None


Bound = Callable[[Machine, Params], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that must hold before any figure is published: a value inside a closed interval.

    The program reports the value under the same name, unless `derive` computes it from the samples. A value that is
    missing fails the check, so a program that forgets to check cannot pass; `derive` may return None where this machine
    gives nothing to check against.
    """

    name: str
    meaning: str
    bound: Bound
    derive: Callable[[Machine, Params, Sequence[Sample]], float | None] | None = None


@dataclass(frozen=True, slots=True)
class Native(Program):
    """A program of ours, built from `source` (C++20, one file) in each environment.

    `arguments` turns resolved parameters into the command line after `--record`, `--cpus` and `--parent`.

    `commands` are programs on PATH that it starts, as the parameters name them, and `inputs` words that may be files
    which these read: another file is another experiment.

    `takes_turns`: it samples in rounds and can let others work between them (native/turns.hpp), so that what is
    compared with it can live at the same time. What such a round finds in the caches must not matter.

    `library` names what it loads when it runs, as a parameter of that name chooses: the lab finds it, and adds to the
    arguments where it lies. "gpu" are the drivers of devices, which the program finds itself: the lab asks it which
    devices there are (`--list`), and resolves the parameters `backend`, `device` and `devices`. A program of many ranks
    (`Benchmark.ranks`) may load either as well.

    What decides about such a library from outside stands in `variables`, the environment
    variables whose values make another experiment of the same point.
    """

    source: Path = field()  # without a default: it overrides a property of the same name
    arguments: Callable[[Params], Sequence[str]]
    library: Literal["blas", "gpu"] | None = None
    variables: tuple[str, ...] = ()
    commands: Callable[[Params], Sequence[str]] | None = None
    inputs: Callable[[Params], Sequence[str]] | None = None
    takes_turns: bool = False

    @property
    def uses_devices(self) -> bool:
        """Whether its library is one of devices."""
        return self.library == "gpu"

    @property
    def may_start_mpi(self) -> bool:
        """Only where it starts programs that somebody names."""
        return self.commands is not None

    def stated_arguments(self, params: Params) -> Sequence[str]:
        """Those of the parameters; where the record goes and on which CPUs it runs, it does not state."""
        return self.arguments(params)

    def is_chosen_by(self, parameter: str) -> bool:
        """By `argv`, or by the parameter that has the library's name."""
        return parameter == self.library or (parameter == "argv" and self.commands is not None)

    def is_sensitive_to(self, variable: str) -> bool:
        """To those declared."""
        return variable in self.variables


@dataclass(frozen=True, slots=True)
class InputExchange:
    """Files (name -> content) that replace those of a running program once its file `file` holds `after`: for one that
    reads the same file twice and is to find something else the second time."""

    file: str
    after: bytes
    inputs: Callable[[Params], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class External(Program):
    """A real application or tool that this machine has or has not, run as it is; a pure function reads its output.

    `name` is what is looked for on PATH, `install` says how to get it; `alternatives` are other programs that measure
    the same, taken in their order where it is not there. `arguments` takes the resolved parameters and the folder of
    the repeat, in which the program runs and leaves `output` ("stdout": what it prints; with a "*": the one file whose
    name matches). `parse` gives samples, checks
    and notes; its record has no `hello`, and `ended` says whether the output is whole. Raises ProtocolError where it is
    not understood.

    `version` are the arguments that make it tell its version; none where it has no such option.

    `inputs` are files (name -> content) that are written into the folder before it starts. `preparation` are further
    argument lists of the same program, run one after another by a single process before the one that is measured.
    `variables` are set (None: unset) where it runs; the values of `sensitive_to`, where the user has set such variables
    and they are not unset, make another experiment of the same point.
    """

    name: str
    install: str
    output: str
    arguments: Callable[[Params, Path], Sequence[str]]
    parse: Callable[[bytes], ProgramRecord]
    alternatives: tuple[External, ...] = ()
    version: tuple[str, ...] = ("--version",)
    inputs: Callable[[Params], Mapping[str, bytes]] = lambda params: {}
    preparation: Callable[[Params], Sequence[Sequence[str]]] = lambda params: ()
    variables: Callable[[Params], Mapping[str, str | None]] = lambda params: {}
    sensitive_to: tuple[str, ...] = ()
    input_exchange: InputExchange | None = None

    @property
    def may_start_mpi(self) -> bool:
        """Nobody knows what it does."""
        return True


@dataclass(frozen=True, slots=True)
class ImportedOnly(Program):
    """No program of ours: the figures come from the result files of other tools (`seatrial import`). `why` says so for
    people."""

    why: str

    can_run: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One measurable program with everything that the rest of seatrial needs to know about it.

    `placement` gives the CPU of each thread, rank by rank where `ranks` is "mpi" (model/layout.py); `prepare` resolves
    words such as "all" into numbers (raising Skip where the point means nothing on this machine); `on_devices` does the
    same once it is known whether the devices that it runs on are processors, which play GPUs; `trial` lists the points
    of the standard trial of a machine; `estimate_s` is the time of one repeat, for plans and time limits.
    """

    name: str
    question: str
    program: Program
    parameters: tuple[Parameter, ...]
    figures: tuple[Figure, ...]
    checks: tuple[Check, ...]
    placement: Callable[[Machine, Params], tuple[int, ...]]
    prepare: Callable[[Machine, Params], Params] = lambda machine, params: params
    on_devices: Callable[[Params, bool], Params] = lambda params, are_processors: params
    ranks: Literal["one", "mpi"] = "one"
    trial: tuple[Params, ...] = field(default_factory=tuple)
    is_in_trial: Callable[[Machine], bool] = lambda machine: True
    """Whether the standard trial of this machine has it: what a machine has none of, its trial does not ask for."""
    sweep: tuple[Params, ...] = ()
    """What `run NAME` measures where no parameter of it is set, one point each; the best of them is the answer. Where
    it is empty, the point of all defaults."""
    estimate_s: Callable[[Params], float] = lambda params: 1.0
    verified: bool = True
    """False while nobody has seen it run on the hardware that it is for; `list` then says `unverified`."""

    @property
    def may_use_mpi(self) -> bool:
        """Whether processes of MPI may be among what a repeat starts: of its own ranks, or of somebody's program."""
        return self.ranks == "mpi" or self.program.may_start_mpi

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name; UnknownNameError names the nearest."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise UnknownNameError(f"parameter of {self.name}", name, (p.name for p in self.parameters))

    def point(self, given: Mapping[str, object]) -> dict[str, Value]:
        """All parameters: the given ones checked, the rest at their defaults."""
        point: dict[str, Value] = {parameter.name: parameter.default for parameter in self.parameters}
        for name, value in given.items():
            point[name] = self.parameter(name).value_of(value)
        return point

    def figure(self, name: str) -> Figure:
        """The figure of that name; UnknownNameError names the nearest."""
        for figure in self.figures:
            if figure.name == name:
                return figure
        raise UnknownNameError(f"figure of {self.name}", name, (f.name for f in self.figures))


class Skip(Exception):
    """Raised by `prepare` or `placement`: this point means nothing, or cannot fit, on this machine."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
