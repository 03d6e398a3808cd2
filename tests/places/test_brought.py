"""What goes into an image with a program: libraries, plugins and their variables."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.environments.mpi import find_mpis
from seatrial.errors import BuildError
from seatrial.places import brought
from seatrial.places.brought import Brought, bring_all, bring_mpi

pytestmark = pytest.mark.real

MADE = Brought(
    Path("/c/1"), (Path("/c/1/usr/lib"), Path("/c/1/opt")), {"libmpi.so.40": "a"}, (("OPAL_PKGLIBDIR", "/p"),)
)


def test_variables_of_a_program() -> None:
    assert MADE.before == ()
    assert MADE.set_for({"LD_LIBRARY_PATH": "/mine", "A": "b"}) == {
        "OPAL_PKGLIBDIR": "/p",
        "LD_LIBRARY_PATH": "/c/1/usr/lib:/c/1/opt:/mine",
        "A": "b",
    }
    of_image = replace(MADE, prefers_image=True).set_for({})["LD_LIBRARY_PATH"].split(":")
    assert of_image.index("/usr/lib") < of_image.index("/c/1/usr/lib")
    whole = replace(MADE, loader=Path("/c/1/ld.so"))
    assert whole.before == ("/c/1/ld.so", "--inhibit-cache", "--library-path", "/c/1/usr/lib:/c/1/opt")
    assert "LD_LIBRARY_PATH" not in whole.set_for({})  # children use the image's C library
    assert set(MADE.document()) == {"libraries", "key"}
    assert MADE.document() != replace(MADE, libraries={"libmpi.so.40": "b"}).document()


def test_a_program_with_its_loader_starts_elsewhere() -> None:
    made = bring_all(Path("/usr/bin/env"), (), None, os.environ)
    assert {"libc.so.6", "libgcc_s.so.1"} <= set(made.libraries) and made.loader is not None
    done = subprocess.run([*made.before, "/usr/bin/env"], capture_output=True, text=True, check=True)
    assert "PATH=" in done.stdout
    traced = subprocess.run([*made.before[:-3], "--list", "/usr/bin/env"], capture_output=True, text=True, check=True)
    assert traced.returncode == 0


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_an_mpi_library_goes_without_the_c_library(name: str) -> None:
    mpi = next((mpi for mpi in find_mpis() if mpi.name == name), None)
    if mpi is None:
        pytest.skip(f"needs {name}")
    made = bring_mpi(mpi, os.environ, prefers_image=False)
    assert not {"libc.so.6", "libm.so.6", "libpthread.so.0"} & set(made.libraries)
    assert any(name.startswith(("libmpi.so", "libmpich.so")) for name in made.libraries)
    assert all(folder.is_relative_to(made.folder) for folder in made.search)
    if name == "openmpi" and mpi.version.startswith("4."):
        plugins = Path(dict(made.variables)["OPAL_PKGLIBDIR"])
        assert plugins.is_relative_to(made.folder) and next(plugins.glob("mca_btl_*.so"), None) is not None


def test_drivers_that_are_named_by_files_in_etc(tmp_path: Path) -> None:
    """RDMA drivers: a variable lists them."""
    (tmp_path / "lib" / "libibverbs").mkdir(parents=True)
    library = tmp_path / "lib" / "libibverbs.so.1"
    drivers = [tmp_path / "lib" / "libibverbs" / f"lib{name}-rdmav34.so" for name in ("mlx5", "efa")]
    for path in (library, *drivers):
        path.write_text("x")
    one = next(own for own in brought._OWN if own.variable == "RDMAV_DRIVERS")
    libraries = {"libibverbs.so.1": library}
    found = brought._plugins_of(one, libraries)
    assert sorted(found) == sorted(drivers)
    copies = tmp_path / "copies"
    variables = brought._bring_own(one, found, libraries, copies)
    stem = f"{copies}{tmp_path}/lib/libibverbs/lib"
    assert variables == {"RDMAV_DRIVERS": f"{stem}efa:{stem}mlx5"}


def test_a_disk_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*paths: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(brought.shutil, "copyfile", full)
    with pytest.raises(BuildError, match="No space left"):
        bring_all(Path("/usr/bin/env"), (), None, os.environ)
