"""Table files of the MPI profiler: complete ones are read, damaged ones are refused."""

from __future__ import annotations

import random
import re
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from profiler.made_up_tables import NAMES, Call, Table, Thread, size_bin

import seatrial
from seatrial.errors import ParseError
from seatrial.profiler.tables.header import HEADER, SLOTS, VERSION, Family, ProcessState, bin_ceiling, bin_floor
from seatrial.profiler.tables.process_table import PEER_B, PLACE, SLOT_B, SLOTS_AT, Module, parse_table, read_table

FORMAT = Path(seatrial.__file__).parent / "profiler" / "native" / "table_file.h"
WHOLE = Table(
    rank=1,
    size=3,
    threads=(
        Thread([Call("MPI_Send", 4, 224, site=0x1010)], {0: (4, 896, 0, 0)}, [0.5, 0.25], without_site=3),
        Thread([Call("MPI_Recv", 2, 4096)], {0: (1, 1, 0, 0), 2: (0, 0, 2, 8192)}),
    ),
    modules="1000 2000 500 /opt/my app\n7000 8000 0 /lib/libm.so\n",
    unknown_length=1,
)
FIELDS = {
    "magic": (0, "<Q"),
    "version": (8, "<I"),
    "state": (12, "<I"),
    "family": (16, "<I"),
    "rank": (20, "<i"),
    "size": (24, "<i"),
    "threads": (36, "<I"),
    "area": (40, "<Q"),
    "at": (48, "<Q"),
    "rate": (56, "<d"),
}
"""Of the header: where it stands, and its form."""


def parse(data: bytes):
    return parse_table(data, len(NAMES), "node1-77.mpi")


def with_field(name: str, value: float) -> bytes:
    at, form = FIELDS[name]
    data = bytearray(WHOLE.data())
    struct.pack_into(form, data, at, value)
    return bytes(data)


def test_a_whole_table_is_read() -> None:
    table = parse(WHOLE.data())
    assert (table.rank, table.size, table.pid, table.host, table.program) == (1, 3, 77, "node1", "/opt/app")
    assert table.family is Family.OPENMPI and table.state is ProcessState.FINALIZED and table.unknown_length == 1
    assert table.wall_s == pytest.approx(10.0) and table.own_s == pytest.approx(8e-9)
    assert table.modules == (Module(0x1000, 0x2000, 0x500, "/opt/my app"), Module(0x7000, 0x8000, 0, "/lib/libm.so"))
    first, second = table.threads
    (row,) = first.slots
    assert (row["call"], row["bin"], row["count"], row["bytes"], row["site"]) == (3, 224, 4, 896, 0x1010)
    assert first.without_site == 3 and first.mpi_ticks[:3].tolist() == [500_000_000, 250_000_000, 0]
    assert second.slots["bin"].tolist() == [size_bin(4096)]
    assert table.peer_ranks.tolist() == [0, 2]
    assert table.peers.tolist() == [[5, 897, 0, 0], [0, 0, 2, 8192]]


def test_a_file_is_read_as_its_bytes_are(tmp_path) -> None:
    file = tmp_path / "node1-77.mpi"
    file.write_bytes(WHOLE.data())
    table, same = read_table(file, len(NAMES)), parse(WHOLE.data())
    assert table.peers.tolist() == same.peers.tolist() and table.modules == same.modules
    assert [np.array_equal(a.slots, b.slots) for a, b in zip(table.threads, same.threads, strict=True)] == [True, True]


