"""Output of other tools as sources of a machine: `--from KIND=FILE`.

The kinds are listed in order of trust: what a kernel or driver reports precedes what a file merely asserts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seatrial.errors import ParseError, UnknownNameError
from seatrial.machine.readers.adapters import read_cxi_stat, read_ethtool, read_ibstat, read_opainfo
from seatrial.machine.readers.amd_smi import read_amd_smi
from seatrial.machine.readers.dmidecode import read_dmidecode
from seatrial.machine.readers.hwloc_xml import read_hwloc_xml
from seatrial.machine.readers.likwid_topology import read_likwid_topology
from seatrial.machine.readers.link_counters import read_ethtool_s
from seatrial.machine.readers.lscpu import read_lscpu
from seatrial.machine.readers.lspci_tree import read_lspci_tree
from seatrial.machine.readers.lspci_vv import read_lspci_vv
from seatrial.machine.readers.nccl_xml import read_nccl_xml
from seatrial.machine.readers.nvidia_smi import read_nvidia_smi_p2p, read_nvidia_smi_topo
from seatrial.machine.readers.nvidia_smi_q import read_nvidia_smi_q
from seatrial.machine.readers.rocm_smi_topo import read_rocm_smi_topo
from seatrial.machine.survey import Survey
from seatrial.model.frozen import Frozen

Reader = Callable[[bytes, int | None], Survey]

READERS: Mapping[str, Reader] = {
    "hwloc-xml": read_hwloc_xml,
    "likwid-topology": read_likwid_topology,
    "lscpu": read_lscpu,
    "lspci-vv": read_lspci_vv,
    "lspci-tree": read_lspci_tree,
    "dmidecode": read_dmidecode,
    "nvidia-smi-topo": read_nvidia_smi_topo,
    "nvidia-smi-p2p": read_nvidia_smi_p2p,
    "nvidia-smi-q": read_nvidia_smi_q,
    "amd-smi": read_amd_smi,
    "rocm-smi-topo": read_rocm_smi_topo,
    "ibstat": read_ibstat,
    "opainfo": read_opainfo,
    "cxi-stat": read_cxi_stat,
    "ethtool": read_ethtool,
    "ethtool-s": read_ethtool_s,
    "nccl-xml": read_nccl_xml,
}
"""Kind -> its reader, which takes the file and the number of the dump in it (from 1; None: the only one)."""

FROM_DOCUMENTATION = frozenset({"amd-smi", "nvidia-smi-q"})
"""Kinds of which no test reads a real dump; lists label them so."""


class Dump(Frozen):
    """A file and its kind; `name` is the name shown in messages."""

    kind: str
    name: str
    data: bytes
    pick: int | None = None


def check_kind(kind: str) -> str:
    """The kind itself. Raises UnknownNameError, which suggests the nearest one."""
    if kind not in READERS:
        raise UnknownNameError("kind of dump", kind, READERS)
    return kind


def survey_dumps(dumps: Sequence[Dump]) -> list[Survey]:
    """The survey of each dump, the most trusted first. Raises ParseError or UsageError for the first damaged one."""
    surveys = []
    for dump in sorted(dumps, key=lambda one: list(READERS).index(check_kind(one.kind))):
        try:
            surveys.append(READERS[dump.kind](dump.data, dump.pick))
        except ParseError as error:
            raise error.in_file(dump.name) from None
    return surveys
