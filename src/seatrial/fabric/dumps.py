"""Output of other tools as sources of a fabric: `--from KIND=FILE`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seatrial.fabric.assemble import assemble_fabric
from seatrial.fabric.parts import FabricDump, Text
from seatrial.fabric.readers.iblinkinfo import read_iblinkinfo
from seatrial.fabric.readers.ibnetdiscover import read_ibnetdiscover
from seatrial.fabric.readers.slurm_topology import read_slurm_topology
from seatrial.model.machine.fabric import Fabric

FABRIC_READERS: Mapping[str, Callable[[Sequence[Text]], FabricDump]] = {
    "ibnetdiscover": read_ibnetdiscover,
    "iblinkinfo": read_iblinkinfo,
    "slurm-topology": read_slurm_topology,
}
"""Kind -> its reader, which takes the files that a dump was saved in, in their order."""


def read_fabric(kind: str, texts: Sequence[Text]) -> Fabric:
    """The fabric in one dump. Raises ParseError if it is damaged or incomplete, UsageError if there are several."""
    return assemble_fabric(FABRIC_READERS[kind](texts))
