"""Classes of paths between GPUs and adapters, as in the legend of `nvidia-smi topo -m`; XGMI is AMD's."""

from __future__ import annotations

UNKNOWN = "?"
"""For a path whose class is unknown."""

MEANINGS = {
    "X": "itself",
    "NV": "number of NVLinks",
    "C2C": "NVLink chip-to-chip",
    "XGMI": "number of XGMI links (Infinity Fabric)",
    "PIX": "at most one PCIe switch",
    "PXB": "several PCIe switches, no host bridge",
    "PHB": "through a PCIe host bridge",
    "NODE": "through host bridges of one NUMA node",
    "SYS": "across NUMA nodes",
    "PCI": "over PCIe",
    UNKNOWN: "unknown",
}
"""Class -> meaning, from near to far."""

COUNTED = frozenset({"NV", "XGMI"})
"""Classes printed with the number of links."""
DIRECT = frozenset({"NV", "C2C", "XGMI"})
NEAR = frozenset({"PIX", "PXB"})
FAR = frozenset({"SYS"})
