"""The reader of the collector's samples; its format agrees with the C header."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from profiler.made_up_samples import Samples, Series, counters

import seatrial
from seatrial.environments.compiler import first_compiler
from seatrial.environments.loader import c_compiler
from seatrial.errors import ParseError
from seatrial.profiler.tables.io_samples import (
    COUNTERS,
    FILE,
    MAGIC,
    MOST_RANKS,
    NODE,
    NODE_COUNTERS,
    RANK_B,
    SAMPLES,
    VERSION,
    parse_io_samples,
    read_io_samples,
)

NATIVE = Path(seatrial.__file__).parent / "profiler" / "native"


def test_what_is_written_is_read(tmp_path: Path) -> None:
    series = Series(5, 3, {0: counters(10, 20), 2: counters(30, 40)})
    made = Samples([0.0, 0.2, 0.4], [(512, 1024, 0, 0)] * 2, [series, Series(6, -1, error=13)])
    path = tmp_path / "node1.io"
    path.write_bytes(made.data())
    read = read_io_samples(path)
    assert (read.host, read.period_s, read.left_out) == ("node1", 0.2, 0)
    assert read.at_s.tolist() == pytest.approx([1.7e9, 1.7e9 + 0.2, 1.7e9 + 0.4], abs=1e-6)
    assert read.node[:2].tolist() == [[512, 1024, 0, 0]] * 2 and np.isnan(read.node[2]).all()
    first, second = read.ranks
    assert (first.pid, first.rank, second.rank, second.error) == (5, 3, None, 13)
    assert first.counters[0].tolist() == list(counters(10, 20)) and np.isnan(first.counters[1]).all()
    assert first.loaded_at_s == pytest.approx(1.7e9, abs=1e-6)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: data[:100], "the file is truncated"),
        (lambda data: data[:-1], "the file is truncated"),
        (lambda data: b"x" + data[1:], "not a file of I/O samples"),
        (lambda data: data[:8] + b"\x09" + data[9:], "version 9"),
        (lambda data: data[:12] + b"\xff\xff" + data[14:], "65535 samples"),
        (lambda data: data[:24] + bytes(8) + data[32:], "interval: 0 s"),
    ],
)
def test_a_damaged_file_is_reported(damage, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        parse_io_samples(damage(Samples([0.0], [], [Series()]).data()), "node1.io")


LAYOUT = """
#include "io_file.h"
#include <stdio.h>
int main(void) {
  printf("%zu %zu %zu %d %d %d %d %d %d\\n", sizeof(struct seatrial_io_file), sizeof(struct seatrial_io_node),
         sizeof(struct seatrial_io_rank), SEATRIAL_IO_SAMPLES, SEATRIAL_IO_MOST_RANKS, SEATRIAL_IO_COUNTERS,
         SEATRIAL_IO_NODE_COUNTERS, SEATRIAL_IO_VERSION, SEATRIAL_IO_MAGIC == MAGIC);
}
"""


@pytest.mark.real
def test_the_form_is_that_of_the_header(tmp_path: Path) -> None:
    source, program = tmp_path / "layout.c", tmp_path / "layout"
    source.write_text(LAYOUT)
    command = [*c_compiler(first_compiler()), f"-DMAGIC={MAGIC:#x}ull", f"-I{NATIVE}", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    expected = (FILE.size, NODE.size, RANK_B, SAMPLES, MOST_RANKS, COUNTERS, NODE_COUNTERS, VERSION, 1)
    assert said.split() == [str(n) for n in expected]


COUNT = """
#include "node_counters.h"
#include <inttypes.h>
#include <stdio.h>
int main(int argc, char** argv) {
  uint64_t in, out;
  (argc > 2 ? seatrial_read_nfs : seatrial_read_disks)(argv[1], &in, &out);
  printf("%" PRId64 " %" PRId64 "\\n", (int64_t)in, (int64_t)out);
}
"""
DISKSTATS = """\
   7       0 loop0 9 9 9999 9 9 9 9999 9 0 9 9
   1       0 ram0 9 9 9999 9 9 9 9999 9 0 9 9
 259       0 nvme0n1 10 0 100 5 20 0 200 5 0 5 10 0 0 0 0
 259       1 nvme0n1p1 10 0 90 5 20 0 190 5 0 5 10 0 0 0 0
 259       2 nvme1n1 1 0 7 5 2 0 8 5 0 5 10
   8       0 sda 1 0 1000 5 2 0 2000 5 0 5 10
   8       1 sda1 1 0 1000 5 2 0 2000 5 0 5 10
   8      16 sdb 1 0 10000 5 2 0 20000 5 0 5 10
 253       0 dm-0 1 0 1000 5 2 0 2000 5 0 5 10
   9       0 md127 1 0 1000 5 2 0 2000 5 0 5 10
 252       0 zram0 1 0 1000 5 2 0 2000 5 0 5 10
  11       0 sr0 1 0 1000 5 2 0 2000 5 0 5 10
"""
MOUNTSTATS = """\
device proc mounted on /proc with fstype proc
device server:/home mounted on /home with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2
\tage:\t600
\tbytes:\t1 2 3 4 1000 2000 7 8
\tevents:\t1 2 3
device server:/home mounted on /srv/home with fstype nfs4 statvers=1.1
\tbytes:\t1 2 3 4 1000 2000 7 8
device other:/data mounted on /data with fstype nfs statvers=1.1
\tbytes:\t1 2 3 4 10 20 7 8
"""


@pytest.mark.real
def test_disks_count_once_and_so_do_mounts(tmp_path: Path) -> None:
    source, program = tmp_path / "count.c", tmp_path / "count"
    source.write_text(COUNT)
    counting = NATIVE / "collector" / "node_counters.c"
    folders = (f"-I{NATIVE}", f"-I{counting.parent}")
    command = [*c_compiler(first_compiler()), "-D_GNU_SOURCE", *folders, str(source), str(counting)]
    subprocess.run([*command, "-o", str(program)], check=True)
    disks, mounts = tmp_path / "diskstats", tmp_path / "mountstats"
    disks.write_text(DISKSTATS)
    mounts.write_text(MOUNTSTATS)

    def said(*arguments: object) -> str:
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=True).stdout

    assert said(disks).split() == [str(512 * 11107), str(512 * 22208)]
    assert said(mounts, "nfs").split() == ["1010", "2020"]
    assert said(disks, "nfs").split() == said(tmp_path / "none").split() == ["-1", "-1"]
