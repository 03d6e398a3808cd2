"""The results folder: written once, appended whole, read without torn lines."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.model.machine.document import machine_document
from seatrial.model.machine.limit import dram_bandwidth
from seatrial.model.machine.machine import Machine, Memory
from seatrial.model.results.record import Experiment, RepeatRecord, encode
from seatrial.model.results.sample import Outcome, Sample
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import RecordWriter

EXPERIMENT = Experiment("memory.stream", {"threads": 2}, "env", "program", "machine")


def machine(identity: str = "machine", **more: object) -> dict[str, object]:
    return {"identity": identity, **machine_document(Machine("m")), **more}


def record(repeat: int) -> RepeatRecord:
    samples = (Sample("triad", 0, 1e-3, {"bytes": 1e6}),)
    return RepeatRecord(EXPERIMENT.id, repeat, repeat, 1e9 + repeat, 0.3, Outcome.ok(), samples)


def write(folder: ResultsFolder, *repeats: int) -> Path:
    writer = RecordWriter(folder, "host")
    for repeat in repeats:
        writer.append(record(repeat))
    writer.close()
    return writer.path


def test_what_was_written_is_read(folder: ResultsFolder) -> None:
    write(folder, 0, 1)
    write(folder, 2)
    contents = read_contents(folder)
    assert [r.repeat for r in contents.records[EXPERIMENT.id]] == [0, 1, 2]
    assert contents.experiments[EXPERIMENT.id] == EXPERIMENT
    assert contents.environments == {"env": {"name": "gcc"}}
    assert contents.places[(EXPERIMENT.id, 1)].line == 2
    assert contents.damaged == ()


def test_environments_are_in_the_order_of_their_experiments(folder: ResultsFolder) -> None:
    """A set of names has another order in each process, and pages would differ from run to run."""
    writer = RecordWriter(folder, "host")
    for name in "abcdefgh":
        experiment = replace(EXPERIMENT, environment=name)
        folder.put("environments", name, {"name": name})
        folder.put("experiments", experiment.id, experiment.document())
        writer.append(replace(record(0), experiment=experiment.id))
    writer.close()
    assert list(read_contents(folder).environments) == list("abcdefgh")


def test_at_any_cut_the_whole_lines_before_it_are_read_and_nothing_else(folder: ResultsFolder) -> None:
    path = write(folder, 0, 1)
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    for length in range(0, len(data) + 1, 7):
        path.write_bytes(data[:length])
        contents = read_contents(folder)
        expected = [0, 1] if length == len(data) else [0] if length >= first else []
        assert [r.repeat for r in contents.records.get(EXPERIMENT.id, ())] == expected
        assert contents.damaged == ()


def test_a_damaged_line_is_reported_and_not_accepted(folder: ResultsFolder) -> None:
    path = write(folder, 0, 1, 2)
    data = path.read_bytes().replace(b'"repeat":1', b'"repeat":7')
    path.write_bytes(data)
    contents = read_contents(folder)
    assert [r.repeat for r in contents.records[EXPERIMENT.id]] == [0, 2]
    assert len(contents.damaged) == 1 and "line 2" in contents.damaged[0]


def test_a_duplicate_repeat_counts_once_and_is_reported(folder: ResultsFolder) -> None:
    path = write(folder, 0)
    path.write_bytes(path.read_bytes() + encode(replace(record(0), t0=2e9)))
    contents = read_contents(folder)
    assert len(contents.records[EXPERIMENT.id]) == 1 and "duplicate repeat" in contents.damaged[0]


@pytest.mark.parametrize("room", ["machines", "environments", "experiments"])
@pytest.mark.parametrize("damage", ["missing", "empty"])
def test_a_damaged_fact_costs_the_records_that_refer_to_it_and_no_others(
    room: str, damage: str, folder: ResultsFolder
) -> None:
    write(folder, 0)
    other = replace(EXPERIMENT, machine="machine-2", environment="env-2")
    folder.put("machines", "known-2", machine("machine-2"))
    folder.put("environments", "env-2", {"name": "clang"})
    folder.put("experiments", other.id, other.document())
    writer = RecordWriter(folder, "host")
    writer.append(replace(record(0), experiment=other.id))
    writer.close()
    name = {"machines": "known", "environments": "env", "experiments": EXPERIMENT.id}[room]
    damaged = folder.path / room / f"{name}.json"
    if damage == "missing":
        damaged.unlink()
    else:
        damaged.write_text("")
    contents = read_contents(folder)
    assert set(contents.records) == {other.id} and contents.damaged
    assert "1 repeat " in " ".join(contents.damaged)


def test_a_fact_that_a_power_cut_emptied_is_written_again(folder: ResultsFolder) -> None:
    (folder.path / "environments" / "env.json").write_text("")
    folder.put("environments", "env", {"name": "gcc"})
    assert folder.get("environments", "env") == {"name": "gcc"}


def test_of_one_machine_the_document_that_knows_most_is_read(folder: ResultsFolder) -> None:
    """A user ran first and root later: root sees the memory modules."""
    write(folder, 0)
    root = machine(memory=machine_document(Machine("m", memory=Memory(peak=dram_bandwidth(2, 3200))))["memory"])
    for key, document in (("a", machine(sources=["sysfs"])), ("m", root), ("z", machine())):
        folder.put("machines", key, document)
    assert read_contents(folder).machines["machine"] == root


def test_a_folder_that_is_not_ours_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="not empty"):
        ResultsFolder.create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_whose_making_was_killed_is_ours(tmp_path: Path) -> None:
    (tmp_path / ".FORMAT.123").write_text("seatrial-re")
    assert ResultsFolder.create(tmp_path).path == tmp_path


def test_another_version_is_refused(tmp_path: Path) -> None:
    folder = ResultsFolder.create(tmp_path / "r")
    (folder.path / "FORMAT").write_text("seatrial-results 99\n")
    with pytest.raises(UsageError, match="99"):
        ResultsFolder.create(tmp_path / "r")


def test_a_path_that_is_a_file_cannot_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be written"):
        ResultsFolder.create(tmp_path / "file")


def test_a_fact_is_written_once(folder: ResultsFolder) -> None:
    folder.put("environments", "env", {"name": "something else"})
    assert folder.get("environments", "env") == {"name": "gcc"}


_FILLS_ITS_DISK = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from store.test_store import EXPERIMENT, record
from seatrial.errors import StoreError
from seatrial.model.results.record import encode
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import RecordWriter
folder = ResultsFolder.existing(Path(sys.argv[1]))
writer = RecordWriter(folder, "host")
writer.append(record(0))
size = writer.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, size + 10))
try:
    writer.append(record(1))
except StoreError as error:
    print(error)
"""


@pytest.mark.real
def test_where_the_file_cannot_grow_the_half_line_is_taken_back(folder: ResultsFolder) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FILLS_ITS_DISK, str(folder.path), str(Path(__file__).parents[1])],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "File too large" in done.stdout and "finished repeats are kept" in done.stdout
    (path,) = (folder.path / "records").glob("*.jsonl")
    assert path.read_bytes().endswith(b"\n")
    contents = read_contents(folder)
    assert [r.repeat for r in contents.records[EXPERIMENT.id]] == [0] and contents.damaged == ()


def test_a_folder_that_another_process_makes_at_this_moment_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = Path.iterdir

    def iterdir(self: Path) -> Iterator[Path]:
        monkeypatch.setattr(Path, "iterdir", listed)
        ResultsFolder.create(self)  # the other process, between our question for FORMAT and our look around
        return listed(self)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert ResultsFolder.create(tmp_path / "results").path == tmp_path / "results"
