"""Comparisons whose sides differ by a planted cause, under `seatrial run STUDY` and `seatrial compare`.

Where: two runs of an MPI program in one study with `probes: [mpi]`; what is named is why their times differ. Listed:
two results folders that differ in one thing; what is named are the differences that the user did not ask for. In both,
a verdict of faster or slower on a control counts as a cause.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from causes.case import BOTH, QUIET_ONLY, Bench, Case, Said, Skip, planted
from causes.libraries import LIBRARIES, Library, built
from causes.loads import quota, spinners

SOURCE = Path(__file__).with_name("comparisons.c")
BLOCKS = 8
STEPS = "400"
APART = frozenset({"time of measurement", "load", "CPU time of other processes", "program build"})
"""True of two folders that were measured one after the other on a machine that others use."""
THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PREFIX = "environment."


@dataclass(frozen=True)
class Where:
    """Two runs of the program. `prefix` starts the candidate, `variable` is set for it; `cpus` restricts both."""

    name: str
    steps: tuple[str, str]
    right: frozenset[str] = frozenset()
    quota: float | None = None
    same_cpu: bool = False
    variable: tuple[str, str, str] | None = None
    library: str = ""


WHERE = (
    Where("all ranks compute longer", ("even", "longer"), planted("computation")),
    Where("one rank computes longer", ("even", "imbalance"), planted("imbalance")),
    Where("ranks compute in turn", ("even", "turns"), planted("late-at-collective", "not-known")),
    Where("thousands of times the calls", ("even", "calls"), planted("number-of-calls")),
    Where("larger messages", ("small", "large"), planted("message-sizes")),
    Where("ranks sleep in each step", ("even", "blocked"), planted("blocked")),
    Where("a quota on one side", ("even", "even"), planted("cpu-quota"), quota=0.8),
    Where("one CPU for two ranks", ("even", "even"), planted("ranks-on-the-same-cpus"), same_cpu=True),
    Where(
        "messages by TCP instead of shared memory",
        ("large", "large"),
        planted("transfer"),
        variable=("OMPI_MCA_btl", "self,vader", "self,tcp"),
        library="Open MPI",
    ),
    Where("the same on both sides", ("even", "even")),
    Where("the same exchanges on both sides", ("large", "large")),
)


def _where(bench: Bench, one: Where, library: Library) -> Said:
    if one.library not in ("", library.name):
        raise Skip(f"for {one.library} only")
    program = str(built(library, SOURCE))
    other = bench.folder / "another"
    shutil.copy(program, other)  # another path of the same binary: two runs of one command would be one experiment
    commands = [
        [*library.launcher(2), path, step, STEPS] for path, step in zip((program, str(other)), one.steps, strict=True)
    ]
    axis: dict[str, list[Any]] = {"argv": commands}
    benchmark: dict[str, Any] = {}
    if one.variable is not None:
        axis = {f"{PREFIX}{one.variable[0]}": list(one.variable[1:])}
        benchmark = {"argv": commands[0]}
    with contextlib.ExitStack() as stack:
        if one.quota is not None:
            commands[1][:0] = stack.enter_context(quota(one.quota))
        if one.same_cpu:
            unbound = ["--bind-to", "none"] if library.name == "Open MPI" else []
            commands[1][1:1] = unbound
            commands[0][1:1] = unbound
            commands[1][:0] = ["taskset", "-c", str(bench.cpus[0])]
        answer = _studied(bench, {"command": benchmark}, axis, probes=["mpi"], blocks=BLOCKS)
    return _causes(answer, is_control=not one.right)


def _causes(answer: Mapping[str, Any], *, is_control: bool) -> Said:
    """Why the sides differ; for a control also a verdict that they do."""
    where = answer["study"]["where"]
    found = [(one["cause"], one["share"]) for each in where for one in each.get("diagnoses", ())]
    found += _verdicts(answer["study"]) if is_control else []
    said = [one["said"] for each in where for one in each.get("diagnoses", ())]
    return Said(tuple(found), " ".join([*(each["said"] for each in where), *said]))


def _verdicts(document: Mapping[str, Any]) -> list[tuple[str, float | None]]:
    """Differences that are claimed. One verdict in twenty on equal sides is wrong by design."""
    verdicts = [one["verdict"] for one in document["comparisons"]]
    return [(verdict, None) for verdict in verdicts if verdict in ("faster", "slower")]


def _studied(
    bench: Bench,
    benchmarks: Mapping[str, Any],
    axes: Mapping[str, Sequence[Any]],
    *,
    results: str = "results",
    probes: Sequence[str] = (),
    blocks: int = 0,
    prefix: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> Any:
    """The document of a study. `blocks` compares along the only axis; 0 compares nothing."""
    study: dict[str, Any] = {"study": "planted", "question": "Does it differ?", "benchmarks": benchmarks}
    study |= {"axes": axes} if axes else {}
    study |= {"probes": list(probes), "repeat": {"budget": "90s", "max": blocks or BLOCKS}}
    study |= {"compare": next(iter(axes))} if blocks else {}
    path = bench.folder / f"{results}.yaml"
    path.write_text(json.dumps(study))
    words = ("run", str(path), "--results", str(bench.folder / results), "--format", "json")
    return bench.seatrial(*words, prefix=prefix, variables={**os.environ, **(variables or {})})


@dataclass(frozen=True)
class Side:
    """One folder: a benchmark with its parameters, run behind `prefix`, with `variables`, while `around` holds."""

    benchmarks: Mapping[str, Any]
    prefix: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    around: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext


@dataclass(frozen=True)
class Listed:
    """Two folders that differ in one thing. `right` are the names of differences; `allowed` follow from it."""

    name: str
    sides: Callable[[Bench], tuple[Side, Side]]
    right: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    needs_cpus: int = 1
    loads: frozenset[Any] = BOTH
    is_quick: bool = False


def _listed(bench: Bench, one: Listed) -> Said:
    for name, side in zip(("a", "b"), one.sides(bench), strict=True):
        with side.around():
            _studied(bench, side.benchmarks, {}, results=name, prefix=side.prefix, variables=side.variables)
    answer = bench.seatrial("compare", "a", "b", "--format", "json")
    unintended = [each for each in answer["differences"] if not each["intended"]]
    names = [each["what"].removesuffix(f" {bench.folder / 'data'}") for each in unintended]
    found: list[tuple[str, float | None]] = [(name, None) for name in names]
    found.sort(key=lambda each: each[0] not in one.right)
    said = "; ".join(f"{each['what']}: {each['baseline']} -> {each['candidate']}" for each in unintended)
    return Said((*found, *_verdicts(answer)), said)


def _program(bench: Bench, name: str, text: str = "int main(void) { return 0; }", *flags: str) -> str:
    """A program of this name in the folder. Raises Skip."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Skip("a C compiler is missing")
    source = bench.folder / "planted.c"
    source.write_text(text)
    subprocess.run([compiler, "-O1", str(source), "-o", str(bench.folder / name), *flags], check=True)
    return str(bench.folder / name)


