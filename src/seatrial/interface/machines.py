"""Select a machine: this one, one described by outputs of other tools, or that of a results folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from seatrial.analysis.device_copies import PeerRates, peer_rates, with_measured
from seatrial.analysis.folder import machine_in, trial_of
from seatrial.errors import ParseError, UsageError
from seatrial.fabric.dumps import FABRIC_READERS, TOPOLOGIES, read_fabric, read_fabrics
from seatrial.fabric.parts import FabricText
from seatrial.machine.assemble import assemble
from seatrial.machine.dumps import READERS, Dump, check_kind, survey_dumps
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

    Without `dumps` this is the local machine. `dumps` maps a kind (hwloc-xml, lspci-vv, lspci-tree, dmidecode, lscpu,
    likwid-topology, nvidia-smi-topo, nvidia-smi-p2p, nvidia-smi-q, amd-smi, rocm-smi-topo, nccl-xml, ibstat, opainfo,
    cxi-stat, ethtool, ethtool-s) to a file with that tool's output; local facts are then read only if `live` is set.
    With `results` the machine has the rates measured in that folder; without dumps and `live` it is the machine of the
    folder, if the folder has results of one machine only.

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
    try:
        surveys = survey_dumps(read)
    except ParseError as error:
        raise _of_another_kind(error, read) from None
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
    of (kind, file): several files of one kind are the parts of one dump, in their order. Other kinds (perfquery,
    ibqueryerrors, ibswinfo, opafabricinfo) add the state of its ports and switches, or stand alone.

    Raises UsageError for a file that is missing or damaged, and for files of two topologies.
    """
    sources = tuple(dumps.items() if isinstance(dumps, Mapping) else dumps)
    kinds = dict.fromkeys(kind for kind, _ in sources)
    wrong = [kind for kind in kinds if kind not in FABRIC_READERS]
    if not kinds or wrong or sum(kind in TOPOLOGIES for kind in kinds) > 1:
        raise UsageError(
            f"one fabric from {', '.join(kinds) or 'nothing'}: these do not describe one and the same",
            f"give the files of one of {', '.join(TOPOLOGIES)}, with any of "
            f"{', '.join(kind for kind in FABRIC_READERS if kind not in TOPOLOGIES)}; other kinds in a second command",
        )
    read = [read_dump(kind, str(file)) for kind, file in sources]
    try:
        return read_fabrics({kind: [_text(dump) for dump in read if dump.kind == kind] for kind in kinds})
    except ParseError as error:
        raise _of_another_kind(error, read) from None


def _text(dump: Dump) -> FabricText:
    return FabricText(dump.name, dump.data, dump.pick)


_LARGEST_TRIED_B = 1 << 20
"""Larger texts are not tried as other kinds."""


def _of_another_kind(error: ParseError, read: Sequence[Dump]) -> ParseError:
    """The error, with the kinds that a refused text can be read as, if there are any."""
    dump = next((dump for dump in read if dump.name == error.file), read[0] if len(read) == 1 else None)
    if dump is None or len(dump.data) > _LARGEST_TRIED_B:
        return error
    kinds = [kind for kind in (*READERS, *FABRIC_READERS) if kind != dump.kind and _can_read(kind, dump)]
    if not kinds:
        return error
    why = f"{error.why or 'not understood'}; the text can be read as {' or '.join(kinds)}: --from {kinds[0]}=FILE"
    return ParseError(error.tool, error.line, error.text, why, error.file)


def _can_read(kind: str, dump: Dump) -> bool:
    try:
        if kind in READERS:
            READERS[kind](dump.data, dump.pick)
        else:
            read_fabric(kind, [_text(dump)])
    except UsageError:
        return False
    return True
