"""Import, report and profile, killed at calls that change the disk, or on a full disk: nothing is half-written, and the
same import completes afterwards. SEATRIAL_KILLS=1 kills them at every such call."""

from __future__ import annotations

import json
import marshal
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from applications.result_texts import stream
from hostile import interrupted
from hostile.folder_damage import make
from profiler.made_up_tables import Call, Table, Thread
from usual import usually

import seatrial
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

pytestmark = pytest.mark.real


def outcomes(how: str, folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """What each interrupted run left behind; each was then run again."""
    folder.mkdir()
    tests = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
    # Python 3.11 keeps bytecode of which a full disk took only the first bytes, and then cannot load that module.
    bytecode = {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, interrupted.__file__, how, str(folder), *arguments],
        env={**os.environ, **bytecode, "PYTHONPATH": path, "SEATRIAL_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("how", ["kill", "full"])
def test_an_import_is_whole_or_can_be_repeated(how: str, tmp_path: Path) -> None:
    file = tmp_path / "stream.txt"
    file.write_text(stream())
    ends = outcomes(how, tmp_path / how, "import", f"stream={file}", "--results", "OUT/results")
    assert len(ends) > 3
    for end in ends:
        assert end["status"] in ({-9, 0} if how == "kill" else {2, 3, 0}) and end["again"] == 0, end
        folder = Path(end["out"]) / "results"
        contents = read_contents(ResultsFolder.existing(folder))
        assert contents.damaged == () and [len(own) for own in contents.records.values()] == [1], end
        assert not list(folder.glob("artefacts/*/[0-9]*")), "a claim was left behind"


@pytest.mark.parametrize(
    ("command", "how"),
    usually([("report", "kill"), ("profile", "full"), ("profile", "kill")], lambda case: case != ("profile", "kill")),
)
def test_a_page_is_whole_or_missing(command: str, how: str, tmp_path: Path) -> None:
    source = make(tmp_path / "results", repeats=2)
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "a.mpi").write_bytes(Table(threads=(Thread([Call("MPI_Barrier", 4)]),)).data())
    words = ["report", str(source)] if command == "report" else ["profile", "--tables", str(tables)]
    ends = outcomes(how, tmp_path / how, *words, "-o", "OUT/page.html")
    for path in Path(seatrial.__file__).parent.rglob("*.pyc"):
        marshal.loads(path.read_bytes()[16:])  # by a process of ours, which the variables of its start do not reach
    for end in ends:
        assert end["status"] in ({-9, 0} if how == "kill" else {2, 3, 0}) and end["again"] == 0, end
        page = Path(end["out"]) / "page.html"
        assert not page.exists() or page.read_text(encoding="utf-8").rstrip().endswith("</html>")
        hidden = [name for name in end["left"] if name != "page.html"]
        assert not hidden if how == "full" else len(hidden) <= 1, "a full disk is not filled by what is left behind"
        assert "page.html" not in end["left"] or end["status"] in (0, -9)
