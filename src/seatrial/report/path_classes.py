"""Classes of paths between GPUs and adapters, as the legend of `nvidia-smi topo -m` has them; XGMI is AMD's."""

from __future__ import annotations

UNKNOWN = "?"
"""Stands where no source tells a class."""

MEANINGS = {
    "X": "itself",
    "NV": "that many NVLinks",
    "C2C": "NVLink chip-to-chip",
    "XGMI": "that many XGMI links (Infinity Fabric)",
    "PIX": "one PCIe switch at most between them",
    "PXB": "several PCIe switches, no host bridge",
    "PHB": "over a PCIe host bridge",
    "NODE": "over host bridges of one NUMA node",
    "SYS": "over the link between NUMA nodes",
    "PCI": "over PCIe",
    UNKNOWN: "no source tells",
}
"""Class -> what it means, from near to far."""

COUNTED = frozenset({"NV", "XGMI"})
"""Classes that stand with the number of links."""
DIRECT = frozenset({"NV", "C2C", "XGMI"})
NEAR = frozenset({"PIX", "PXB"})
FAR = frozenset({"SYS"})
