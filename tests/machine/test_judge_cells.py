"""Cells that real drivers print and real pastes lose: what is beyond doubt is read, the rest is unknown or refused."""

from __future__ import annotations

import pytest

from seatrial.errors import ParseError
from seatrial.machine.readers.lspci_vv import read_lspci_vv
from seatrial.machine.readers.nccl_xml import read_nccl_xml
from seatrial.machine.readers.nvidia_smi import read_nvidia_smi_topo
from seatrial.model.machine.machine import DeviceKind

TWO = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
THREE = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"


@pytest.mark.parametrize(
    ("head", "tails"),
    [
        (TWO, ("0-15\t\tN/A", "0-15\t\tN/A")),
        (THREE, ("0-15\t\tN/A\t\tN/A", "0-15\t\tN/A\t\tN/A")),
        (THREE, ("0-15\t0\t\tN/A", "0-15\t\tN/A\t\tN/A")),
    ],
)
def test_a_numa_affinity_that_is_not_available_has_a_tab_more(head: str, tails: tuple[str, str]) -> None:
    text = f"{head}GPU0\t X \tPHB\t{tails[0]}\nGPU1\tPHB\t X \t{tails[1]}\n"
    parts = read_nvidia_smi_topo(text.encode()).named_parts
    assert [part.cpus for part in parts] == [frozenset(range(16))] * 2
    assert [part.numa for part in parts] == [0 if "\t0\t" in tail else None for tail in tails]


@pytest.mark.parametrize("tail", ["0-15\t\t0", "0-15\t\tN/A\tN/A", "0-15\t\t\t\tN/A\t\tN/A"])
def test_other_tabs_too_many_are_refused(tail: str) -> None:
    with pytest.raises(ParseError):
        read_nvidia_smi_topo(f"{TWO}GPU0\t X \tPHB\t{tail}\nGPU1\tPHB\t X \t{tail}\n".encode())


def test_a_list_joined_to_its_node_is_not_a_list() -> None:
    # "0-47,96-143" and "0" in one: what follows has moved by a tab, under another column's name.
    text = (
        "        GPU0    GPU1    CPU Affinity       NUMA Affinity   GPU NUMA ID\n"
        "GPU0     X      NV18    0-47,96-1430               N/A\n"
        "GPU1    NV18     X      48-95,144-191      1               N/A\n"
    )
    survey = read_nvidia_smi_topo(text.encode())
    assert [(part.cpus is None, part.numa) for part in survey.named_parts] == [(True, None), (False, 1)]
    assert any("GPU0" in sentence for sentence in survey.unread)


def _with_legend(legend: str) -> bytes:
    return (
        "\tGPU0\tNIC0\tNIC1\tCPU Affinity\nGPU0\t X \tPIX\tSYS\t0-7\nNIC0\tPIX\t X \tSYS\t\nNIC1\tSYS\tSYS\t X \t\n"
        f"\nNIC Legend:\n\n{legend}\n"
    ).encode()


@pytest.mark.parametrize(
    "legend",
    [
        "  NIC0: A\n  NIC1: DE                              N/A",
        "  NIC0: mlx5_0\n  NIC1: IC5    NIC6   CPU Affinity",
        "  NIC0: mlx5_0\n  NIC1: ",
        "  NIC0: mlx5_0\n  NIC1: a/b",
    ],
)
def test_a_legend_mixed_with_matrix_rows_names_no_device(legend: str) -> None:
    survey = read_nvidia_smi_topo(_with_legend(legend))
    assert all(part.aliases == () for part in survey.named_parts)
    assert any("legend was ignored" in sentence for sentence in survey.unread)


def test_a_legend_that_runs_into_the_end_of_its_code_block() -> None:
    survey = read_nvidia_smi_topo(_with_legend("  NIC0: mlx5_0\n  NIC1: mlx5_bond_1```\n"))
    assert [part.aliases for part in survey.named_parts] == [(), ("mlx5_0",), ("mlx5_bond_1",)]


def _two_processes(second: str) -> bytes:
    return (
        '<system version="1">\n<cpu numaid="0" affinity="000000ff" arch="x86_64">\n'
        '<nic>\n<net name="tunl0" dev="1" speed="10000" port="0" guid="0x1"/>\n</nic>\n</cpu>\n'
        f'<cpu numaid="1" affinity="0000ff00" arch="x86_64">\n{second}\n</cpu>\n</system>\n'
    ).encode()


def test_an_adapter_without_a_function_below_two_cpus_is_one_next_to_none() -> None:
    survey = read_nccl_xml(
        _two_processes('<nic>\n<net name="tunl0" dev="1" speed="10000" port="0" guid="0x1"/>\n</nic>')
    )
    nics = [part for part in survey.named_parts if part.kind is DeviceKind.NIC]
    assert [(part.name, part.numa) for part in nics] == [("tunl0", None)]


@pytest.mark.parametrize(
    "second",
    [
        '<nic>\n<net name="tunl0" dev="1" speed="25000" port="0" guid="0x1"/>\n</nic>',
        '<pci busid="0000:22:00.0" class="0x020000">\n<nic>\n'
        '<net name="tunl0" dev="1" speed="10000" port="0" guid="0x1"/>\n</nic>\n</pci>',
    ],
)
def test_two_adapters_of_one_name_are_refused(second: str) -> None:
    with pytest.raises(ParseError, match="tunl0 is on line 4 already"):
        read_nccl_xml(_two_processes(second))


def test_functions_with_the_path_to_them() -> None:
    text = (
        "00:01.0 PCI bridge: Made Up Root Port (rev 01) (prog-if 00 [Normal decode])\n"
        "\tControl: I/O- Mem+ BusMaster+\n\tBus: primary=00, secondary=41, subordinate=41, sec-latency=0\n\n"
        "00:01.0/41:00.0 3D controller: NVIDIA Corporation Made Up (rev a1)\n"
        "\tControl: I/O- Mem+ BusMaster+\n\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n"
        "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1\n"
        "\t\tLnkSta:\tSpeed 16GT/s, Width x16, TrErr- Train- SlotClk+\n"
    )
    addresses = [part.address for part in read_lspci_vv(text.encode()).pci_parts]
    assert addresses[-2:] == ["0000:00:01.0", "0000:41:00.0"]
