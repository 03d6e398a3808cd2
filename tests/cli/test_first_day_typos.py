"""The typos of a first day: each is one error that names the nearest right word and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from cli.in_process import seatrial_here

from seatrial.errors import nearest_names
from seatrial.store.folder import FORMAT_LINE

COMMAND_LINES: list[tuple[str, str, str]] = [
    # what was typed, what the first line says, the second line
    ("rnu", "unknown command 'rnu'", "did you mean run?"),
    ("lst", "unknown command 'lst'", "did you mean list?"),
    ("results lst", "results has no command 'lst'", "did you mean list?"),
    ("cluster upp", "cluster has no command 'upp'", "did you mean up?"),
    ("vm stats", "vm has no command 'stats'", "did you mean status?"),
    ("run memory-stream", "unknown benchmark 'memory-stream'", "did you mean memory.stream?"),
    ("run memory.steam", "unknown benchmark 'memory.steam'", "did you mean memory.stream?"),
    ("run Memory.Stream", "unknown benchmark 'Memory.Stream'", "did you mean memory.stream?"),
    ("run stream", "unknown benchmark 'stream'", "did you mean memory.stream?"),
    ("build mpi.latencie", "unknown benchmark 'mpi.latencie'", "did you mean mpi.latency?"),
    (
        "run memory.stream --set threads 4",
        "--set 'threads' is not of the form PARAMETER=VALUE",
        "write --set threads=VALUE, or several values: VALUE1,VALUE2",
    ),
    (
        "run apps.hpl --set nodes=2 ranks=2",
        "unknown benchmark 'ranks=2'",
        "each setting needs its own option: --set ranks=2",
    ),
    ("run memory.stream --set", "--set needs a value", "seatrial COMMAND --help lists the options"),
    ("run memory.stream --set thread=4", "unknown parameter of memory.stream: 'thread'", "did you mean threads?"),
    ("run memory.stream --set threads=al", "threads cannot be 'al'", "did you mean all?"),
    ("run memory.stream --set nontemporal=yes", "nontemporal cannot be 'yes'", "did you mean true?"),
    ("run memory.stream --set nontemporal=False", "nontemporal cannot be 'False'", "did you mean false?"),
    ("run memory.stream --set array_B=64MiBs", "array_B cannot be '64MiBs'", "did you mean 64MiB?"),
    ("run memory.stream --set array_B=64mib", "array_B cannot be '64mib'", "did you mean 64MiB?"),
    ("run memory.stream --set array_B=64mb", "array_B cannot be '64mb'", "did you mean 64MB or 64MiB?"),
    ("run memory.stream --set array_B=64M", "array_B cannot be '64M'", "did you mean 64MB or 64MiB?"),
    (
        "run mpi.latency --set enviroment.mpi=mpich",
        "unknown parameter of mpi.latency: 'enviroment.mpi'",
        "did you mean environment.mpi?",
    ),
    (
        "run mpi.latency --set environment.mp=mpich",
        "--set environment.mp: unknown axis 'environment.mp'",
        "did you mean environment.mpi?",
    ),
    (
        "run mpi.latency --set environment.omp_num_threads=2",
        "--set environment.omp_num_threads: unknown axis 'environment.omp_num_threads'",
        "environment variables are upper case: environment.OMP_NUM_THREADS",
    ),
    (
        "run mpi.latency --set environment.transport=tpc",
        "--set environment.transport: 'tpc' is not accepted",
        "did you mean tcp?",
    ),
    ("run cpu.peak --budget 1hour", "'1hour' is not a duration", "did you mean 1h?"),
    ("run cpu.peak --budget 10m", "'10m' is not a duration", "did you mean 10min?"),
    ("run cpu.peak --budget 10", "'10' is not a duration", "did you mean 10s or 10min?"),
    ("run cpu.peak --budget 64MiB", "'64MiB' is not a duration", "write a time such as 90s, 5min or 1h"),
    ("run cpu.peak --wait soon", "'soon' is not a duration", "write a time such as 90s, 5min or 1h"),
    (
        "run stdy.yaml",
        "'stdy.yaml' cannot be read: No such file or directory",
        "did you mean study.yaml?",
    ),
    ("plan study.yml", "'study.yml' cannot be read: No such file or directory", "did you mean study.yaml?"),
    ("compare june jly", "there is no results folder 'june'", "did you mean june-1?"),
    ("compare june-1 --along nodes", "june-1 contains no finished repeat", "measure first: seatrial run"),
    ("compare june-1 july --along nodes", "axis along which two folders are compared: 'nodes'", "did you mean node?"),
    ("compare june-1 july --margin 2", "--margin '2' is not a percentage between 0 and 100", "did you mean 2%?"),
    ("discover --from hwlocxml=x.xml", "unknown kind of dump: 'hwlocxml'", "did you mean hwloc-xml?"),
    ("import osuu=x.txt", "unknown kind of result file: 'osuu'", "did you mean osu?"),
    ("import osu=osu.tx", "'osu.tx' cannot be read: No such file or directory", "give the file with the tool's output"),
    ("discover --form json", "discover has no option --form", "did you mean --format?"),
    ("discover --format jsn", "--format cannot be 'jsn'", "did you mean json?"),
    ("check --fail-on warn", "--fail-on cannot be 'warn'", "did you mean warning?"),
    ("check --ranks many", "--ranks of check: it must be a valid integer", "N: propose a layout for N ranks"),
    ("list --again", "list has no option --again", "run, plan and screen have it"),
    ("run --version", "run has no option --version", "write `seatrial --version`"),
    ("run cpu.peak --results .", ". is not empty and is not a results folder", "give another folder with --results"),
    ("run cpu.peak --results study.yaml", "study.yaml is a file, not a", "give another folder with --results"),
    ("history", "history needs FIGURE", "FIGURE: a figure, such as triad or BENCHMARK:triad, or a benchmark"),
]

STREAM = "benchmarks: {memory.stream: {threads: all}}\n"
STUDIES: list[tuple[str, str, str, str]] = [
    # a name, the lines after `study` and `question`, what the first line says, the second line
    ("benchmark", "benchmark: {cpu.peak: {}}\n", "line 3: benchmark: unknown key", "did you mean benchmarks?"),
    ("Benchmarks", "Benchmarks: {cpu.peak: {}}\n", "line 3: Benchmarks: unknown key", "did you mean benchmarks?"),
    ("axis", STREAM + "axis: {node: [0]}\n", "line 4: axis: unknown key", "did you mean axes?"),
    ("a misspelt axis", STREAM + "axes: {nontemporl: [true]}\n", "'nontemporl'", "did you mean nontemporal?"),
    ("repeats", STREAM + "repeats: {max: 9}\n", "line 4: repeats: unknown key", "did you mean repeat?"),
    ("a hyphen", STREAM + "best-of: null\n", "line 4: best-of: unknown key", "did you mean best_of?"),
    ("1hour", STREAM + "repeat: {budget: 1hour}\n", "'1hour' is not a duration", "did you mean 1h?"),
    ("10 minutes", STREAM + "repeat: {budget: 10 minutes}\n", "'10 minutes'", "did you mean 10min?"),
    ("no percent sign", STREAM + "repeat: {precision: 1}\n", "1 is not a share between 0 and 1", "did you mean 1%?"),
    (
        "a margin without percent sign",
        STREAM + "axes: {node: [0, 1]}\ncompare: {along: node, margin: 2}\n",
        "compare.margin: 2 is not a share",
        "did you mean 2%?",
    ),
    (
        "base",
        STREAM + "axes: {node: [0, 1]}\ncompare: {along: node, base: 0}\n",
        "compare.base: unknown key",
        "did you mean baseline?",
    ),
    (
        "a misspelt kind",
        "benchmarks: {memory.stream: {}}\naxes: {threads: [1, 2]}\nscaling: {kind: stong, along: threads}\n",
        "scaling.kind: it cannot be 'stong'",
        "did you mean strong?",
    ),
    ("compare", STREAM + "axes: {node: [0, 1]}\ncompare: nodes\n", "unknown axis 'nodes'", "did you mean node?"),
    (
        "a misspelt figure",
        STREAM + "axes: {node: [0, 1]}\ncompare: {along: node, figures: [trid]}\n",
        "unknown figure of memory.stream: 'trid'",
        "did you mean triad?",
    ),
    (
        "yes",
        STREAM + "axes: {nontemporal: [yes, no]}\n",
        "it cannot be 'yes'",
        "nontemporal of memory.stream: did you mean true?",
    ),
    ("a tab", "benchmarks:\n\tcpu.peak: {}\n", "line 4: invalid YAML: the line is indented with a tab", "with spaces"),
    ("no space", "benchmarks: {cpu.peak:{}}\n", "line 3: invalid YAML: a colon without a space", "with a space after"),
    ("two colons", STREAM + "probes: a: b\n", "line 4: invalid YAML: a second colon in one line", "in quotes"),
    ("a duplicate key", STREAM + STREAM, "line 4: benchmarks is given twice (first on line 3)", "keep one of them"),
    ("a list", "benchmarks: [cpu.peak]\n", "benchmarks: it cannot be ['cpu.peak']", "such as `memory.stream: {th"),
    ("a number", STREAM + "repeat: 10\n", "repeat: it cannot be 10", "it takes a mapping such as {precision: 1%"),
    ("a text", STREAM + "probes: mpi\n", "probes: it cannot be 'mpi'", "it takes a list of probes: mpi, io, power"),
    ("mpi", "benchmarks: {mpi.get: {}}\naxes: {mpi: [mpich]}\n", "'mpi'", "did you mean environment.mpi?"),
    ("a shell's words", "benchmarks: {command: {argv: ./a b}}\n", "argv: it cannot be './a b'", "a list of arguments"),
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study and two empty results folders."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "study.yaml").write_text("study: s\nquestion: q?\n" + STREAM)
    for name in ("june-1", "july"):
        (folder / name / "records").mkdir(parents=True)
        (folder / name / "FORMAT").write_text(FORMAT_LINE)
    return folder


def refused(arguments: Sequence[str], folder: Path) -> list[str]:
    """The two lines of the error."""
    before = sorted(folder.rglob("*"))
    done = seatrial_here(*arguments, cwd=folder)
    assert done.returncode == 2, done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr
    assert sorted(folder.rglob("*")) == before
    lines = done.stderr.splitlines()
    assert len(lines) == 2 and lines[0].startswith("seatrial: ") and lines[1].startswith("  "), done.stderr
    return [lines[0].removeprefix("seatrial: "), lines[1].strip()]


@pytest.mark.parametrize(("typed", "seen", "todo"), COMMAND_LINES, ids=[case[0] for case in COMMAND_LINES])
def test_a_typo_on_the_command_line(desk: Path, typed: str, seen: str, todo: str) -> None:
    first, second = refused(typed.split(" "), desk)
    assert seen in first
    assert second == todo or (todo in second and "did you mean" not in second)


@pytest.mark.parametrize(("lines", "seen", "todo"), [case[1:] for case in STUDIES], ids=[case[0] for case in STUDIES])
def test_a_typo_in_a_study(tmp_path: Path, lines: str, seen: str, todo: str) -> None:
    (tmp_path / "s.yaml").write_text("study: s\nquestion: q?\n" + lines)
    for command in ("plan", "run"):
        first, second = refused([command, "s.yaml"], tmp_path)
        assert first.startswith("s.yaml: line ") and seen in first
        assert second == todo or (todo in second and "did you mean" not in second)


def test_a_size_in_powers_of_1000_is_a_size_and_not_a_typo(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("study: s\nquestion: q?\nbenchmarks: {memory.stream: {array_B: 64MB}}\n")
    done = seatrial_here("plan", "s.yaml", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0 and '"array_B": 64000000' in done.stdout


@pytest.mark.parametrize(
    ("name", "known", "nearest"),
    [
        ("", ["a"], []),
        ("zzz", ["memory.stream"], []),
        ("stream", ["memory.stream", "streams", "steam"], ["memory.stream"]),
        ("MEMORY_STREAM", ["memory.stream", "memory.streams"], ["memory.stream"]),
        ("form", ["format", "from"], ["format"]),
        ("read", ["reed", "road", "write"], ["reed", "road"]),
        ("x" * 100_000, ["x"], []),
    ],
)
def test_the_nearest_names(name: str, known: list[str], nearest: list[str]) -> None:
    assert nearest_names(name, known) == nearest
