"""`seatrial list` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from published_schemas import check

from tests.environments.made_up_mpi import installation

pytestmark = pytest.mark.real


def test_the_library_that_was_loaded_comes_first(tmp_path: Path) -> None:
    installation(tmp_path / "own", "mvapich")
    answer = seatrial_here(
        "list", "--format", "json", cwd=tmp_path, MVAPICH2_HOME=str(tmp_path / "own"), XDG_CONFIG_HOME=str(tmp_path)
    )
    document = json.loads(answer.stdout)
    check(document, "list-1")
    first = document["mpis"][0]
    assert (first["name"], first["version"], first["found"]) == ("mvapich", "2.3.7", "MVAPICH2_HOME")
    assert document["environments"][0]["mpi"] == "mvapich"


def test_the_users_site_file_comes_first_and_its_errors_are_bad_input(tmp_path: Path) -> None:
    prefix = installation(tmp_path / "own", "openmpi")
    (tmp_path / "seatrial").mkdir()
    site = tmp_path / "seatrial/site.yaml"
    site.write_text(f"environments:\n  prod: {{mpi: {prefix}, flags: -O2}}\n  gone: {{mpi: /no/such}}\n")
    text = seatrial_here("list", "-v", cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path)).stdout
    libraries = text[text.index("MPI libraries (environment.mpi; the first is the default):") :].splitlines()
    assert libraries[1].split()[:4] == ["prod", "Open", "MPI", "4.1.6"]
    assert "needs /no/such has no compiler wrapper" in text
    site.write_text("environments:\n  prod: {mpj: /x}\n")
    refused = seatrial_here("list", cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path))
    assert refused.returncode == 2 and f"{site}: line 2: environments.prod.mpj" in refused.stderr
    assert "did you mean mpi?" in refused.stderr and "Traceback" not in refused.stderr


def test_the_list_of_an_area_has_its_questions_and_that_of_a_name_everything(tmp_path: Path) -> None:
    area, name, full = (
        seatrial_here("list", *words, cwd=tmp_path).stdout for words in (["cpu"], ["cpu.peak"], ["cpu", "-v"])
    )
    assert "cpu.peak" in area and "parameters" not in area
    assert "parameters (" in name and "cpu.linebounce" not in name
    assert full.count("parameters (") == area.count("\ncpu.") + 1