def _variable(bench: Bench) -> tuple[Side, Side]:
    run = {"command": {"argv": [_program(bench, "planted")]}}
    return Side(run), Side(run, variables={"MALLOC_ARENA_MAX": "1"})


def _input(bench: Bench) -> tuple[Side, Side]:
    data = bench.folder / "data"
    run = {"command": {"argv": ["cat", str(data)]}}

    def holds(text: str) -> Callable[[], contextlib.AbstractContextManager[None]]:
        def write() -> contextlib.AbstractContextManager[None]:
            data.write_text(text)
            os.utime(data, (1_700_000_000, 1_700_000_000))  # a file written during the run would be an output
            return contextlib.nullcontext()

        return write

    return Side(run, around=holds("one\n" * 9)), Side(run, around=holds("two\n" * 9))


def _library(bench: Bench) -> tuple[Side, Side]:
    for version in ("1", "2"):
        (bench.folder / version).mkdir()
        _program(bench, f"{version}/libplanted.so", f"int planted(void) {{ return {version}; }}", "-shared", "-fPIC")
    text = "int planted(void); int main(void) { return planted() < 0; }"
    program = _program(bench, "planted", text, f"-L{bench.folder / '1'}", "-lplanted")
    run = {"command": {"argv": [program]}}
    first, second = (Side(run, variables={"LD_LIBRARY_PATH": str(bench.folder / version)}) for version in "12")
    return first, second


def _one_cpu(bench: Bench) -> tuple[Side, Side]:
    run = {"command": {"argv": [_program(bench, "planted")]}}
    return Side(run), Side(run, prefix=("taskset", "-c", str(bench.cpus[0])))


def _kernels(bench: Bench) -> tuple[Side, Side]:
    run = {"cpu.gemm": {"n": 512, "threads": 1}}
    return Side(run), Side(run, variables={"OPENBLAS_CORETYPE": "Prescott"})


def _transport(bench: Bench) -> tuple[Side, Side]:
    run = {"mpi.latency": {"size_B": 8}}
    first, second = (Side(run, variables={"OMPI_MCA_btl": value}) for value in ("self,vader", "self,tcp"))
    return first, second


def _pages(bench: Bench) -> tuple[Side, Side]:
    if not os.access(THP, os.W_OK):
        raise Skip(f"{THP} cannot be written")

    @contextlib.contextmanager
    def without() -> Iterator[None]:
        kept = THP.read_text().split("[")[1].split("]")[0]
        THP.write_text("never")
        try:
            yield
        finally:
            THP.write_text(kept)

    run = {"memory.stream": {}}
    return Side(run), Side(run, around=without)


