"""The declaration of a benchmark, from which command line, planner, validation, report and docs derive.

A benchmark is a module in `seatrial.benchmarks` with a `BENCHMARK`; its program is next to it, under the same stem.
docs/add-a-benchmark.md shows one from end to end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Literal

from msgspec import field
from msgspec.structs import force_setattr

from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.benchmark.declaration import Declaration, StoredDeclaration
from seatrial.model.benchmark.parameter import Parameter, Params, Value
from seatrial.model.benchmark.program import Program, ProgramRecord
from seatrial.model.frozen import Frozen
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample
from seatrial.model.units import Unit


class Role(StrEnum):
    """What a figure measures, as declared with it; several figures may have the same role."""

    MEMORY_BANDWIDTH = "memory bandwidth, by the triad"
    MEMORY_STREAM = "memory bandwidth, by another kernel"
    LOAD_LATENCY = "latency of a load, by level of memory"
    FILE_RATE = "rate of reading or writing a file"
    FMA_RATE = "FMA rate of the cores"
    MATRIX_PRODUCT = "matrix product by the site's BLAS"
    LINE_BOUNCE = "transfer of a cache line between two cores"
    MESSAGE_TIME = "one-way time of a message, by size"
    MESSAGE_BANDWIDTH = "bandwidth of a stream of messages, by size"
    COLLECTIVE_TIME = "time of a collective operation on the slowest rank, by size"
    RANK_PAIRS = "messages between each pair of ranks"
    DEVICE_MEMORY_BANDWIDTH = "bandwidth of a device's memory"
    DEVICE_FMA_RATE = "FMA rate of a device's vector units"
    LINK_TRAFFIC = "bytes of a device kernel that cross the link to the host"
    PEER_COPY = "copies from each device to every other"
    PEER_COPY_BOTH_WAYS = "copies between each pair of devices in both directions at once"
    PEER_LATENCY = "small copies from each device to every other"
    DEVICE_COLLECTIVE = "bus bandwidth of a collective operation between devices, by size"
    TRAINING_RATE = "images, tokens or samples per second that training of a network takes"
    DATA_WAIT = "share of the time in which training waits for its data"
    BUSY = "share of the time in which training does not wait for its data"
    INPUT_PIPELINE = "time in which a worker makes a batch for training"
    INPUT_RATE = "images per second that an input pipeline delivers"
    INPUT_DECODING = "share of an input pipeline's time that is not reading"
    PROGRAM_START = "time in which programs and libraries are read from their files"


class Direction(StrEnum):
    """The direction of copies between the host and a device."""

    HOST_TO_DEVICE = "h2d"
    DEVICE_TO_HOST = "d2h"
    BOTH = "both"


class HostCopies(Frozen):
    """The role of a figure of copies between the host and a device, or (`is_sum`) all devices of the experiment.

    `at_once`: whether other devices copy at the same time.
    """

    direction: Direction
    at_once: Callable[[Params], bool]
    is_sum: bool = False


class Intensity(Frozen):
    """The flop and memory bytes of a figure, which give its arithmetic intensity in a roofline.

    `name` is the label of such figures there, `counting` a sentence on how both were counted.
    """

    name: str
    flop: float
    bytes: float
    counting: str


class Better(StrEnum):
    """Which way a figure is better."""

    HIGHER = "higher"
    LOWER = "lower"


class Ceiling(Frozen):
    """A measured ceiling: the best rate of other experiments on the same machine, times `factor`.

    It is used if the physical limit is unknown. `roles` and `parameters` select those figures; all other parameters
    must be equal, except `ignored`, which may differ. `{benchmark}` in the derivation is replaced by the name of the
    benchmark that reached it.
    """

    roles: tuple[Role, ...]
    parameters: Params
    factor: float
    derivation: str
    ignored: tuple[str, ...] = ()


class Attainable(Frozen):
    """The largest share of a limit, 0..1, that the counted work can reach, and the reason.

    STREAM counts 24 B of the 32 B that a triad with plain stores moves: at full memory bandwidth, it reaches 75 %.
    """

    share: float = 1.0
    why: str = ""


ALL_OF_IT = Attainable()


LimitOf = Callable[[Machine, Params, Sequence[Sample]], Limit]
"""Derives the upper bound of a figure (for a time: the lower one)."""


def elapsed(sample: Sample) -> float:
    """The value of a figure that is the time of a whole sample."""
    return sample.elapsed_s


class Figure(Frozen):
    """A figure of merit. `series` names the samples that it is computed from, those of its own name unless another is
    given; `value` computes it from one sample, in `unit`.

    `work` describes what is counted ("24 B per element, as STREAM"). `limit` derives its upper bound from the machine,
    the parameters and the samples of one repeat at one point (which include the clock of the run).

    `attainable` is the share of that limit that a healthy machine can approach; only a value above the whole limit is
    impossible. `one_limit_over` names the parameters, and the coordinates of points inside the program, that share one
    limit (threads that share one memory): only the best of those points is compared with it, the others show what a
    setting costs. Of several ceilings, the lowest that was measured holds. `is_there`: whether the benchmark has this
    figure with these parameters. `customary` gives a value in the unit that users of an application expect ("20.1
    ns/day"), in addition to the SI unit. `role` is what it measures, `intensity` (None if the parameters do not
    determine it) its position in a roofline.
    """

    name: str
    unit: Unit
    better: Better
    value: Callable[[Sample], float]
    work: str
    series: str = ""
    limit: LimitOf | None = None
    ceiling: Callable[[Params], Ceiling | tuple[Ceiling, ...] | None] | None = None
    attainable: Callable[[Params], Attainable] = lambda params: ALL_OF_IT
    one_limit_over: tuple[str, ...] = ()
    is_there: Callable[[Params], bool] = lambda params: True
    customary: Callable[[Params, float], str] | None = None
    role: Role | HostCopies | None = None
    intensity: Callable[[Params], Intensity | None] | None = None
    is_secondary: bool = False
    """Whether it only accompanies the others: it may be missing, and it decides neither when there are enough repeats
    nor what `--fail-on` returns."""
    is_of_one_worker: bool = False
    """Whether it is of one process, rank or device of several, so that it has no speedup."""

    def __post_init__(self) -> None:
        """Name the series."""
        if not self.series:
            force_setattr(self, "series", self.name)

    @property
    def is_rate(self) -> bool:
        """Whether it is work per time: of programs that run at once, the sum is what they do together."""
        return self.better is Better.HIGHER and self.unit.endswith("/s")


Bound = Callable[[Machine, Params], tuple[float, float]]


class Check(Frozen):
    """A condition that must hold before any figure is published: a value inside a closed interval.

    The program reports the value under the same name, unless `derive` computes it from the samples. A
    missing value fails the check, so a program cannot pass by not checking; `derive` may return None if there is
    nothing to check against on this machine. `if_nan` says what a value means that is not a number.
    `counts_missing_samples`: the benchmark may know why it fails (`Benchmark.why_samples_missing`). `is_there`: whether
    these parameters give it something to check; if not, no value is reported.
    """

    name: str
    meaning: str
    bound: Bound
    derive: Callable[[Machine, Params, Sequence[Sample]], float | None] | None = None
    if_nan: str = "not a number"
    counts_missing_samples: bool = False
    is_there: Callable[[Params], bool] = lambda params: True


class Native(Program):
    """A program of seatrial, built from `source` (C++20, one file) in each environment.

    `arguments` turns resolved parameters into the command line after `--record`, `--cpus` and `--parent`.

    `commands` are programs on PATH that it starts, as named by the parameters, and `inputs` are arguments that may be
    files which these read: another file is another experiment.

    `takes_turns`: it samples in rounds and can let other programs run in between (native/turns.hpp), so that the
    programs to compare run interleaved. The state of the caches must not affect such a round.

    `library` is what it loads at run time, selected by the parameter of that name: seatrial finds it and adds its path
    to the arguments. "fft" means a library for the parameter `precision`, or none: the program has its own
    transform. "gpu" means device drivers, which the program finds itself: seatrial gets the devices from it (`--list`),
    and resolves the parameters `backend`, `device` and `devices`. A program with MPI ranks (`Benchmark.ranks`) may load
    any of them.

    `variables` are the environment variables that affect such a library: other values make another experiment.

    `starts_containers`: it runs outside of the container of its environment, and starts that itself: seatrial adds the
    command to its arguments. Without a container it is skipped.
    """

    source: Path
    arguments: Callable[[Params], Sequence[str]]
    library: Literal["blas", "fft", "gpu"] | None = None
    variables: tuple[str, ...] = ()
    commands: Callable[[Params], Sequence[str]] | None = None
    inputs: Callable[[Params], Sequence[str]] | None = None
    takes_turns: bool = False
    starts_containers: bool = False

    @property
    def may_start_mpi(self) -> bool:
        """Only if it starts programs that the user names."""
        return self.commands is not None

    def stated_arguments(self, params: Params) -> Sequence[str]:
        """Those of the parameters, without the path of the record and the CPUs."""
        return self.arguments(params)

    def is_chosen_by(self, parameter: str) -> bool:
        """By `argv`, by the parameter with the name of the library, or as a declaration states."""
        return (
            parameter == self.library
            or (parameter == "argv" and self.commands is not None)
            or super().is_chosen_by(parameter)
        )

    def is_sensitive_to(self, variable: str) -> bool:
        """Only to the declared `variables`."""
        return variable in self.variables


class InputExchange(Frozen):
    """Files (name -> content) that replace those of a running program once its file `file` contains `after`: for a
    program that must find other content when it reads the same file again."""

    file: str
    after: bytes
    inputs: Callable[[Params], Mapping[str, bytes]]


class External(Program):
    """A real application or tool, run unchanged if this machine has it; a pure function parses its output.

    `name` is the command to look for on PATH, `install` says how to get it; `alternatives` are other programs that
    measure the same, tried in their order if it is missing. `arguments` takes the resolved parameters and the folder of
    the repeat, in which the program runs and writes `output` ("stdout": what it prints; with a "*": the one file whose
    name matches). `parse` returns samples, checks and notes; its record has no `hello`, and `ended` is False if the
    output is incomplete. Raises ProtocolError for output that it cannot parse.

    `version` are the arguments that print its version; empty if it has no such option. `why_not` says from what that
    prints why this build cannot run with resolved parameters ("": nothing there says so).

    `inputs` are files (path in the folder -> content) that are written before it starts. `preparation` are further
    argument lists of the same program, run one after another by a single process before the one that is measured; a
    list that begins with one of `companions` is of that program instead, which must be installed too.
    `variables` are set (None: unset) when it runs, `defaults` only if the user has not set them; other values of the
    variables in `sensitive_to` make another experiment, if the user has set them and they are not unset here.

    `files` are patterns of further files that it leaves in the folder; `complete` adds what they say (path in the
    folder -> content) to the record of a run that ended. Raises ProtocolError as `parse` does. `is_timed`: the record
    also gets the elapsed time from its start to its end, as the series `WALL`
    (model/benchmark/declaration.py).
    """

    name: str
    install: str
    output: str
    arguments: Callable[[Params, Path], Sequence[str]]
    parse: Callable[[bytes], ProgramRecord]
    alternatives: tuple[External, ...] = ()
    version: tuple[str, ...] = ("--version",)
    why_not: Callable[[str, Params], str] = lambda answer, params: ""
    inputs: Callable[[Params], Mapping[str, bytes]] = lambda params: {}
    preparation: Callable[[Params], Sequence[Sequence[str]]] = lambda params: ()
    variables: Callable[[Params], Mapping[str, str | None]] = lambda params: {}
    defaults: Mapping[str, str] = {}
    sensitive_to: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    input_exchange: InputExchange | None = None
    files: tuple[str, ...] = ()
    complete: Callable[[ProgramRecord, Mapping[str, bytes]], ProgramRecord] = lambda record, files: record
    is_timed: bool = False

    @property
    def may_start_mpi(self) -> bool:
        """Unknown, so assumed."""
        return True


class DeclaredCommand(Native, kw_only=True):
    """A program that a user declares in a file, without ranks: started and timed by the program of `command`.

    `declaration` has its figures and checks, `folder` its files.
    """

    declaration: Declaration
    folder: Path


class DeclaredRanks(External, kw_only=True):
    """The same with MPI ranks: started by an MPI launcher."""

    declaration: Declaration
    folder: Path


class ImportedOnly(Program):
    """No program: the figures come from the result files of other tools (`seatrial import`), or from results of a
    `declaration` that is not here. `why` is the message that explains it."""

    why: str
    declaration: StoredDeclaration | None = None

    can_run: ClassVar[bool] = False


class Benchmark(Frozen):
    """One measurable program with everything that the rest of seatrial needs to know about it.

    `placement` returns the CPU of each thread, rank by rank if `ranks` is "mpi" (program.py); `prepare` resolves
    words such as "all" into numbers (raising Skip if the parameters make no sense on this machine); `on_devices` does
    the same once `devices` is resolved, and it is known whether these are CPUs (in place of GPUs); `trial` lists the
    parameter sets of the standard trial of a machine; `estimate_s` is the time of one repeat, for plans and time
    limits.
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
    trial: tuple[Params, ...] = ()
    is_in_trial: Callable[[Machine], bool] = lambda machine: True
    """Whether the standard trial of this machine includes it: False if the machine has no such hardware."""
    sweep: tuple[Params, ...] = ()
    """The parameter sets that `run NAME` measures, of which the best is reported, unless the user sets one of these
    parameters; empty: all defaults."""
    estimate_s: Callable[[Params], float] = lambda params: 1.0
    between_nodes: Callable[[Params, Sequence[Sample]], Sequence[float]] | None = None
    """On several nodes: the least bytes that each node sends and receives together, by its samples, in the order of
    the nodes; None: unknown, so that only a node without any traffic is noticed."""
    why_samples_missing: Callable[[Params, Mapping[str, object]], str] = lambda params, notes: ""
    """Why a run to the end may be without some samples, or all, by the notes of the program, and what to do; "": they
    do not say."""
    probed: Params = field(default_factory=dict)
    """Defaults that probes need, whose counters are of a whole repeat."""
    verified: bool = True
    """False as long as it was never run on the hardware that it is for; `list` then shows `unverified`."""
    evidence: str = ""
    """What its adapter was checked with, if it was never run."""

    @property
    def may_use_mpi(self) -> bool:
        """Whether a repeat may start MPI processes: its own ranks, or a program that the user names."""
        return self.ranks == "mpi" or self.program.may_start_mpi

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name. Raises UnknownNameError with the nearest names."""
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
        """The figure of that name. Raises UnknownNameError with the nearest names."""
        for figure in self.figures:
            if figure.name == name:
                return figure
        raise UnknownNameError(f"figure of {self.name}", name, (f.name for f in self.figures))

    def main_figure(self) -> Figure:
        """The figure that the name of the benchmark stands for: the only one that is not secondary, with its default
        parameters. Raises UsageError with its figures if there are several."""
        defaults = self.point({})
        main = [figure for figure in self.figures if figure.is_there(defaults) and not figure.is_secondary]
        if len(main) == 1:
            return main[0]
        raise several_figures(self.name, [figure.name for figure in main or self.figures])


def several_figures(benchmark: str, figures: Iterable[str]) -> UsageError:
    """The error for the name of a benchmark in place of a figure, where it has several."""
    names = [f"{benchmark}:{figure}" for figure in figures]
    return UsageError(f"{benchmark} has {len(names)} figures", f"name one of them: {', '.join(names)}")


class Skip(Exception):
    """Raised by `prepare` or `placement` for parameters that make no sense, or do not fit, on this machine."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def area_of(name: str) -> str:
    """The area of a benchmark: the part of its name before the first dot."""
    return name.partition(".")[0]
