"""Applications that cannot run here: a program that leaves a recorded output stands for each, at process level."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from applications.log_damage import log, needs_logs
from applications.result_texts import PAM_CRASH
from engine.harness import run_one
from made_up import made_up_machine
from msgspec import structs
from one_point import keep_point, prepare_point

from seatrial.benchmarks import benchmark_named, registry
from seatrial.engine.judge import failed_check
from seatrial.engine.ready import Ready, Refused
from seatrial.errors import NoCompilerError
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.given_input import GivenInput
from seatrial.model.environment.site import Site
from seatrial.model.results.record import RepeatRecord, readings
from seatrial.model.results.sample import State
from seatrial.plan.site_in_force import use_site_within
from seatrial.store.folder import ResultsFolder

UNVERIFIED = sorted(n for n, b in registry().items() if isinstance(b.program, GivenInput) and not b.verified)
MACHINE = made_up_machine(cores=2, channels=2)
OWN = {"case": "own", "input": "start.in"}


@dataclass(frozen=True)
class Recorded:
    """An application whose program leaves this log, which `edits` make that of a run with one rank; `until` cuts it
    off before this text, and lines that match `without` are left out."""

    name: str
    log: str
    arguments: str
    figures: dict[str, float]
    edits: tuple[tuple[str, str], ...] = ()
    settings: dict[str, str] = field(default_factory=lambda: dict(OWN))
    until: str = ""
    without: str = ""

    def text(self) -> str:
        text = log(self.log).decode("utf-8", "surrogateescape")
        for before, after in self.edits:
            assert before in text, before
            text = text.replace(before, after)
        if self.without:
            text = re.sub(rf"(?m)^{self.without}\n", "", text)
        return text[: text.index(self.until)] if self.until else text


CP2K = Recorded(
    "apps.cp2k",
    "cp2k/cp2k7.1-H2O64-1node-128cores-2threads.txt",
    "-i start.in",
    {"wall": 26.040},
    (
        ("number of message passing processes                            64", "number of message passing processes 1"),
        ("threads for this process                                    2", "threads for this process 1"),
    ),
)
RECORDED = [
    Recorded("apps.namd", "namd/namd2-tiny.txt", "+p1 start.in", {"step": 0.012974, "wall": 14.917022}),
    CP2K,
    Recorded(
        *("apps.nwchem", "nwchem/nwchem-c240-128ranks.txt", "start.in", {"wall": 745.1}),
        edits=(("nproc           =      128", "nproc           =        1"),),
    ),
    Recorded(
        *("apps.vasp", "vasp/vasp6.4.1-CdTe-1node.txt", "", {"wall": 6139.715, "loop": 6120.8463}),
        edits=(
            ("running  128 mpi-ranks", "running    1 mpi-ranks"),
            ("each k-point on   64 cores,    2", "on 1 core, 1"),
        ),
        settings={"case": "own"},
    ),
    Recorded(
        *("apps.castep", "castep/castep-al3x3-16nodes-2048ranks.txt", "al3x3", {"wall": 139.28}),
        edits=(("over 2048 processes", "over 1 processes"),),
        settings={"case": "al3x3"},
    ),
    Recorded(
        *("apps.wrf", "wrf/wrf4.1.4-rsl-out-complete.txt", "", {"step": 0.3734585}),
        edits=(("Ntasks in X            2 , ntasks in Y            4", "Ntasks in X 1 , ntasks in Y 1"),),
        settings={"case": "own"},
    ),
    Recorded("apps.hoomd", "hoomd/hoomd2.x-hexagon-metadata.txt", "start.in", {"step": 0.12743803}),
    Recorded(
        *("apps.ls-dyna", "ls-dyna/r16-smp-d-one-cycle-messag.txt", "i=start.in ncpu=1", {"wall": 2.068}),
        edits=(("Number of CPU's    4", "Number of CPU's    1"), ("using  4 SMP", "using  1 SMP")),
    ),
    Recorded(
        *("apps.fluent", "fluent/performance-timer-two-blocks.txt", "3ddp -g -t1 -i start.in", {"wall": 41.665}),
        edits=(("on 6 compute nodes", "on 1 compute nodes"), ("250.890 sec", "40.890 sec")),
        until="  Performance Timer for 56",
    ),
    Recorded("apps.cfx", "cfx/cfx2025r1-final-iteration-and-tail.txt", "-def start.in", {"wall": 416.12}),
    Recorded(
        "apps.abaqus", "abaqus/std2021-nlgeom-dat.txt", "job=run input=start.in cpus=1 interactive", {"wall": 1.0}
    ),
    Recorded(
        "apps.pmemd",
        "amber/pmemd11-10000steps-complete.txt",
        "-O -i mdin -o mdout -p prmtop -c inpcrd -r restrt -inf mdinfo",
        {"ns_time": 1563.67},
        (("AMBER/MPI version on    4 nodes", "AMBER/MPI version on    1 nodes"),),
        {"case": "own"},
    ),
    Recorded(
        *("apps.psdns", "psdns/m-psdns-2048-8tasks.txt", "", {"wall": 181.2}),
        edits=(
            ("tasks=      8   iproc, proc=   2 x    4", "tasks= 1 iproc, proc= 1 x 1"),
            ("over     8 MPI tasks=     159.343", "over 1 MPI tasks= 19.918"),
        ),
        settings={"case": "own"},
    ),
    Recorded(
        *("apps.opensbli", "opensbli/opensbli-tgv512-1node.txt", "", {"wall": 739.091139, "step": 7.39091139}),
        settings={},
        without=r" ?rank (?!0 )[0-9]+ \(.*\)",
    ),
    Recorded(
        *("apps.hpl-nvidia", "hpl-nvidia/hpl-nvidia25-h100-1gpu.txt", "--dat HPL.dat", {"rate": 4.208e13}), settings={}
    ),
    Recorded(
        *("apps.hpcg-nvidia", "hpcg-nvidia/hpcg-nvidia25.4-h100-1gpu.txt", "--nx 256 --ny 256 --nz 256 --rt 60"),
        {"rating": 515.269e9},
        settings={},
    ),
    Recorded(
        *("apps.hpl-mxp", "hpl-mxp/hpl-mxp-nvidia-h100-4gpu.txt"),
        "--n 190464 --nb 1024 --nprow 1 --npcol 1 --nporder row --gpu-affinity 0",
        {"rate": 1.9768e14},
        (
            ("NPROW = 2, NPCOL = 2", "NPROW = 1, NPCOL = 1"),
            ("per GPU =   49420.46", "per GPU = 197680"),
            ("per GPU =  218987.25", "per GPU = 875950"),
        ),
        {"n": "190464"},
    ),
    Recorded(
        *("apps.io500", "io500/daos-lrz-2023-result.txt", "start.in", {"score": 2111.059073}),
        edits=(("procs           = 2688", "procs           = 1"),),
    ),
    Recorded(
        *("apps.dlio", "dlio/summary.json.txt"),
        "workload=unet3d_a100 ++workload.workflow.generate_data=False ++workload.workflow.train=True "
        "++workload.dataset.data_folder=data ++workload.dataset.num_files_train=16 hydra.run.dir=output",
        {"train_throughput": 5.095023867},
        (('"num_accelerators": 2', '"num_accelerators": 1'),),
        settings={},
    ),
]
NO_FOLDER = {"apps.opensbli", "apps.hpl-nvidia", "apps.hpcg-nvidia", "apps.hpl-mxp", "apps.dlio"}
"""They make their input themselves."""


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A folder with an input, and with the leftovers of an earlier run."""
    folder = tmp_path / "given"
    folder.mkdir()
    for name in ("start.in", "al3x3.param", "al3x3.cell", "mdin", "prmtop", "inpcrd"):
        (folder / name).write_text(f"the file {name}\n")
    (folder / "tables").mkdir()
    (folder / "tables" / "rain.dat").write_text("a table\n")
    for name in ("OUTCAR", "rsl.out.0000", "old.castep", "old.out", "messag", "run.dat", "mdout", "metadata.json"):
        (folder / name).write_text("of an earlier run\n")
    return folder


