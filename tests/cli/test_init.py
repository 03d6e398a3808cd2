"""`seatrial init` writes files that are valid as they are; the manual page is valid roff."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from jsonschema import Draft202012Validator

from seatrial.cli.commands import PURPOSES
from seatrial.cli.man import manual_page


@pytest.mark.parametrize("kind", ["study", "site", "benchmark", "image"])
def test_a_new_file_is_valid_as_it_is(tmp_path: Path, kind: str) -> None:
    data = {"XDG_DATA_HOME": str(tmp_path / "data")}
    done = seatrial_here("init", kind, cwd=tmp_path, **data)
    path = tmp_path / f"{kind}.yaml"
    assert done.returncode == 0 and done.stdout == f"{kind}.yaml\n"
    head = path.read_text().splitlines()[0]
    schema = Path(head.removeprefix("# yaml-language-server: $schema="))
    Draft202012Validator.check_schema(json.loads(schema.read_text()))
    if kind == "benchmark":
        (tmp_path / "seatrial-benchmarks").mkdir()
        shutil.copy(path, tmp_path / "seatrial-benchmarks")
    used = {
        "study": ("plan", "study.yaml"),
        "site": ("build", "nothing", "--site", "site.yaml"),
        "benchmark": ("list", "local.copy"),
        "image": ("container", "make", "image.yaml", "-o", "image.yaml"),
    }[kind]
    answer = seatrial_here(*used, cwd=tmp_path)
    refused = {"site": "unknown benchmark 'nothing'", "image": "the ending .yaml is not one of an image"}
    assert refused[kind] in answer.stderr if kind in refused else answer.returncode == 0, answer.stderr
    before = path.read_text()
    again = seatrial_here("init", kind, cwd=tmp_path, **data)
    assert again.returncode == 2 and "exists already" in again.stderr and path.read_text() == before
    other = seatrial_here("init", kind, "other.yaml", cwd=tmp_path, **data)
    assert other.returncode == 0 and (tmp_path / "other.yaml").exists()


def test_the_lines_of_the_site_file_are_valid_without_their_marks(tmp_path: Path) -> None:
    seatrial_here("init", "site", cwd=tmp_path, XDG_DATA_HOME=str(tmp_path))
    lines = (tmp_path / "site.yaml").read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("# environments:"))
    (tmp_path / "site.yaml").write_text("\n".join(line.removeprefix("# ").removeprefix("#") for line in lines[start:]))
    answer = seatrial_here("run", "nothing", "--site", "site.yaml", cwd=tmp_path)
    assert answer.returncode == 2 and "unknown benchmark 'nothing'" in answer.stderr, answer.stderr


def test_the_manual_page_has_every_command_and_option() -> None:
    page = manual_page()
    for command in PURPOSES:
        assert f".SS {command}" in page
    assert "\\-\\-ignore\\-lock\\-of USER" in page and ".SH EXIT STATUS" in page
    if shutil.which("groff") is None:
        pytest.skip("groff not found (Debian: apt install groff-base)")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-z", "-Tutf8"], input=page, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stderr == ""
