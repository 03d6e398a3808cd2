"""Study files: the meaning of valid files, and one clear message for each kind of mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import PlaceError, UsageError
from seatrial.model.study.study import Axis, BestOf, Compare, RepeatPolicy, Scaling, Study
from seatrial.plan import files
from seatrial.plan.study_file import read_study
from seatrial.plan.targets import read_study_file

HEAD = "study: s\nquestion: q?\n"
STREAM = HEAD + "benchmarks:\n  memory.stream: {threads: 1}\n"
PING = HEAD + "benchmarks: {mpi.latency: {}}\n"
REDUCE = HEAD + "benchmarks: {mpi.allreduce: {}}\n"

CONTRACT = """\
study: stores                       # name; letters, digits, - and _
question: Do non-temporal stores pay on this machine?
benchmarks:                         # name -> parameters; a parameter may be a list when it is an axis
  memory.stream: {threads: all}
axes:                               # parameter or environment -> values
  nontemporal: [false, true]
exclude: []                         # partial points to leave out
compare: nontemporal                # or {along: nontemporal, baseline: false, margin: 2%}
scaling: null                       # {kind: strong, along: threads}
best_of: null                       # {over: [record_B], figure: read}
repeat: {precision: 1%, budget: 5min, max: 100}
probes: []                          # mpi, io, power
"""


def read(text: str) -> Study:
    return read_study(text.encode(), "s.yaml")


def axis_of(values: str, name: str = "threads") -> tuple[object, ...]:
    (axis,) = read(f"{HEAD}benchmarks: {{memory.stream: {{}}}}\naxes: {{{name}: {values}}}\n").axes
    return axis.values


def test_the_example_of_the_contract() -> None:
    study = read(CONTRACT)
    assert (study.name, study.question) == ("stores", "Do non-temporal stores pay on this machine?")
    assert [(entry.name, entry.parameters) for entry in study.benchmarks] == [("memory.stream", {"threads": "all"})]
    assert study.axes == (Axis("nontemporal", (False, True)),)
    assert study.compare == Compare("nontemporal", False, 0.02)
    assert study.repeat == RepeatPolicy(0.01, 300.0, 100)
    assert (study.scaling, study.best_of, study.probes, study.zips, study.exclude) == (None, None, (), (), ())


def test_a_study_that_uses_everything() -> None:
    study = read(
        HEAD
        + """benchmarks:
  memory.stream: {array_B: [64MiB, 1GiB], huge_pages: "true"}
  io.file:
axes:
  threads: [1, 2, all]
  node: [auto, 0, 1]
  environment.compiler: [g++, /opt/llvm/bin/clang++-16]
  environment.flags: ["", " -O2   -march=x86-64-v3 -fno-math-errno "]
  environment.OMP_NUM_THREADS: [1, "2", true, null]
  label: [a, 1]
