"""A profile as Parquet: DuckDB reads the same values as in the JSON."""

from __future__ import annotations

import duckdb
import pytest
from report.profile.profile_samples import SAMPLES, crash, nothing

from seatrial.errors import StoreError
from seatrial.profiler.parquet import write_parquet
from seatrial.report.profile.document import profile_document


def test_it_is_what_the_document_says(tmp_path) -> None:
    profile = crash()
    document = profile_document(profile, 0)
    files = {path.stem: path for path in write_parquet(profile, tmp_path / "it's" / "deep")}
    assert set(files) == {
        "calls",
        "sizes",
        "matrix",
        "per_rank",
        "callsites",
        "over_time",
        "io",
        "regions",
        "cpu_slices",
    }

    def rows(name: str, *fields: str):
        return duckdb.sql(f"SELECT {', '.join(fields)} FROM read_parquet(?)", params=[str(files[name])]).fetchall()

    for name, fields in {
        "calls": ("call", "count", "time_s", "bytes"),
        "sizes": ("call", "size_bin", "count", "bytes"),
        "matrix": ("src", "dst", "count", "bytes"),
        "per_rank": ("rank", "host", "wall_s", "mpi_s", "sent_bytes", "recv_bytes"),
    }.items():
        assert rows(name, *fields) == [tuple(row[field] for field in fields) for row in document[name]]
    assert rows("callsites", "function", "line")[0] == ("reduce_energy", 212)
    assert sum(row[0] for row in rows("over_time", "mpi_s")) == pytest.approx(sum(document["over_time"]["mpi_s"]))
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("profile", [nothing, SAMPLES["hostile"]])
def test_every_profile_can_be_written(tmp_path, profile) -> None:
    for path in write_parquet(profile(), tmp_path):
        assert duckdb.sql("SELECT count(*) FROM read_parquet(?)", params=[str(path)]).fetchall()[0][0] >= 0


def test_a_folder_that_cannot_be_written_is_reported(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        write_parquet(crash(4), tmp_path / "file" / "under")