def _rebuilt(bench: Bench) -> tuple[Side, Side]:
    program = _program(bench, "planted", _SPIN, "-Wl,--build-id=0x01")
    other = _program(bench, "other", _SPIN, "-Wl,--build-id=0x02")

    def replaced() -> contextlib.AbstractContextManager[None]:
        Path(other).replace(program)
        return contextlib.nullcontext()

    run = {"command": {"argv": [program]}}
    return Side(run), Side(run, around=replaced)


def _drifting(bench: Bench) -> tuple[Side, Side]:
    """An equal program, rebuilt; others start to use all CPUs between the sides."""
    first, second = _rebuilt(bench)

    @contextlib.contextmanager
    def loaded() -> Iterator[None]:
        with second.around(), spinners(bench.cpus):
            yield

    return first, Side(second.benchmarks, around=loaded)


def _again(bench: Bench) -> tuple[Side, Side]:
    run = {"command": {"argv": [_program(bench, "planted", _SPIN)]}}
    return Side(run), Side(run)


_SPIN = "int main(void) { volatile double x = 0; for (long k = 0; k < 20000000; k++) x += k; return 0; }"
_CODE = "equal machine code"

LISTED = (
    Listed("an environment variable", _variable, planted("variable MALLOC_ARENA_MAX"), is_quick=True),
    Listed("another input file", _input, planted("input file"), is_quick=True),
    Listed(
        "another version of a library",
        _library,
        planted("library libplanted.so"),
        allowed=frozenset({"variable LD_LIBRARY_PATH"}),
    ),
    Listed("one CPU instead of two", _one_cpu, planted("affinity"), needs_cpus=2),
    Listed("other BLAS kernels", _kernels, planted("variable OPENBLAS_CORETYPE", "note blas_core")),
    Listed("another transport of MPI", _transport, planted("variable OMPI_MCA_btl"), needs_cpus=2),
    Listed("no transparent huge pages", _pages, planted("note huge_pages", "fact transparent_hugepage")),
    Listed("the same program twice", _again, is_quick=True),
    Listed(
        "an equal program, rebuilt", _rebuilt, allowed=frozenset({"program planted"}), words=(_CODE,), is_quick=True
    ),
    Listed(
        "an equal program, rebuilt, on a machine that drifts",
        _drifting,
        allowed=frozenset({"program planted"}),
        words=(_CODE,),
        loads=QUIET_ONLY,
    ),
)


def _labels(bench: Bench) -> Said:
    program = _program(bench, "planted", _SPIN)
    answer = _studied(bench, {"command": {"argv": [program]}}, {"label": ["a", "b"]}, blocks=12)
    return _of_study(answer)


def _interleaved(bench: Bench) -> Said:
    """A rebuilt equal program beside the other in one study, while load comes and goes."""
    programs = [_program(bench, name, _SPIN, f"-Wl,--build-id=0x0{k}") for k, name in enumerate(("one", "two"), 1)]
    with spinners(bench.cpus[:1]):
        answer = _studied(bench, {"command": {}}, {"argv": [[program] for program in programs]}, blocks=12)
    return _of_study(answer)


def _other_path(bench: Bench) -> Said:
    program = _program(bench, "one", _SPIN)
    shutil.copy(program, bench.folder / "two")
    answer = _studied(bench, {"command": {}}, {"argv": [[program], [str(bench.folder / "two")]]}, blocks=12)
    return _of_study(answer)


def _of_study(answer: Mapping[str, Any]) -> Said:
    """Unintended differences and claimed ones."""
    study = answer["study"]
    found: list[tuple[str, float | None]] = [(one["what"], None) for one in study["differences"] if not one["intended"]]
    said = "; ".join(f"{one['what']}: {one['baseline']} -> {one['candidate']}" for one in study["differences"])
    return Said((*found, *_verdicts(study)), said)


CONTROLS: tuple[tuple[str, Callable[[Bench], Said]], ...] = (
    ("two labels of one program", _labels),
    ("an equal program, rebuilt, side by side beside a spinner", _interleaved),
    ("another path of one program", _other_path),
)


def _cases() -> Iterator[Case]:
    for library in LIBRARIES:
        for one in WHERE:
            if one.library in ("", library.name):
                yield Case(
                    "comparisons",
                    one.name,
                    lambda bench, one=one, library=library: _where(bench, one, library),
                    right=one.right,
                    variant=library.name,
                    loads=QUIET_ONLY if one.quota or one.same_cpu else BOTH,
                    needs_cpus=2,
                )
    for listed in LISTED:
        yield Case(
            "comparisons",
            listed.name,
            lambda bench, listed=listed: _listed(bench, listed),
            right=listed.right,
            allowed=(listed.allowed | APART) - listed.right,
            words=listed.words,
            loads=listed.loads,
            is_quick=listed.is_quick,
            needs_cpus=listed.needs_cpus,
        )
    for name, say in CONTROLS:
        yield Case("comparisons", name, say, allowed=APART, needs_cpus=2)


CASES = tuple(_cases())