zip: [[threads, node]]
exclude: [{threads: 2, label: a}, {benchmark: io.file}]
include: [{threads: 3}]
compare: {along: environment.OMP_NUM_THREADS, baseline: null, margin: 0.05, figures: [triad, read]}
scaling: {kind: weak, along: threads}
best_of: {over: [array_B, threads], figure: add}
repeat: {precision: 0.5%, budget: 1h, max: 6}
probes: [io, power]
references: [s1.triad]
"""
    )
    assert [axis.name for axis in study.axes][:2] == ["array_B", "threads"]
    axes = {axis.name: axis.values for axis in study.axes}
    assert axes["array_B"] == (64 << 20, 1 << 30) and axes["threads"] == (1, 2, "all")
    assert axes["environment.flags"] == ("", "-O2 -march=x86-64-v3 -fno-math-errno")
    assert axes["environment.OMP_NUM_THREADS"] == ("1", "2", "true", None)
    assert axes["label"] == ("a", "1")
    assert study.zips == (("threads", "node"),)
    assert study.exclude == ({"threads": 2, "label": "a"}, {"benchmark": "io.file"})
    assert study.include == ({"threads": 3},)
    assert study.compare == Compare("environment.OMP_NUM_THREADS", None, 0.05, ("triad", "read"))
    assert study.scaling == Scaling("weak", "threads")
    assert study.best_of == BestOf(("array_B", "threads"), "add")
    assert study.repeat == RepeatPolicy(0.005, 3600.0, 6)
    assert study.probes == ("io", "power") and study.references == ("s1.triad",)
    assert study.benchmarks[0].parameters == {"huge_pages": True} and study.benchmarks[1].parameters == {}


def test_equivalence_states_the_margin() -> None:
    axes = STREAM + "axes: {nontemporal: [false, true]}\n"
    for text in ("equivalence: 0.5%", "margin: 0.5%, equivalence: 0.005"):
        compare = read(f"{axes}compare: {{along: nontemporal, {text}}}\n").compare
        assert compare == Compare("nontemporal", False, 0.005, asks_equivalence=True)
    with pytest.raises(UsageError, match="equivalence is given beside another margin"):
        read(f"{axes}compare: {{along: nontemporal, margin: 2%, equivalence: 1%}}\n")
    with pytest.raises(UsageError, match="is not a share between 0 and 1"):
        read(f"{axes}compare: {{along: nontemporal, equivalence: 2}}\n")


def test_a_study_file_names_references_that_exist(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(STREAM + "references: [s6.double-over-single]\n")
    assert read_study_file(file).references == ("s6.double-over-single",)
    file.write_text(STREAM + "references: [s6.double-over-singel]\n")
    with pytest.raises(UsageError, match="unknown reference") as refused:
        read_study_file(file)
    assert str(file) in refused.value.message and "s6.double-over-single" in refused.value.todo


def test_the_baseline_is_the_first_value_unless_it_is_named() -> None:
    axes = STREAM + "axes: {nontemporal: [true, false]}\n"
    for text, baseline in (("nontemporal", True), ("{along: nontemporal, baseline: false}", False)):
        compare = read(f"{axes}compare: {text}\n").compare
        assert compare is not None and compare.baseline is baseline


def test_numbers_are_those_of_yaml_1_2() -> None:
    assert axis_of("[010, 0x10, 0o17, +3]") == (10, 16, 15, 3)


def test_one_list_under_two_benchmarks_is_one_axis() -> None:
    study = read(HEAD + "benchmarks: {memory.stream: {threads: [1, 2]}, cpu.gemm: {threads: [1, 2]}}\n")
    assert study.axes == (Axis("threads", (1, 2)),)


def test_a_byte_order_mark_and_other_line_ends_are_fine() -> None:
    assert read_study(b"\xef\xbb\xbf" + CONTRACT.replace("\n", "\r\n").encode(), "s.yaml") == read(CONTRACT)


WITH_NODE = STREAM + "axes: {node: [0, 1]}\n"
DEEP = "[" * 100
WRONG: list[tuple[str, str, int | None, str, str]] = [
    # what is wrong, the text, its line, words of what was seen, words of what to do
    ("empty", "", None, "empty", "question"),
    ("only a comment", "# nothing\n", None, "empty", "question"),
    ("a list", "- study\n", 1, "cannot be ['study']", "mapping"),
    ("invalid YAML", STREAM + "axes: {threads: [1, 2}\n", 5, "invalid YAML", "YAML 1.2"),
    ("a tab", STREAM + "axes:\n\tthreads: [1]\n", 6, "invalid YAML", "spaces"),
    ("no UTF-8", STREAM + "axes: \udcff\n", 5, "0xff", "UTF-8"),
    ("a NUL", STREAM + "axes: \0\n", 5, "U+0000", ""),
    ("two documents", STREAM + "---\nstudy: t\n", 5, "second document", "one document"),
    ("another version", "%YAML 1.1\n---\n" + STREAM, 2, "%YAML 1.1", "1.2"),
    ("a tag", STREAM + "axes: !!python/object:os.system {}\n", 5, "tag", "without tags"),
    ("an anchor", STREAM + "axes: &a {}\n", 5, "anchor &a", "write the value"),
    ("an alias", STREAM + "axes: *a\n", 5, "alias *a", "write the value"),
    ("a key twice", STREAM + "study: t\n", 5, "study is given twice (first on line 1)", "keep one"),
    ("a parameter twice", HEAD + "benchmarks:\n  memory.stream:\n    threads: 1\n    threads: 2\n", 6, "twice", ""),
    ("deep", STREAM + f"axes: {DEEP}\n", 5, "nested", "deep"),
    ("a list as key", STREAM + "? [a, b]\n: c\n", 5, "key", "name"),
    ("a merge key", STREAM + "<<: {axes: {}}\n", 5, "<<: unknown key", "keys"),
    ("no study", "question: q\nbenchmarks: {memory.stream: {}}\n", 1, "the key study is missing", "letters"),
    ("no question", "study: s\nbenchmarks: {memory.stream: {}}\n", 1, "the key question is missing", "answer"),
    ("no benchmarks", HEAD, 1, "the key benchmarks is missing", "memory.stream"),
    ("an unknown key", STREAM + "axis: {}\n", 5, "axis: unknown key", "did you mean axes?"),
    ("a bad name", STREAM.replace("study: s", "study: a b"), 1, "study: it cannot be 'a b'", "letters, digits"),
    ("a name with a line end", STREAM.replace("study: s", 'study: "s\\n"'), 1, "study: it cannot be", "letters"),
    ("a number as name", STREAM.replace("study: s", "study: 2024"), 1, "2024 is not text", "'2024'"),
    ("an empty question", STREAM.replace("q?", '"  "'), 2, "question: it cannot be", "answer"),
    ("a question that is none", STREAM.replace("q?", "true"), 2, "question: it cannot be true", "text"),
    ("benchmarks as a list", HEAD + "benchmarks: [memory.stream]\n", 3, "benchmarks: it cannot be", "mapping"),
    ("benchmarks empty", HEAD + "benchmarks: {}\n", 3, "benchmarks: it is empty", "memory.stream"),
    ("an unknown benchmark", HEAD + "benchmarks:\n  memory.steam: {}\n", 4, "memory.steam", "memory.stream"),
    ("an imported benchmark", HEAD + "benchmarks:\n  imported.hpl: {}\n", 4, "imported.hpl", ""),
    ("an unknown parameter", HEAD + "benchmarks:\n  memory.stream:\n    thread: 1\n", 5, "'thread'", "threads"),
    ("a value of the wrong kind", HEAD + "benchmarks:\n  memory.stream:\n    threads: no\n", 5, "'no'", "an integer"),
    ("an implicit octal", STREAM + "axes:\n  array_B: [1_000]\n", 6, "'1_000'", "size such as"),
    ("yes", STREAM + "axes: {nontemporal: [yes]}\n", 5, "cannot be 'yes'", "did you mean true?"),
    ("True", STREAM + "axes: {nontemporal: [True]}\n", 5, "cannot be 'True'", "did you mean true?"),
    ("zero threads", STREAM + "axes: {node: [-1]}\n", 5, "cannot be -1", "an integer"),
    ("a fraction", STREAM + "axes: {node: [1e0]}\n", 5, "cannot be 1e0", "an integer"),
    ("infinite", STREAM + "axes: {node: [.inf]}\n", 5, ".inf is not a usable number", "text in quotes"),
    ("huge", STREAM + "axes: {node: [99999999999999999999]}\n", 5, "too large", "2^53"),
    ("a parameter that is empty", HEAD + "benchmarks:\n  memory.stream:\n    node:\n", 5, "cannot be nothing", "auto"),
    ("a mapping as value", STREAM + "axes: {node: [{a: 1}]}\n", 5, "a mapping with a", "value"),
    ("a list as value", STREAM + "axes:\n  node:\n    - [1, 2]\n", 7, "cannot be [1, 2]", "an integer"),
    ("an axis without values", STREAM + "axes: {node: []}\n", 5, "axes.node: it is empty", "list of values"),
    ("an axis under benchmarks without values", HEAD + "benchmarks: {memory.stream: {node: []}}\n", 3, "no values", ""),
    ("an axis that is no list", STREAM + "axes: {node: 1}\n", 5, "axes.node: it cannot be 1", "list of values"),
    ("the same value twice", STREAM + "axes:\n  node:\n  - 1\n  - '1'\n", 8, "twice (first on line 7)", "keep one"),
    ("the same size twice", STREAM + "axes: {array_B: [1048576, 1MiB]}\n", 5, "twice", "keep one"),
    ("an unknown axis", STREAM + "axes:\n  nontemporl: [true]\n", 6, "nontemporl", "nontemporal"),
    ("an axis that is fixed", STREAM + "axes:\n  threads: [1]\n", 6, "one value under benchmarks", "keep one"),
    (
        "an axis twice",
        HEAD + "benchmarks: {memory.stream: {node: [0, 1]}}\naxes:\n  node: [0, 1]\n",
        5,
        "already a list under benchmarks",
        "keep one",
    ),
    (
        "a list whose reach is a guess",
        HEAD + "benchmarks:\n  memory.stream: {threads: [1, 2]}\n  cpu.gemm: {}\n",
        4,
        "cpu.gemm has threads too",
        "axes: {threads",
    ),
    (
        "two lists that differ",
        HEAD + "benchmarks:\n  memory.stream: {threads: [1, 2]}\n  cpu.gemm: {threads: [1, 3]}\n",
        5,
        "other values",
        "same list",
    ),
    (
        "an MPI for one process",
        STREAM + "axes:\n  environment.mpi: [openmpi]\n",
        6,
        "none of these benchmarks has",
        "remove",
    ),
    ("no name of an MPI", PING + "axes:\n  environment.mpi: [a b]\n", 5, "not the name of a library", "seatrial list"),
    (
        "an unknown transport",
        PING + "axes:\n  environment.transport: [shm, tpc]\n",
        5,
        "'tpc' is not accepted",
        "mean tcp",
    ),
    (
        "an unknown binding",
        PING + "axes:\n  environment.binding: [socket]\n",
        5,
        "'socket' is not accepted",
        "core (each rank",
    ),
    ("no algorithm", PING + "axes:\n  environment.collective_algorithm: [ring]\n", 5, "is an MPI collective", "remove"),
    (
        "no name of an algorithm",
        REDUCE + "axes: {environment.collective_algorithm: [a b]}\n",
        4,
        "not an algorithm",
        "ring",
    ),
    ("no such collective", REDUCE + "axes: {environment.collective_algorithm: ['bcats:ring']}\n", 4, "bcats", "bcast"),
    (
        "a collective chosen twice",
        REDUCE + "axes: {environment.collective_algorithm: ['bcast:ring+bcast:chain']}\n",
        4,
        "twice",
        "keep one",
    ),
    (
        "auto beside others",
        REDUCE + "axes: {environment.collective_algorithm: [auto+ring]}\n",
        4,
        "not an algorithm",
        "auto",
    ),
    (
        "an algorithm of which collective",
        HEAD + "benchmarks: {apps.lammps: {}}\naxes: {environment.collective_algorithm: [ring]}\n",
        4,
        "apps.lammps is not a collective",
        "allreduce:ring",
    ),
    ("an unknown part of the environment", STREAM + "axes: {environment.flag: [a]}\n", 5, "flag", "environment.flags"),
    ("a secret", STREAM + "axes:\n  environment.API_TOKEN: [a]\n", 6, "secret", "outside"),
    ("CXX", STREAM + "axes: {environment.CXX: [g++]}\n", 5, "have no effect", "environment.compiler"),
    ("a compiler with arguments", STREAM + "axes: {environment.compiler: [g++ -O3]}\n", 5, "not a command", "g++"),
    ("no compiler", STREAM + "axes: {environment.compiler: [null]}\n", 5, "null is not a command", "g++"),
    ("words as flags", STREAM + "axes: {environment.flags: [fast]}\n", 5, "begin with '-'", "-O"),
    ("flags as a list", STREAM + "axes: {environment.flags: [[-O2]]}\n", 5, "not text with flags", "one string"),
    (
        "a compiler for what is not compiled",
        HEAD + "benchmarks: {io.file: {}}\naxes: {environment.compiler: [g++]}\n",
        4,
        "none of these benchmarks is compiled",
        "remove",
    ),
    ("an empty label", STREAM + "axes: {label: [a, '']}\n", 5, "not a valid label", "word"),
    ("a flat zip", STREAM + "axes: {node: [0], memory: [0]}\nzip: [node, memory]\n", 6, "zip: it cannot be", "axes"),
    (
        "a zip of unequal lengths",
        STREAM + "axes: {node: [0, 1], memory: [0]}\nzip:\n- [node, memory]\n",
        7,
        "node has 2, memory has 1",
        "the same number",
    ),
    (
        "an axis in two zips",
        STREAM + "axes: {node: [0], memory: [0], nontemporal: [true]}\nzip:\n- [node, memory]\n- [node, nontemporal]\n",
        8,
        "node is listed twice",
        "one list only",
    ),
    ("exclude of no axis", STREAM + "axes: {node: [0]}\nexclude: [{threads: 1}]\n", 6, "unknown axis 'threads'", ""),
    ("exclude of no value", STREAM + "axes: {node: [0]}\nexclude: [{node: 1}]\n", 6, "1 is not a value", "values: 0"),
    (
        "exclude of everything",
        STREAM + "axes: {node: [0]}\nexclude: [{node: 0}]\n",
        6,
        "no experiments are left",
        "less",
    ),
    ("an empty exclude", STREAM + "exclude: [{}]\n", 5, "exclude: it is empty", "partial parameter set"),
    ("exclude that is no list", STREAM + "exclude: {node: 1}\n", 5, "exclude: it cannot be", "list of partial"),
    ("include of no parameter", STREAM + "include:\n- {nod: 1}\n", 6, "'nod'", "node"),
    ("include of a wrong value", STREAM + "include:\n- {node: x}\n", 6, "'x'", "an integer"),
    (
        "include of no benchmark",
        HEAD + "benchmarks: {memory.stream: {}, io.file: {}}\ninclude: [{node: 1, record_B: 4096}]\n",
        4,
        "no benchmark of the study has node and record_B",
        "split",
    ),
    ("a foreign benchmark in include", STREAM + "include: [{benchmark: cpu.gemm}]\n", 5, "'cpu.gemm'", "memory.stream"),
    ("compare without axes", STREAM + "compare: node\n", 5, "unknown axis 'node'", "none are defined"),
    ("compare along one value", STREAM + "axes: {node: [0]}\ncompare: node\n", 6, "only one value", "two"),
    ("compare without along", STREAM + "compare: {margin: 1%}\n", 5, "the key along is missing", "axis"),
    ("an unknown key of compare", STREAM + "compare: {alon: node}\n", 5, "unknown key", "along"),
    ("a foreign baseline", WITH_NODE + "compare:\n  along: node\n  baseline: 2\n", 8, "2 is not a value", "0, 1"),
    ("scaling along no axis", STREAM + "scaling: {kind: weak, along: node}\n", 5, "unknown axis 'node'", ""),
    (
        "scaling along what counts nothing",
        STREAM + "axes: {nontemporal: [true, false]}\nscaling: {kind: weak, along: nontemporal}\n",
        6,
        "value true, which is not a number",
        "axis of numbers",
    ),
    ("scaling as a word", STREAM + "scaling: strong\n", 5, "scaling: it cannot be 'strong'", "kind: strong"),
    ("best of nothing", STREAM + "best_of: {over: [], figure: triad}\n", 5, "over: it is empty", "list of axes"),
    ("best of no axis", STREAM + "best_of: {over: [node], figure: triad}\n", 5, "unknown axis 'node'", ""),
    ("best of an axis twice", WITH_NODE + "best_of: {over: [node, node], figure: add}\n", 6, "twice", ""),
    (
        "best of axes that no benchmark shares",
        HEAD
        + "benchmarks: {memory.stream: {node: [0, 1]}, io.file: {record_B: [4096, 8192]}}\n"
        + "best_of: {over: [node, record_B], figure: read}\n",
        4,
        "no benchmark of the study has all of node, record_B",
        "one benchmark",
    ),
    ("a probe unknown", STREAM + "probes: [pwer]\n", 5, "'pwer'", "did you mean power?"),
    ("a probe twice", STREAM + "probes: [io, io]\n", 5, "io is listed twice", "keep one"),
    ("a precision of all", STREAM + "repeat: {precision: 100%}\n", 5, "100%", "such as 2%"),
    ("a budget without a unit", STREAM + "repeat: {budget: 300}\n", 5, "repeat.budget: it cannot be 300", "5min"),
    ("a budget without a unit, as text", STREAM + "repeat: {budget: '300'}\n", 5, "not a duration", "300s or 300min?"),
    ("no budget", STREAM + "repeat: {budget: 0s}\n", 5, "not a valid time", "5min"),
    ("a budget of size", STREAM + "repeat:\n  budget: 5MB\n", 6, "not a duration", "5min"),
    ("too few repeats", STREAM + "repeat: {max: 5}\n", 5, "repeat.max: it cannot be 5", "from 6"),
    ("half a repeat", STREAM + "repeat: {max: 6.5}\n", 5, "repeat.max: it cannot be 6.5", "an integer"),
    (
        "too many points",
        STREAM + f"axes: {{node: {list(range(400))}, memory: {list(range(400))}}}\n",
        5,
        "160000 combinations",
        "at most 100000",
    ),
] + [
    (f"with an axis: {name}", WITH_NODE + text + "\n", 6, seen, todo)
    for name, text, seen, todo in [
        ("a zip of one", "zip: [[node]]", "zip: it cannot be ['node']", "two axes"),
        ("an unknown zip", "zip: [[node, memry]]", "'memry'", "node"),
        ("compare along no axis", "compare: nod", "unknown axis 'nod'", "node"),
        ("a margin of nothing", "compare: {along: node, margin: 0%}", "not a share", "2%"),
        ("a margin of all", "compare: {along: node, margin: 1.0}", "not a share", "1.0%?"),
        ("a margin in seconds", "compare: {along: node, margin: 2s}", "not a share", "2%"),
        ("a margin of words", "compare: {along: node, margin: few}", "'few'", "2%"),
        ("figures unknown", "compare: {along: node, figures: [triat]}", "triat", "triad"),
        ("scaling of no kind", "scaling: {kind: fast, along: node}", "'fast'", "strong"),
        ("best of no figure", "best_of: {over: [node], figure: read}", "'read'", "triad"),
    ]
]


@pytest.mark.parametrize(
    ("text", "line", "seen", "todo"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_a_wrong_study_is_one_clear_message(text: str, line: int | None, seen: str, todo: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_study(text.encode(errors="surrogateescape"), "dir/s.yaml")
    error = caught.value
    assert error.message.startswith(f"dir/s.yaml: line {line}: " if line is not None else "dir/s.yaml: "), error
    assert seen in error.message, error
    assert todo in error.todo, error
    assert error.exit_code == 2 and len(str(error)) < 1000


MANY_FAULTS = """\
study: two words
question: Is it faster?
benchmarks:
  memory.stream: {thread: 4, kernel: cop}
  cpu.peek: {}
