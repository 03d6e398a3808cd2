"""Real programs under the profiler: the merged profile reports what they did."""

from __future__ import annotations

import pytest
from environments.mpi_libraries import FOUR, library
from profiler.mpi_programs import run, traffic_program
from published_schemas import check

from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.profile import Bound, Pair
from seatrial.profiler.symbols.symbols import Symbols
from seatrial.profiler.tables.process_table import read_table
from seatrial.report.profile.document import profile_document
from seatrial.report.profile.page import profile_page
from seatrial.report.profile.text import profile_text

pytestmark = [pytest.mark.real, pytest.mark.parallel]


@pytest.mark.parametrize("name", FOUR[:2])
def test_a_program_of_known_traffic(name, tmp_path) -> None:
    mpi, names, folder = library(name), function_names(), tmp_path / "tables"
    seen = run(mpi, traffic_program(mpi), folder, 2, "point_to_point")
    tables = [read_table(path, len(names)) for path in folder.glob("*.mpi")]
    (found,) = profiles(tables, names, Symbols.of_this_machine().frames)
    assert found.ranks == 2 and found.trust.is_complete and found.trust.unmatched_B == 0
    for call in found.calls:
        assert (call.count, call.bytes) == tuple(
            sum(one.calls.get(call.call, (0, 0))[k] for one in seen) for k in range(2)
        )
    assert list(found.matrix) == [Pair(0, 1, 9, 316), Pair(1, 0, 6, 292)]
    assert {one.call: one.bound for one in found.calls}["MPI_Init"] is Bound.START
    assert any(frame.function for site in found.callsites for frame in site.frames)
    document = profile_document(found, 0)
    check(document, "profile-1")
    assert 0 < document["mpi_s"] <= document["wall_s"] and document["overhead_s"] > 0
    assert "MPI_Sendrecv" in profile_text(found) and "MPI_Sendrecv" in profile_page([found])