def test_a_live_table_is_read_as_it_is() -> None:
    live = WHOLE.but(state=1, threads=(Thread(), *WHOLE.threads))
    table = parse(live.but(most_threads=3).data())
    assert table.state is ProcessState.INITIALIZED and len(table.threads) == 2 and table.wall_s == pytest.approx(10.0)
    before = parse(Table(rank=-1, size=0, state=0, threads=(), wall_s=0).data())
    assert before.rank is None and before.wall_s == 0 and before.threads == ()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "truncated in the header"),
        (b"{}" * 4000, "not a table"),
        (with_field("version", 1), "version 1"),
        (with_field("magic", 7), "not a table"),
        (with_field("state", 9), "state 9"),
        (with_field("family", 4), "family 4"),
        (with_field("rank", 3), "rank 3 of 3"),
        (with_field("size", 40_000), "are required"),
        (with_field("size", 1 << 30), "rank 1 of 1073741824"),
        (with_field("threads", 3), "3 threads"),
        (with_field("area", 100), "has 100 bytes"),
        # A row of peers is missing: of each of 3 ranks, and one.
        (with_field("area", SLOTS_AT + SLOT_B * SLOTS + PEER_B * 3), "are required"),
        (with_field("at", 4096), "inside the module map"),
        (WHOLE.data()[:-1], "truncated"),
        (WHOLE.data()[:5000], "truncated"),
        (with_field("rate", float("nan")), "ticks per second"),
        (WHOLE.but(own_ticks=-1.0).data(), "invalid overhead"),
        (WHOLE.but(reading_ticks=float("nan")).data(), "invalid cost of reading the clock"),
        (WHOLE.but(modules="nonsense\n").data(), "module map"),
        (WHOLE.but(modules="2000 1000 0 /x\n").data(), "module map"),
    ],
)
def test_what_is_damaged_is_refused(data, words) -> None:
    with pytest.raises(ParseError, match=re.escape(words)) as caught:
        parse(data)
    assert "node1-77.mpi" in str(caught.value) and caught.value.tool == "MPI profile"


def test_rows_that_cannot_be_are_refused() -> None:
    with pytest.raises(ParseError, match="has function 10 of 4"):
        parse_table(Table(threads=(Thread([Call("MPI_Irecv")]),)).data(), 4)
    with pytest.raises(ParseError, match="invalid kind of communicator"):
        parse(Table(threads=(Thread([Call("MPI_Send", comm=9)]),)).data())


def test_torn_files_never_give_anything_but_a_table_or_a_refusal() -> None:
    data, chance = WHOLE.data(), random.Random(3)
    for _ in range(300):
        torn = bytearray(data)
        at = chance.randrange(HEADER.size) if chance.random() < 0.5 else chance.randrange(len(data))
        torn[at : at + 8] = chance.randbytes(8)
        try:
            parse(bytes(torn[: len(data)]))
        except ParseError:
            continue


def test_every_size_falls_into_its_bin() -> None:
    for size in [*range(3000), 1 << 20, (1 << 20) + 5, (1 << 63) - 1]:
        assert bin_floor(size_bin(size)) <= size <= bin_ceiling(size_bin(size))


@pytest.mark.real
def test_the_form_is_that_of_the_header(tmp_path) -> None:
    compiler = shutil.which("cc") or pytest.skip("there is no C compiler")
    source = tmp_path / "form.c"
    source.write_text(
        f'#include "{FORMAT}"\n#include <stddef.h>\n#include <stdio.h>\n'
        "int main(void) {\n"
        '  printf("%zu %zu %zu %zu %zu ", sizeof(struct seatrial_header), sizeof(struct seatrial_slot),\n'
        "         sizeof(struct seatrial_peer), sizeof(struct seatrial_thread),\n"
        "         sizeof(struct seatrial_place));\n"
        '  printf("%zu %u\\n", offsetof(struct seatrial_header, host), (unsigned)SEATRIAL_VERSION);\n'
        "  for (unsigned long long n = 0; n < 70000; n = n < 2000 ? n + 1 : n + 997)\n"
        '    printf("%llu %u %llu\\n", n, seatrial_bin(n), (unsigned long long)seatrial_bin_floor(seatrial_bin(n)));\n'
        "}\n"
    )
    subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "form", source], check=True)
    first, *lines = subprocess.run([tmp_path / "form"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert first.split() == [str(n) for n in (HEADER.size, 64, 32, SLOTS_AT, PLACE.size, 128, VERSION)]
    for line in lines:
        size, number, floor = map(int, line.split())
        assert size_bin(size) == number and bin_floor(number) in (floor, floor + 1) and bin_floor(number) <= size
