"""Results folders whose repeats are made up: what comparisons read, without measuring anything."""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from made_up import facts, made_up_machine

from seatrial.model.benchmark.power import power_sample
from seatrial.model.machine.document import machine_document
from seatrial.model.machine.power import Scope
from seatrial.model.results.record import Experiment, RepeatRecord, content_key
from seatrial.model.results.sample import Outcome, Sample
from seatrial.model.study.study import KeptStudy, Study, StudyPoint, study_document
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import RecordWriter

PARAMETERS = {"precision": "fp64", "cores": "one"}
CHAINS = {"chain_fmas": 1000, "chain_s": [[1e-9, 1e-9]], "add_ops": 1000, "add_s": [2.5e-10], "vector_bits": 512}
"""Chains so fast that no rate here is beyond what they allow."""


class MadeUpFolder:
    """A folder that grows: each `add` is one experiment of `cpu.peak` with the rates of its repeats, in flop/s."""

    def __init__(self, path: Path) -> None:
        self.folder = ResultsFolder.create(path)
        self.folder.put("environments", "env", {"name": "gcc 12 -O3", "flags": ["-O3"]})
        self._t0 = 1.7e9 + zlib.crc32(str(path).encode()) % 10**6  # no two folders are measured at one time

    def add(
        self,
        rates: Sequence[float],
        *,
        host: str = "n1",
        blocks: Sequence[str] | None = None,
        seen: Mapping[str, object] | None = None,
        outcome: Outcome | None = None,
        environment: str = "env",
        starts: Sequence[float] | None = None,
        orders: Sequence[int] | None = None,
        each: Sequence[Mapping[str, object]] | None = None,
        emulated: bool = False,
        power: tuple[float, float] | None = None,
        **parameters: object,
    ) -> str:
        """The id of the experiment. `power` is that of the node in W, and its error as a share."""
        machine = f"machine-{host}"
        described = made_up_machine()
        if emulated:
            described = replace(described, facts=facts(hypervisor="qemu (tcg)"))
        self.folder.put("machines", content_key({"host": host}), {"identity": machine, **machine_document(described)})
        given = {**PARAMETERS, **parameters}
        experiment = Experiment("cpu.peak", given, environment, "program", machine)
        self.folder.put("experiments", experiment.id, experiment.document())
        writer = RecordWriter(self.folder, host)
        for n, rate in enumerate(rates):
            sample = Sample("fma", 0, 1.0, {"flops": rate}, extra=CHAINS)
            samples = [sample]
            if power is not None:
                watts, share = power
                per_watt = rate / watts
                samples.append(power_sample("mean_power", Scope.NODE, watts, share * watts))
                samples.append(power_sample("fma_per_watt", Scope.NODE, per_watt, share * per_watt))
            told = {"host": host, "affinity": [[0]], "budget_s": 60.0, **(seen or {})}
            told |= each[n] if each is not None else {}
            if blocks is not None:
                told["block"] = blocks[n]
            t0 = self._t0 + n if starts is None else 1.7e9 + starts[n]
            order = n if orders is None else orders[n]
            record = RepeatRecord(experiment.id, n, order, t0, 0.3, outcome or Outcome.ok(), tuple(samples), {}, told)
            writer.append(record)
        writer.close()
        return experiment.id

    def keep(self, study: Study, points: Sequence[tuple[str, Mapping[str, object]]], host: str = "n1") -> None:
        """Keep a study with (experiment, given) points."""
        kept = KeptStudy(study, f"machine-{host}", tuple(StudyPoint(key, "cpu.peak", given) for key, given in points))
        document = study_document(kept)
        self.folder.put("studies", content_key(document), document)

    @property
    def contents(self) -> Contents:
        """All of it, as read back."""
        contents = read_contents(self.folder)
        assert not contents.damaged
        return contents


def noisy(level: float, n: int, noise: float = 0.003, seed: int = 1) -> list[float]:
    """Rates with normal noise, the same each time."""
    source = random.Random(f"{seed}")
    return [level * source.gauss(1.0, noise) for _ in range(n)]


def side_by_side(n: int) -> list[str]:
    """The names of n blocks."""
    return [f"block:{k}" for k in range(n)]
