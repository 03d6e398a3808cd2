"""`seatrial results` and `history`: nothing is lost by a merge, a drop or a kill between its steps."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from analysis.made_up_folders import MadeUpFolder
from analysis.test_index import indexed, put, read
from cli.test_export import refused, say
from msgspec.structs import replace
from published_schemas import check

from seatrial.model.results.record import decode, encode
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder


def repeats(path: Path) -> list[float]:
    """The starts of all repeats."""
    contents = read_contents(ResultsFolder.existing(path))
    assert contents.damaged == ()
    return sorted(record.t0 for own in contents.records.values() for record in own)


def test_folders_are_listed_with_their_labels(tmp_path: Path) -> None:
    put(tmp_path / "a", 2)
    put(tmp_path / "b", 3, host="n2")
    say(tmp_path, "results", "name", "a", "before")
    say(tmp_path, "results", "tag", "a", "b", "--add", "bios,kernel")
    say(tmp_path, "results", "tag", "a", "--remove", "kernel")
    say(tmp_path, "results", "note", "a", "with the old BIOS")
    found = json.loads(say(tmp_path, "results", "list", "--format", "json"))
    check(found, "folders-1")
    first, second = found["folders"]
    assert (first["name"], first["tags"], first["notes"]) == ("before", ["bios"], ["with the old BIOS"])
    assert (second["repeats"], second["hosts"], second["tags"]) == (3, ["n2"], ["bios", "kernel"])
    assert "did you mean bios" in refused(tmp_path, "results", "tag", "a", "--remove", "bio")


def test_a_merge_renumbers_what_collides_and_keeps_equal_repeats_once(tmp_path: Path) -> None:
    put(tmp_path / "a", 4)
    put(tmp_path / "b", 4, first=10)  # other files with the numbers of the same experiment
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    listed = say(tmp_path, "results", "merge", "a", "b", "copy", "-o", "all", "--list")
    assert "8 repeats to add" in listed and "4 repeats there already" in listed and "4 repeats of b get new" in listed
    assert not (tmp_path / "all").exists()
    say(tmp_path, "results", "merge", "a", "b", "copy", "-o", "all")
    assert repeats(tmp_path / "all") == sorted(repeats(tmp_path / "a") + repeats(tmp_path / "b"))
    say(tmp_path, "results", "merge", "a", "b", "-o", "all")  # again: nothing is added
    assert len(repeats(tmp_path / "all")) == 8 and len(repeats(tmp_path / "b")) == 4


def test_dropped_experiments_come_back(tmp_path: Path) -> None:
    folder = put(tmp_path / "a", 6)
    put(tmp_path / "a", 5, threads=4)
    before, figures = repeats(tmp_path / "a"), read(folder)
    key = next(key for key, own in read_contents(folder).records.items() if len(own) == 6)
    say(tmp_path, "results", "drop", "a", key[:6])
    assert len(repeats(tmp_path / "a")) == 5 and indexed(folder) == read(folder)
    put(tmp_path / "a", 2, first=20)  # measured again, with the numbers of what was dropped
    say(tmp_path, "results", "restore", "a")
    assert len(repeats(tmp_path / "a")) == 13 and set(before) <= set(repeats(tmp_path / "a"))
    assert figures and indexed(folder) == read(folder)
    assert "the trash of a is empty" in refused(tmp_path, "results", "restore", "a")
    assert "did you mean memory.stream" in refused(tmp_path, "results", "drop", "a", "memory.strem")


def test_an_active_run_is_not_disturbed(tmp_path: Path) -> None:
    folder = put(tmp_path / "a", 2)
    (key,) = read_contents(folder).records
    claimed = folder.artefacts(key, 9)
    claimed.mkdir(parents=True)
    (claimed / "claim.json").write_text("{}")
    assert "a run is active" in refused(tmp_path, "results", "merge", "a", "-o", "b")
    assert "a run is active" in refused(tmp_path, "results", "drop", "a", "memory.stream")
    assert len(repeats(tmp_path / "a")) == 2 and not (tmp_path / "b").exists()


def months(path: Path, slow_from: int, sessions: int = 24) -> None:
    """A session each day, in a file of its own; another library from the day of the change on."""
    folder = put(path, 1)
    (file,) = (path / "records").glob("*.jsonl")
    record = decode(file.read_bytes()[:-1])
    file.unlink()
    for n in range(sessions):
        factor = (1.0 if n < slow_from else 1.2) * (1.0 + 0.001 * (n * 7 % 5))
        samples = [replace(one, elapsed_s=one.elapsed_s * factor) for one in record.samples]
        seen = {**record.seen, "libs": {"libm.so.6": "a" * 40 if n < slow_from else "b" * 40}}
        made = replace(record, repeat=n, order=0, t0=1.7e9 + 86400.0 * n, samples=samples, seen=seen)
        (folder.path / "records" / f"n1-1-{n:03d}.jsonl").write_bytes(encode(made))


def test_history_finds_a_change_and_what_else_changed(tmp_path: Path) -> None:
    months(tmp_path / "a", slow_from=15)
    found = json.loads(say(tmp_path, "history", "triad", "a", "--format", "json"))
    check(found, "history-1")
    (series,) = found["series"]
    (change,) = series["changes"]
    assert change["index"] == 15 and change["sureness"] > 0.99
    assert [one["what"] for one in change["differences"]] == ["library libm.so.6"]
    text = say(tmp_path, "history", "memory.stream:triad", "a", "a")
    assert "2023-11-28" in text and "2023-11-29" in text and "library libm.so.6" in text
    assert "did you mean triad" in refused(tmp_path, "history", "tirad", "a")
    several = refused(tmp_path, "history", "memory.stream", "a")
    assert "memory.stream has 4 figures" in several and "memory.stream:triad" in several


def test_a_benchmark_with_one_main_figure_is_named_in_its_place(tmp_path: Path) -> None:
    """As docs/first-day.md has it: `history cpu.peak october november`."""
    MadeUpFolder(tmp_path / "october").add([1e11, 1.01e11, 1.02e11])
    by_benchmark, by_figure = (
        json.loads(say(tmp_path, "history", name, "october", "--format", "json")) for name in ("cpu.peak", "fma")
    )
    assert by_benchmark == by_figure and by_benchmark["series"]


def test_a_steady_history_has_no_change_and_a_short_one_says_so(tmp_path: Path) -> None:
    months(tmp_path / "a", slow_from=99)
    assert "no change found" in say(tmp_path, "history", "triad", "a")
    months(tmp_path / "b", slow_from=3, sessions=6)
    assert "with 6 sessions, no change can be found: at least 10" in " ".join(
        say(tmp_path, "history", "triad", "b").split()
    )
