"""Places that are more than an address: their records in a table, and what a profile shows of them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import pytest
from profiler.made_up_tables import NAMES, Call, Table, Thread

from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.errors import ParseError
from seatrial.profiler.cause import CallSite, Frame, is_for_others
from seatrial.profiler.tables.header import SLOTS
from seatrial.profiler.tables.process_table import PLACE, PLACE_BIT, parse_places, parse_table
from seatrial.report.profile.document import profile_document
from seatrial.report.profile.place_words import path_words, site_words
from seatrial.report.profile.text import profile_text

KEY = PLACE_BIT | 5
MODULES = (
    "1000 2000 0 /opt/app\n3000 4000 0 /usr/lib/libpetsc.so.3.18\n5000 6000 0 /usr/lib/libpython3.11.so.1.0\n"
    "7000 8000 0 /site/mpi4py/MPI.openmpi.cpython-311-x86_64-linux-gnu.so\n"
)


def record(key: int, addresses: Sequence[int], python: Sequence[tuple[str, str, int]] = ()) -> bytes:
    text = b"".join(f"{line} {function}\0{file}\0".encode() for function, file, line in python)
    size = -(-(PLACE.size + 8 * len(addresses) + len(text)) // 8) * 8
    head = PLACE.pack(key, size, len(addresses), len(python))
    return (head + struct.pack(f"<{len(addresses)}Q", *addresses) + text).ljust(size, b"\0")


def named(module: str, offsets: Sequence[int]) -> Mapping[int, tuple[Frame, ...]]:
    return {offset: (Frame(f"f{offset:x}", "app.c", offset),) for offset in offsets if module == "/opt/app"}


def site_of(places: bytes, modules: str = MODULES, ranks: int = 1) -> CallSite:
    thread = Thread([Call("MPI_Send", 3, 8, site=KEY)])
    one = Table(rank=0, size=ranks, threads=(thread,), modules=modules, places=places)
    tables = [parse_table(one.but(rank=rank).data(), len(NAMES)) for rank in range(ranks)]
    (found,) = profiles(tables, NAMES, named)[0].callsites
    return found


def test_a_path_is_shown_from_the_innermost_call_outwards() -> None:
    site = site_of(record(KEY, [0x1010, 0x1020, 0x1030]))
    assert site_words(site) == "f10 app.c:16" and (site.module, site.offset) == ("/opt/app", 0x10)
    assert path_words(site) == "called by f20 app.c:32, f30 app.c:48"


def test_a_library_that_calls_mpi_for_others_is_not_the_place() -> None:
    site = site_of(record(KEY, [0x3010, 0x3020, 0x1020, 0x1030]))
    assert site_words(site) == "f20 app.c:32"
    assert path_words(site) == "through libpetsc.so.3.18+0x10, libpetsc.so.3.18+0x20; called by f30 app.c:48"
    alone = site_of(record(KEY, [0x3010, 0x3020]))
    assert site_words(alone) == "libpetsc.so.3.18+0x10", "nothing outside is known"


def test_a_line_of_python_stands_for_its_binding_but_not_for_other_libraries() -> None:
    python = [("solve", "/home/u/solve.py", 12)]
    site = site_of(record(KEY, [0x7010], python))
    assert site_words(site) == "solve solve.py:12" and site.path == () and site.module == ""
    site = site_of(record(KEY, [0x1010], python))
    assert site_words(site) == "f10 app.c:16" and path_words(site) == "called by solve solve.py:12"


def test_the_interpreter_is_left_out_of_a_path() -> None:
    python = [("solve", "solve.py", 12), ("main", "solve.py", 30)]
    site = site_of(record(KEY, [0x7010, 0x7020, 0x5010, 0x5020], python))
    assert [one.module.rpartition("/")[2][:3] for one in site.path] == ["MPI", "MPI", "", ""]
    assert site_words(site) == "solve solve.py:12" and path_words(site).endswith("called by main solve.py:30")


def test_the_same_path_at_other_addresses_is_one_call_site() -> None:
    threads = [(Thread([Call("MPI_Send", 3, 8, site=KEY + k)]),) for k in range(2)]
    tables = [
        Table(
            rank=k,
            size=2,
            threads=threads[k],
            modules=f"{0x1000 + shift:x} {0x2000 + shift:x} 0 /opt/app\n",
            places=record(KEY + k, [0x1010 + shift, 0x1020 + shift]),
        )
        for k, shift in enumerate((0, 0x10000))
    ]
    (found,) = profiles([parse_table(one.data(), len(NAMES)) for one in tables], NAMES, named)
    (site,) = found.callsites
    assert site.ranks == 2 and site.count == 6


def test_documents_and_text_have_the_path() -> None:
    thread = Thread([Call("MPI_Send", 3, 8, site=KEY)])
    table = Table(threads=(thread,), modules=MODULES, places=record(KEY, [0x3010, 0x1020]), lost_places=4)
    (found,) = profiles([parse_table(table.data(), len(NAMES))], NAMES, named)
    (site,) = profile_document(found, 0)["callsites"]
    assert [one["module"] for one in site["path"]] == ["/usr/lib/libpetsc.so.3.18", "/opt/app"]
    assert site["function"] == "f20" and site["path"][1]["line"] == 0x20
    text = " ".join(profile_text(found).split())
    assert "MPI_Send at f20 app.c:32: through libpetsc.so.3.18+0x10" in text
    assert "4 without their path or line of Python, because a table was full" in text and found.trust.overflow == 4


def test_what_calls_main_is_left_out() -> None:
    modules = f"{MODULES}9000 a000 0 /lib/libc.so.6\n"
    for outer in ([0x9010], [0x9010, 0x9020], [0x9010, 0x9020, 0x1030]):
        site = site_of(record(KEY, [0x1010, 0x1020, *outer]), modules)
        assert path_words(site) == "called by f20 app.c:32", outer
    through = site_of(record(KEY, [0x1010, 0x9010, 0x1020, 0x1030]), modules)
    assert len(through.path) == 4, "a callback of the C library"
    assert site_of(record(KEY, [0x1010, 0x9010]), modules).path == ()


def test_a_row_with_an_unknown_place_has_no_site() -> None:
    site = site_of(record(KEY + 1, [0x1010]))
    assert site_words(site) == "unknown"


def test_damaged_places_are_refused() -> None:
    whole = record(KEY, [0x1010], [("f", "file.py", 3)])
    assert parse_places(whole * 2) is not None and parse_places(b"") == {}
    for wrong in (
        whole[:-8],
        whole[:10],
        record(5, [0x1010]),
        record(KEY, []),
        PLACE.pack(KEY, 0, 1, 0) + bytes(8),
        PLACE.pack(KEY, 24, 1000, 0) + bytes(8),
        PLACE.pack(KEY, 24, 1, 3) + bytes(8),
        PLACE.pack(KEY, 32, 1, 1) + bytes(8) + b"x f\0g\0\0\0",
        PLACE.pack(KEY, 1 << 31, 1, 0) + bytes(8),
    ):
        assert parse_places(wrong) is None, wrong
        with pytest.raises(ParseError, match="call sites"):
            parse_table(Table(places=wrong).data(), len(NAMES))


def test_rows_are_a_power_of_two_and_an_older_table_has_the_usual_number() -> None:
    thread = Thread([Call("MPI_Send", 3, 8)] * 5000)
    read = parse_table(Table(threads=(thread,), rows=2 * SLOTS).data(), len(NAMES))
    assert len(read.threads[0].slots) == 5000
    for rows in (SLOTS + 64, 2 * SLOTS + 1):
        with pytest.raises(ParseError, match="rows"):
            parse_table(Table(rows=rows).data(), len(NAMES))
    old = parse_table(Table(version=2, threads=(Thread([Call("MPI_Send")]),)).data(), len(NAMES))
    assert len(old.threads[0].slots) == 1 and old.places == {}


@pytest.mark.parametrize(
    ("module", "is_so"),
    [
        ("/usr/lib/libpetsc_real.so.3.18", True),
        ("/usr/lib/libhdf5_openmpi.so.103", True),
        ("/x/mpi4py/MPI.mpich.cpython-311-x86_64-linux-gnu.so", True),
        ("/usr/lib/libmpi_mpifh.so.40", True),
        ("/usr/lib/libffi.so.8", True),
        ("/opt/liblammps.so.0", False),
        ("/opt/app", False),
        ("/home/u/hdf5", False),
    ],
)
def test_libraries_that_call_mpi_for_others(module: str, is_so: bool) -> None:
    assert is_for_others(module) == is_so