axes:
  nontemporal: [false, maybe]
compare: {along: nontemporal, margn: 2%}
repeat: {budget: 5}
repeats: 4
best_of: {over: [array_B], figure: triad}
"""


def test_all_faults_of_a_file_are_reported_at_once_each_in_a_line() -> None:
    with pytest.raises(PlaceError) as caught:
        read_study(MANY_FAULTS.encode(), "s.yaml")
    first, *lines = str(caught.value).splitlines()
    assert first == "s.yaml: 8 errors" and len(lines) == 8 and caught.value.line == 1
    for line, key, accepts in (
        (1, "study", "letters, digits, - and _"),
        (4, "benchmarks.memory.stream.thread", "did you mean threads?"),
        (4, "benchmarks.memory.stream.kernel", "copy"),
        (5, "benchmarks.cpu.peek", "did you mean cpu.peak?"),
        (7, "axes.nontemporal", "true or false"),
        (8, "compare.margn", "did you mean margin?"),
        (9, "repeat.budget", "such as 5min"),
        (10, "repeats", "did you mean repeat?"),
    ):
        own = [text for text in lines if text.startswith(f"  s.yaml: line {line}: {key}: ")]
        assert len(own) == 1 and accepts in own[0], (key, lines)


def test_a_benchmark_with_one_main_figure_is_named_in_its_place() -> None:
    text = "study: s\nquestion: q?\nbenchmarks: {cpu.peak: {}}\naxes: {precision: [fp64, fp32]}\n"
    for name in ("cpu.peak", "fma"):
        study = read_study(f"{text}best_of: {{over: [precision], figure: {name}}}\n".encode(), "s.yaml")
        assert study.best_of is not None and study.best_of.figure == "fma"
        study = read_study(f"{text}compare: {{along: precision, figures: [{name}]}}\n".encode(), "s.yaml")
        assert study.compare is not None and study.compare.figures == ("fma",)
    several = (
        "benchmarks: {memory.stream: {}}\naxes: {node: [0, 1]}\ncompare: {along: node, figures: [memory.stream]}\n"
    )
    with pytest.raises(PlaceError, match=r"memory\.stream has 4 figures") as caught:
        read_study(f"study: s\nquestion: q?\n{several}".encode(), "s.yaml")
    assert "copy, scale, add, triad" in caught.value.todo


def test_what_follows_from_another_fault_is_not_reported() -> None:
    """The axis is unknown, and so the comparison: one fault. Without it, both wrong names are reported."""
    text = "study: s\nquestion: q?\nbenchmarks: {memory.stream: {}}\naxes: {thread: [1, 2]}\ncompare: threads\n"
    with pytest.raises(PlaceError, match=r"axes\.thread") as caught:
        read_study(text.encode(), "s.yaml")
    assert len(caught.value.faults) == 1
    sound = text.replace("thread:", "threads:").replace(
        "compare: threads", "compare: thread\nscaling: {kind: weak, along: node}"
    )
    with pytest.raises(PlaceError) as caught:
        read_study(sound.encode(), "s.yaml")
    assert [fault.line for fault in caught.value.faults] == [5, 6]


@pytest.mark.parametrize(
    "flag",
    [
        "-o out", "-oout", "-c", "-S", "-MD", "-MF=x", "-save-temps", "-I/tmp", "-include=x", "-isystem/x", "-L/x",
        "-lfoo", "-B/x", "-T/x", "-xc", "-specs=/x", "-wrapper=x", "-fplugin=/x.so", "-fprofile-generate",
        "-fprofile-use=/x", "-fdump-tree-all", "-ftest-coverage", "--coverage", "-fstack-usage", "-gsplit-dwarf",
        "-Wl,-rpath,/x", "-Wp,-MD,x", "-Wa,-al=x", "-Xlinker", "-mllvm", "@file", "-fsave-optimization-record",
        "-ftime-trace=/x", "-march=../x", "-###", "--sysroot=/x", "-fuse-ld=/x", "-fsanitize-blacklist=x",
        "-fmodule-file=x", "-D", "-", "--", "-O2;rm", "-fauto-profile=x", "-fopt-info-vec=x",
        "-foptimization-record-file=x", "-fdiagnostics-add-output=x", "-fcallgraph-info", "-aux-info",
    ],
)  # fmt: skip
def test_flags_that_touch_other_files_are_refused(flag: str) -> None:
    with pytest.raises(UsageError, match=r"flag|begin"):
        axis_of(f"['-O2 {flag}']", "environment.flags")


@pytest.mark.parametrize(
    "flags",
    [
        "-O0", "-O3 -march=native -mtune=znver4 -mprefer-vector-width=256 -mno-avx512f", "-Ofast", "-funroll-loops",
        "-ffp-contract=off", "-fno-tree-vectorize", "-DN=3 -DX -UX", "-Wno-error=unused", "-g", "-std=c++20",
        "-static", "--param=max-unroll-times=4", "-flto", "-ffast-math", "-pthread", "-falign-loops=32",
        "-fprefetch-loop-arrays", "-fgcse-after-reload", "-fgraphite-identity", "-fomit-frame-pointer",
        "-foptimize-strlen",
    ],
)  # fmt: skip
def test_flags_that_change_the_code_are_accepted(flags: str) -> None:
    assert axis_of(f"['{flags}']", "environment.flags") == (flags,)


def test_a_file_that_is_too_large_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="1 MiB"):
        read_study(b"#" * ((1 << 20) + 1), "s.yaml")
    monkeypatch.setattr(files, "_MAX_NODES", 1500)
    with pytest.raises(UsageError, match="1500 values"):
        read(STREAM + "axes: {node: [" + "1," * 2000 + "]}\n")


def test_text_from_the_file_cannot_steer_a_terminal() -> None:
    with pytest.raises(UsageError) as caught:
        read(STREAM + 'axes: {"\\e[31mred": [1]}\n')
    assert "\x1b" not in str(caught.value)