def stand_in(name: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, exit_status: int = 0) -> Path:
    """A program of this name, first on PATH, that leaves `text` where the application leaves its output, writes to an
    input file, and notes its arguments in the file that is returned."""
    program = benchmark_named(name).program
    assert isinstance(program, GivenInput)
    output = "/dev/stdout" if program.output == "stdout" else program.output.replace("*", "made")
    (folder / "bin").mkdir(exist_ok=True)
    sample, noted = folder / "sample", folder / "noted"
    sample.write_bytes(text.encode("utf-8", "surrogateescape"))
    script = folder / "bin" / program.name
    script.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = --version ] && {{ echo {program.name} 1.0; exit; }}\n'
        f'echo "$*" > {shlex.quote(str(noted))}\n'
        f"ls >> {shlex.quote(str(noted))}\n"
        "[ -f start.in ] && echo changed > start.in\n"
        f"mkdir -p {shlex.quote(str(Path(output).parent))}\n"
        f"cat {shlex.quote(str(sample))} > {output}\n"
        f"exit {exit_status}\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return noted


def prepared(name: str, results: ResultsFolder, **settings: str) -> Ready | Refused:
    one = "processes" if benchmark_named(name).ranks == "one" else "ranks"
    ready = prepare_point(name, MACHINE, {one: "1", **settings}, NoCompilerError("none"))
    keep_point(ready, MACHINE, results)
    return ready


