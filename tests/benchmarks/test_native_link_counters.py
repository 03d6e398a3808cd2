"""Counters of links that a program with ranks reads on each of its nodes, from copies of sysfs before and after."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from benchmarks.test_clock_step import compiled

from seatrial.model.machine.links import LATE_BURSTS, LINK_COUNTERS
from seatrial.probes.around import links_of_nodes

pytestmark = pytest.mark.real

SOURCE = r"""
#include <iostream>
#include "mpi/link_counters.hpp"
using namespace seatrial::mpi;
int main(int, char** argv) {
  const auto text = lines(grown(link_counters(argv[1]), link_counters(argv[2])));
  for (const auto& [port, counter, grew_by] : growths(text))
    std::cout << port << '|' << counter << '|' << grew_by << '\n';
}
"""
PORT = "sys/class/infiniband/mlx5_0/ports/1"
OF_TCP = [name for name in LINK_COUNTERS if name.startswith("Tcp")]
OF_PORTS = [name for name in LINK_COUNTERS if name not in (*OF_TCP, LATE_BURSTS)]


def state(root: Path, add: int) -> Path:
    """A machine whose counters are all 10 and this much more; one was reset, one says that it has no value."""
    values = {f"{PORT}/counters/{name}": f"{10 + add}" for name in OF_PORTS}
    values |= {
        f"{PORT}/counters/port_xmit_data": f"{10 + add}",
        f"{PORT}/hw_counters/np_cnp_sent": f"{10 - add}",
        f"{PORT}/hw_counters/packet_seq_err": "N/A (no PMA)",
        "sys/class/net/eth0/statistics/rx_crc_errors": f"{10 + 2 * add}",
        "sys/class/net/eth0/device/vendor": "0x15b3",
        "sys/class/net/veth1/statistics/rx_crc_errors": f"{10 + add}",
        "proc/self/net/snmp": protocols(("Udp", ["RetransSegs"]), ("Tcp", names_of_tcp("Tcp")), value=10 + 3 * add),
        "proc/self/net/netstat": protocols(("TcpExt", names_of_tcp("TcpExt")), value=10 + 5 * add),
    }
    for path, text in values.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{text}\n")
    return root


def names_of_tcp(protocol: str) -> list[str]:
    """Its counters, with one of traffic before them."""
    is_extended = protocol == "TcpExt"
    of_protocol = [name for name in OF_TCP if name.startswith("TcpExt") == is_extended]
    return ["InSegs", *(name.removeprefix(protocol) for name in of_protocol)]


def protocols(*each: tuple[str, list[str]], value: int) -> str:
    """As the kernel prints them: the names, then the values."""
    lines = (f"{name}: {' '.join(names)}\n{name}: {' '.join([str(value)] * len(names))}" for name, names in each)
    return "\n".join(lines)


def test_counters_that_grew_on_a_node(tmp_path: Path) -> None:
    program = compiled(tmp_path / "counters.cpp", SOURCE)
    before, after = state(tmp_path / "before", 0), state(tmp_path / "after", 4)
    shown = subprocess.run([str(program), str(before), str(after)], capture_output=True, check=True, text=True).stdout
    found = {(port, counter): int(by) for port, counter, by in (line.split("|") for line in shown.splitlines())}
    of_port = {counter: by for (port, counter), by in found.items() if port == "mlx5_0 port 1"}
    assert of_port == {**dict.fromkeys(OF_PORTS, 4), "np_cnp_sent": -1}, "of traffic none, of all others each"
    of_tcp = {("TCP", name): 20 if name.startswith("TcpExt") else 12 for name in OF_TCP}
    others = {key: by for key, by in found.items() if key[0] != "mlx5_0 port 1"}
    assert others == {("eth0", "rx_crc_errors"): 8, **of_tcp}, "of traffic, and of other protocols, none"
    assert not subprocess.run([str(program), str(before), str(before)], capture_output=True, check=True).stdout
    assert not subprocess.run([str(program), "/nowhere", str(after)], capture_output=True, check=True).stdout


def test_what_a_program_notes_becomes_the_links_of_its_record() -> None:
    noted = json.loads(
        '[{"host": "n2", "port": "mlx5_0 port 1", "counter": "port_xmit_wait", "grew_by": 9},'
        ' {"host": "n3", "port": "mlx5_0 port 1", "counter": "symbol_error"},'
        ' {"host": "n3", "port": "eth0", "counter": "rx_no_such_err", "grew_by": 1}, 7]'
    )
    errors, waits = links_of_nodes(noted) or []
    assert (errors["host"], errors["kind"], errors["grew_by"]) == ("n3", "error", None)
    assert (waits["host"], waits["kind"], waits["grew_by"]) == ("n2", "congestion", 9)
    assert links_of_nodes(None) is None and links_of_nodes([]) == []
