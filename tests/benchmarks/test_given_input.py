"""Applications that cannot run here: a program that leaves a recorded output stands for each, at process level."""

from __future__ import annotations

from dataclasses import dataclass, field

from imports.log_damage import log

from seatrial.benchmarks import benchmark_named, registry
from seatrial.errors import NoCompilerError
from seatrial.model.given_input import GivenInput

UNVERIFIED = [b for b in registry().values() if isinstance(b.program, GivenInput) and not b.verified]
NO_COMPILER = NoCompilerError("none")


@dataclass(frozen=True)
class Recorded:
    """An application whose program leaves this log, which `edits` make one of a small run."""

    name: str
    log: str
    arguments: str
    figures: dict[str, float]
    edits: tuple[tuple[str, str], ...] = ()
    settings: dict[str, str] = field(default_factory=lambda: {"case": "own", "input": "start.in"})


OF_ONE = (("Wall-clock", "Wall-clock"),)
RECORDED = [
    Recorded("apps.namd", "namd/namd2-tiny.txt", "+p1 start.in", {"step": 0.012974, "time": 14.917}),
    Recorded(
        "apps.cp2k",
        "cp2k/cp2k7.1-H2O64-1node-128cores-2threads.txt",
        "-i start.in",
        {"time": 26.040},
        (
            (
                "number of message passing processes                             64",
                "number of message passing processes 1",
            ),
            (
                "Number of threads for this process                                         2",
                "Number of threads for this process 1",
            ),
        ),
    ),
    Recorded("apps.nwchem", "nwchem/nwchem-c240-128ranks.txt", "start.in", {"time": 745.1}),
    Recorded("apps.vasp", "vasp/vasp6.4.1-CdTe-1node.txt", "", {"time": 6139.715}, settings={"case": "own"}),
    Recorded("apps.castep", "castep/castep-al3x3-16nodes-2048ranks.txt", "start.in", {"time": 139.28}),
    Recorded("apps.wrf", "wrf/wrf4.1.4-rsl-out-complete.txt", "", {"step": 0.373}, settings={"case": "own"}),
    Recorded("apps.hoomd", "hoomd/hoomd2.x-hexagon-metadata.txt", "start.in", {"step": 1 / 7.85}),
    Recorded("apps.ls-dyna", "ls-dyna/r16-smp-d-one-cycle-messag.txt", "i=start.in ncpu=1", {"time": 2.068}),
    Recorded("apps.fluent", "fluent/performance-timer-two-blocks.txt", "3ddp -g -t1 -i start.in", {"time": 41.665}),
    Recorded("apps.cfx", "cfx/cfx2025r1-final-iteration-and-tail.txt", "-def start.in", {"time": 416.12}),
    Recorded(
        "apps.abaqus", "abaqus/std2021-nlgeom-dat.txt", "job=run input=start.in cpus=1 interactive", {"time": 1.0}
    ),
    Recorded("apps.pmemd", "amber/pmemd11-10000steps-complete.txt", "", {"ns_time": 0}),
]


def text_of(recorded: Recorded) -> bytes:
    text = log(recorded.log).decode("utf-8", "surrogateescape")
    for before, after in recorded.edits:
        assert before in text, before
        text = text.replace(before, after)
    return text.encode("utf-8", "surrogateescape")


def test_x() -> None:
    for one in RECORDED:
        try:
            b = benchmark_named(one.name)
            from seatrial.imports.readers import reader_of

            f = reader_of(b.program.reader).read(text_of(one))
            print(
                one.name,
                len(f.experiments),
                [dict(e.parameters) for e in f.experiments],
                [(s.series, s.elapsed_s) for s in f.experiments[0].samples][:4],
            )
        except Exception as e:
            print(one.name, "ERR", e)
