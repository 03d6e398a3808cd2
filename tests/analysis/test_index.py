"""The index of a results folder: equal to what reading the folder gives, and never older than its records."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from applications.result_texts import stream
from made_up import made_up_machine

from seatrial.analysis.index import index
from seatrial.analysis.index.index import damaged_lines, opened_index
from seatrial.analysis.index.known import known_contents
from seatrial.analysis.results import all_results
from seatrial.engine.import_recording import record_repeats
from seatrial.engine.importing import Given, ResultFile, read_repeats
from seatrial.errors import StoreError
from seatrial.model.results.record import Experiment, decode, encode
from seatrial.model.results.sample import Outcome
from seatrial.store import reading
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

Rows = list[tuple[object, ...]]


def put(path: Path, n: int, first: int = 0, host: str = "n1", threads: int = 2) -> ResultsFolder:
    """Import `n` files of STREAM."""
    files = [
        ResultFile(
            "stream",
            f"{k}.txt",
            stream(threads=threads, rates_MBps=(38000.0 + k, 43000.0, 39000.0, 38000.5)).encode(),
            1e9 + k,
        )
        for k in range(first, first + n)
    ]
    folder = ResultsFolder.create(path)
    record_repeats(read_repeats(files, Given(replace(made_up_machine(channels=8), name=host))), folder)
    return folder


def indexed(folder: ResultsFolder) -> Rows:
    with opened_index(folder) as connection:
        return sorted(
            connection.execute(
                "SELECT experiment, figure, median, ci95_low, ci95_high, n_repeats, n_samples, min, max, limit_value, "
                "limit_derivation, fraction_of_limit FROM figures"
            ).fetchall(),
            key=repr,
        )


def read(folder: ResultsFolder) -> Rows:
    rows = []
    for result in all_results(read_contents(folder)):
        for one in result.figures:
            limit = one.limit
            low, high = one.ci95 or (None, None)
            rows.append(
                (result.id, one.name, one.median, low, high, one.n_repeats, one.n_samples, one.minimum, one.maximum,
                 limit.value if limit else None, limit.derivation if limit else None, one.fraction_of_limit)
            )  # fmt: skip
    return sorted(rows, key=repr)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_figures_are_those_of_the_folder_and_additions_are_seen(tmp_path: Path) -> None:
    folder = put(tmp_path / "r", 7)
    assert indexed(folder) == read(folder) != []
    put(tmp_path / "r", 3, first=7)
    put(tmp_path / "r", 2, host="n2", threads=4)
    assert indexed(folder) == read(folder)


def test_an_addition_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(tmp_path / "r", 7)
    indexed(folder)
    monkeypatch.delattr(index, "_made")  # the index cannot be made anew
    put(tmp_path / "r", 3, first=7)
    assert indexed(folder) == read(folder)
    put(tmp_path / "r", 2, first=10)
    assert indexed(folder) == read(folder)


def test_a_changed_record_makes_the_index_anew(tmp_path: Path) -> None:
    folder = put(tmp_path / "r", 6)
    before = indexed(folder)
    (path,) = (folder.path / "records").glob("*.jsonl")
    lines = path.read_bytes().splitlines()
    record = decode(lines[0])
    lines[0] = encode(replace(record, outcome=Outcome.invalid("planted", "x")))[:-1]
    path.write_bytes(b"\n".join(lines) + b"\n")
    assert indexed(folder) == read(folder) != before
    path.write_bytes(b"\n".join(lines[:-1]) + b"\n")
    assert indexed(folder) == read(folder)
    path.unlink()
    assert indexed(folder) == []


def test_damaged_and_double_lines_are_left_out_and_reported(tmp_path: Path) -> None:
    folder = put(tmp_path / "r", 6)
    (path,) = (folder.path / "records").glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    (folder.path / "records" / "z-1-1.jsonl").write_bytes(lines[0] + b"{damaged}\n" + lines[1][:-30])
    assert indexed(folder) == read(folder)
    with opened_index(folder) as connection:
        assert len(damaged_lines(connection)) == 2
    (folder.path / "records" / "y-1-1.jsonl").write_bytes(lines[2])
    assert indexed(folder) == read(folder)


def test_a_damaged_index_is_made_again(tmp_path: Path, own_cache: Path) -> None:
    folder = put(tmp_path / "r", 6)
    before = indexed(folder)
    (made,) = (own_cache / "index").glob("*.duckdb")
    made.write_bytes(b"not a database" * 1000)
    assert indexed(folder) == before
    made.unlink()
    assert indexed(folder) == before


@pytest.mark.parametrize(
    "planted", ["link", "dangling link", "hard link", "fifo", "folder", "linked lock", "fifo lock"]
)
def test_what_is_planted_under_the_name_of_an_index_is_replaced(planted: str, tmp_path: Path, own_cache: Path) -> None:
    """A FIFO was opened and waited for, a folder was an error, a link was followed."""
    folder = put(tmp_path / "r", 6)
    before = indexed(folder)
    (made,) = (own_cache / "index").glob("*.duckdb")
    other = tmp_path / "other"
    other.write_bytes(made.read_bytes())
    kept = other.read_bytes()
    at = made.with_suffix(".lock") if "lock" in planted else made
    made.unlink()
    at.unlink(missing_ok=True)
    if planted == "hard link":
        at.hardlink_to(other)
    elif "link" in planted:
        at.symlink_to(tmp_path / "absent" if planted == "dangling link" else other)
    elif "fifo" in planted:
        os.mkfifo(at)
    else:
        (at / "inside").mkdir(parents=True)
    put(tmp_path / "r", 1, first=6)
    assert indexed(folder) == read(folder) != before
    assert other.read_bytes() == kept and not (tmp_path / "absent").exists()
    assert made.is_file() and not made.is_symlink() and not at.is_symlink() and at.is_file()


def test_an_index_with_other_columns_is_made_again(tmp_path: Path, own_cache: Path) -> None:
    folder = put(tmp_path / "r", 6)
    before = indexed(folder)
    (made,) = (own_cache / "index").glob("*.duckdb")
    changes = (
        "ALTER TABLE stored.figures RENAME COLUMN median TO middle",
        "ALTER TABLE stored.files ALTER stamp TYPE BIGINT USING 7",
        "ALTER TABLE stored.experiments ADD COLUMN more VARCHAR",
        "DROP TABLE stored.readings",
    )
    for change in changes:
        with duckdb.connect(str(made)) as connection:
            connection.execute(change)
        assert indexed(folder) == before, change


def test_a_kept_result_that_cannot_be_read_is_computed_again(tmp_path: Path, own_cache: Path) -> None:
    folder = put(tmp_path / "r", 6)
    indexed(folder)
    (made,) = (own_cache / "index").glob("*.duckdb")
    for packed in (b"", b"\x80\x05garbage", b"cnosuch.module\nnothing\n."):
        with duckdb.connect(str(made)) as connection:
            connection.execute("UPDATE stored.results SET packed = ?", [packed])
        with pytest.raises(StoreError, match="cannot be read"):
            known_contents(folder)


def test_a_cache_that_others_can_write_is_not_used(tmp_path: Path, own_cache: Path) -> None:
    folder = put(tmp_path / "r", 6)
    (own_cache / "index").mkdir(parents=True)
    (own_cache / "index").chmod(0o777)
    assert indexed(folder) == read(folder)
    assert list((own_cache / "index").iterdir()) == []


@pytest.mark.real
def test_several_processes_read_large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(tmp_path / "r", 12)
    monkeypatch.setattr(reading, "LARGE_B", 1)
    monkeypatch.setattr(reading, "SPAN_B", 4000)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert indexed(folder) == read(folder)


def test_an_experiment_that_lacks_a_parameter_is_read(tmp_path: Path) -> None:
    folder = put(tmp_path / "r", 2)
    (key,) = folder.keys("experiments")
    whole = Experiment.from_document(folder.get("experiments", key))
    lacking = replace(whole, parameters={"threads": 2})
    folder.put("experiments", lacking.id, lacking.document())
    (path,) = (folder.path / "records").glob("*.jsonl")
    records = [replace(decode(line), experiment=lacking.id) for line in path.read_bytes().splitlines()]
    path.write_bytes(b"".join(map(encode, records)))
    assert indexed(folder) == read(folder) and {row[0] for row in read(folder)} == {lacking.id}


def test_views_have_the_documented_columns(tmp_path: Path) -> None:
    from seatrial.analysis.index.views import VIEWS

    folder = put(tmp_path / "r", 2)
    with opened_index(folder) as connection:
        for view in VIEWS:
            found = [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {view.name}").fetchall()]
            assert found == [(column.name, column.type) for column in view.columns], view.name
        sample = connection.execute("SELECT series, elapsed_s, work FROM samples LIMIT 1").fetchone()
        assert sample is not None and isinstance(json.loads(sample[2]), dict)
    assert reading.SPAN_B > 1 << 20
    text = (Path(__file__).parents[2] / "docs" / "results-folder.md").read_text()
    for view in VIEWS:
        for column in view.columns:
            assert f"| `{column.name}` | {column.meaning} |" in text, (view.name, column.name)


def test_an_index_depends_on_packages_that_exist() -> None:
    """It watched one that had been renamed, and was kept when readers changed."""
    top = Path(index.__file__).parents[2]
    assert not [name for name in index._DEPENDS_ON if not (top / name / "__init__.py").is_file()]