def measured(name: str, folder: Path, **settings: str) -> tuple[Benchmark, Ready, RepeatRecord]:
    results = ResultsFolder.create(folder)
    ready = prepared(name, results, **settings)
    assert isinstance(ready, Ready), ready
    return benchmark_named(name), ready, run_one(ready, MACHINE, results)


def test_every_application_that_was_never_run_says_what_it_was_checked_with() -> None:
    assert len(UNVERIFIED) >= 11
    assert {benchmark_named(name).evidence for name in UNVERIFIED} == {
        "format seen, run unverified",
        "format from documentation, run unverified",
    }
    with_samples = {one.name for one in RECORDED}
    seen = {name for name in UNVERIFIED if "seen" in benchmark_named(name).evidence}
    assert seen <= with_samples


@needs_logs
@pytest.mark.real
@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.name)
def test_a_run_is_read(recorded: Recorded, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = stand_in(recorded.name, recorded.text(), tmp_path, monkeypatch)
    folder = {} if recorded.name in NO_FOLDER else {"inputs": str(given)}
    benchmark, ready, record = measured(recorded.name, tmp_path / "results", **folder, **recorded.settings)
    assert record.outcome.is_ok, record.outcome
    found = {r.figure.name: r.value for r in readings(benchmark, MACHINE, ready.point.parameters, record.samples)}
    assert {name: found[name] for name in recorded.figures} == pytest.approx(recorded.figures, rel=1e-5)
    arguments, *files = noted.read_text().splitlines()
    assert arguments == recorded.arguments
    assert not folder or {"start.in", "tables"} <= set(files)
    program = benchmark.program
    assert isinstance(program, GivenInput)
    assert program.output == "stdout" or not [name for name in files if Path(name).match(program.output)], (
        "what an earlier run left was copied"
    )
    assert (given / "start.in").read_text() == "the file start.in\n", "the user's file was written to"


@needs_logs
@pytest.mark.real
def test_a_run_of_another_size_is_invalid(given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 64 ranks where one was asked for; of another system than the published one."""
    stand_in("apps.cp2k", replace(CP2K, edits=()).text(), tmp_path, monkeypatch)
    _, _, record = measured("apps.cp2k", tmp_path / "ranks", inputs=str(given), **OWN)
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith("ranks: 64, must be 1")
    (given / "f1atpase.namd").write_text("a configuration\n")
    for name in ("f1atpase.psf", "f1atpase.pdb"):
        (given / name).write_text("atoms\n")
    stand_in("apps.namd", RECORDED[0].text(), tmp_path, monkeypatch)
    _, _, record = measured("apps.namd", tmp_path / "atoms", inputs=str(given), case="f1atpase")
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith("atoms: 507, must be 327506")


@needs_logs
@pytest.mark.real
def test_a_number_that_the_log_does_not_state_never_passes(
    given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process needs no statement, but the page says that it was not checked; two may have run as one."""
    cfx = next(one for one in RECORDED if one.name == "apps.cfx")
    stand_in(cfx.name, cfx.text(), tmp_path, monkeypatch)
    _, _, one = measured(cfx.name, tmp_path / "one", inputs=str(given), **OWN)
    assert one.outcome.is_ok and one.seen["remarks"] == ["processes: not stated in the log, so not checked"]
    _, _, two = measured(cfx.name, tmp_path / "two", inputs=str(given), processes="2", **OWN)
    assert two.outcome.state is State.INVALID
    assert two.outcome.reason.startswith("processes: not stated in its log, must be 2")
    hoomd = next(one for one in RECORDED if one.name == "apps.hoomd")
    stand_in(hoomd.name, hoomd.text().replace('"num_ranks": 1', '"ranks_of_it": 1'), tmp_path, monkeypatch)
    _, _, silent = measured(hoomd.name, tmp_path / "hoomd", inputs=str(given), **OWN)
    assert silent.outcome.is_ok and silent.seen["remarks"] == ["ranks: not stated in the log, so not checked"]
    (check,) = (check for check in benchmark_named(hoomd.name).checks if check.name == "ranks")
    samples = [structs.replace(silent.samples[0], extra={})]
    assert failed_check(benchmark_named(hoomd.name), MACHINE, {"ranks": 2, "case": "own"}, samples, {}, {}) is not None
    assert check.if_nan == "not stated in its log"


@pytest.mark.real
@pytest.mark.parametrize(("elapsed_s", "state"), [("0.25", State.OK), ("460.75", State.INVALID)])
def test_a_time_that_our_clock_contradicts(
    elapsed_s: str, state: State, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in("apps.pam-crash", PAM_CRASH.replace("460.75", elapsed_s).replace("230.50", "0.10"), tmp_path, monkeypatch)
    _, _, record = measured("apps.pam-crash", tmp_path / "results", inputs=str(given), **OWN)
    assert record.outcome.state is state and record.outcome.check == ("" if state is State.OK else "clock")


@needs_logs
@pytest.mark.real
def test_the_site_file_names_programs(given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before those on PATH, and an alternative before the first name."""
    stand_in("apps.namd", RECORDED[0].text(), tmp_path, monkeypatch)
    other = tmp_path / "elsewhere"
    other.write_bytes((tmp_path / "bin" / "namd3").read_bytes())
    other.chmod(0o755)
    site = Site(file="site.yaml", programs={"namd2": other})
    with use_site_within(site, None):
        _, ready, record = measured("apps.namd", tmp_path / "results", inputs=str(given), **OWN)
    assert record.outcome.is_ok and ready.program.path == other
    other.unlink()
    with use_site_within(replace(site, programs={"namd3": other}), None):
        refused = prepared("apps.namd", ResultsFolder.create(tmp_path / "refused"), inputs=str(given), **OWN)
    assert isinstance(refused, Refused) and f"site.yaml says that namd3 is {other}, which is not a program" in str(
        refused.outcome.reason
    )


@needs_logs
@pytest.mark.real
@pytest.mark.parametrize("cut", [True, False], ids=["cut", "failed"])
def test_a_run_that_did_not_end_has_no_figure(
    cut: bool, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = CP2K.text()
    stand_in("apps.cp2k", text[: len(text) // 2] if cut else text, tmp_path, monkeypatch, exit_status=0 if cut else 3)
    _, _, record = measured("apps.cp2k", tmp_path / "results", inputs=str(given), **OWN)
    assert record.outcome.state is State.FAILED
    assert ("not ended" if cut else "3") in record.outcome.reason, record.outcome


@pytest.mark.real
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"case": "h2o-64"}, "set inputs to the folder with H2O-64.inp (from https://github.com/cp2k/cp2k"),
        ({"case": "own", "inputs": "GIVEN"}, "set input to its name"),
        ({"case": "h2o-64", "inputs": "GIVEN"}, "has no H2O-64.inp, which h2o-64 needs"),
        ({"case": "own", "inputs": "GIVEN", "input": "nix.inp"}, "has no nix.inp"),
        ({"case": "own", "inputs": "GIVEN/none", "input": "a"}, "is not a folder"),
        ({"case": "own", "inputs": "GIVEN/empty", "input": "a"}, "is empty"),
    ],
)
def test_an_input_that_is_not_given_is_refused(
    settings: dict[str, str], words: str, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (given / "empty").mkdir()
    stand_in("apps.cp2k", "", tmp_path, monkeypatch)
    settings = {name: value.replace("GIVEN", str(given)) for name, value in settings.items()}
    refused = prepared("apps.cp2k", ResultsFolder.create(tmp_path / "results"), **settings)
    assert isinstance(refused, Refused)
    assert refused.outcome.state in (State.SKIPPED, State.UNSUPPORTED) and words in refused.outcome.reason


@pytest.mark.real
def test_other_files_are_refused_under_a_published_name(
    given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in("apps.pmemd", "", tmp_path, monkeypatch)
    for name in ("JAC.prmtop", "JAC.inpcrd"):
        (given / name).write_text("another protein\n")
    refused = prepared("apps.pmemd", ResultsFolder.create(tmp_path / "results"), case="jac", inputs=str(given))
    assert isinstance(refused, Refused) and refused.outcome.state is State.UNSUPPORTED
    seen = hashlib.sha256(b"another protein\n").hexdigest()[:16]
    assert f"not the published file of jac: its SHA-256 is {seen}..." in refused.outcome.reason


@pytest.mark.real
def test_another_content_is_another_experiment(given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in("apps.cp2k", "", tmp_path, monkeypatch)
    results = ResultsFolder.create(tmp_path / "results")
    first = prepared("apps.cp2k", results, inputs=str(given), **OWN).experiment.id
    (given / "OUTCAR").unlink()
    again = prepared("apps.cp2k", results, inputs=str(given), **OWN).experiment.id
    (given / "tables" / "rain.dat").write_text("another table\n")
    other = prepared("apps.cp2k", results, inputs=str(given), **OWN).experiment.id
    assert first != other and again != other
