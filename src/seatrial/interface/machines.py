"""Select a machine: this one, one described by outputs of other tools, or that of a results folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from seatrial.analysis.device_copies import PeerRates, peer_rates, with_measured
from seatrial.analysis.folder import machine_in, trial_of
from seatrial.errors import UsageError
from seatrial.fabric.dumps import FABRIC_READERS, read_fabric
from seatrial.fabric.parts import FabricText
from seatrial.machine.assemble import assemble
from seatrial.machine.dumps import Dump, check_kind, survey_dumps
from seatrial.machine.live import survey_live, survey_nvidia
from seatrial.machine.pci_names import with_pci_names
from seatrial.machine.readers.dump import MAX_BYTES
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fabric import Fabric
from seatrial.model.machine.machine import Machine
from seatrial.model.study.result import Trial
from seatrial.plan.files import read_output

Dumps = Mapping[str, str | Path] | Iterable[tuple[str, str | Path]]
"""Outputs of other tools: kind -> file, or (kind, file) pairs. `file#2` is the second dump in a file, "-" is standard
input."""

_PICK = re.compile(r"(?P<file>.*)#(?P<pick>[0-9]{1,6})\Z", re.DOTALL)


class Discovered(Frozen, dict=True):
    """A machine, with its results if a folder was named."""

    machine: Machine
    trial: Trial | None = None

    @cached_property
    def measured(self) -> Machine:
        """The machine, with the measured rates of its links and limits."""
        return self.machine if self.trial is None else with_measured(self.machine, self.trial.results, self.trial.seen)

    @cached_property
    def copies(self) -> tuple[PeerRates, ...]:
        """The measured rates of copies between its GPUs."""
        return () if self.trial is None else peer_rates(self.machine, self.trial.results, self.trial.seen)


def discover(dumps: Dumps = (), *, live: bool = False, results: str | Path | None = None) -> Machine:
    """Describe a machine: its devices, links, memory and limits.

    Without `dumps` this is the local machine. `dumps` maps a kind (hwloc-xml, lspci-vv, lspci-tree, dmidecode,
    nvidia-smi-topo, nvidia-smi-p2p, amd-smi, rocm-smi-topo, nccl-xml, ibstat, opainfo, cxi-stat, ethtool) to a file
    with that tool's output; local facts are then read only if `live` is set. With `results` the machine has the rates
    measured in that folder; without dumps and `live` it is the machine of the folder, if the folder has results of one
    machine only.

    Raises UsageError for a file that is missing or damaged, and for a folder without results of this machine.
    """
    return discovered(dumps, live=live, results=None if results is None else Path(results)).measured


def discovered(dumps: Dumps, *, live: bool, results: Path | None) -> Discovered:
    """The same, with the results in the folder."""
    machine = machine_of(dumps, live=live, results=results)
    return Discovered(machine, None if results is None else trial_of(machine, results))


def machine_of(dumps: Dumps = (), *, live: bool = False, results: Path | None = None) -> Machine:
    """The same, without measured rates."""
    sources = tuple(dumps.items() if isinstance(dumps, Mapping) else dumps)
    if results is not None and not sources and not live and (machine := machine_in(results)) is not None:
        return machine
    read = [read_dump(check_kind(kind), str(file)) for kind, file in sources]
    surveys = survey_dumps(read)
    if live or not read:
        surveys = [*survey_live(), *survey_nvidia(), *surveys]
    return with_pci_names(assemble(surveys))


def read_dump(kind: str, name: str) -> Dump:
    """The file of a `KIND=FILE[#n]`. Raises UsageError if it cannot be read."""
    match = _PICK.match(name)
    if match is None or Path(name).exists():
        return Dump(kind, name, read_output(name, MAX_BYTES))
    return Dump(kind, match["file"], read_output(match["file"], MAX_BYTES), int(match["pick"]))


def is_fabric(sources: Iterable[tuple[str, str | Path]]) -> bool:
    """Whether any of these (kind, file) describes a fabric."""
    return any(kind in FABRIC_READERS for kind, _ in sources)


def discover_fabric(dumps: Dumps) -> Fabric:
    """Describe a fabric: its switches, nodes, links, levels and what is wrong with it.

    `dumps` maps a kind (ibnetdiscover, iblinkinfo, slurm-topology) to a file with that tool's output, or is a sequence
    of (kind, file): several files of one kind are the parts of one dump, in their order.

    Raises UsageError for a file that is missing or damaged, and for files of several kinds.
    """
    sources = tuple(dumps.items() if isinstance(dumps, Mapping) else dumps)
    kinds = dict.fromkeys(kind for kind, _ in sources)
    if len(kinds) != 1 or not is_fabric(sources):
        raise UsageError(
            f"one fabric from {', '.join(kinds) or 'nothing'}: these do not describe one and the same",
            f"give the files of one kind ({', '.join(sorted(FABRIC_READERS))}), and other kinds in a second command",
        )
    read = [read_dump(kind, str(file)) for kind, file in sources]
    return read_fabric(next(iter(kinds)), [FabricText(dump.name, dump.data, dump.pick) for dump in read])
