"""NCCL's topology XML made at random: read back as it was made, and never as something else once damaged."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from seatrial.errors import UsageError
from seatrial.machine.readers.nccl_xml import read_nccl_xml
from seatrial.machine.survey import Survey, SurveyLinkRate
from seatrial.model.machine.machine import DeviceKind


@dataclass
class _Random:
    """A machine made at random, and its file."""

    seed: int
    kind: str = "nvlink"
    functions: dict[str, tuple[str | None, int, SurveyLinkRate | None]] = field(default_factory=dict)
    links: dict[frozenset[str], int] = field(default_factory=dict)
    adapters: dict[str, tuple[str, float | None]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.kind = rng.choice(["nvlink", "xgmi"])
        gpus = [f"00{rng.randrange(10):02x}:{bus:02x}:00.0" for bus in rng.sample(range(1, 200), rng.randint(1, 8))]
        for number, a in enumerate(gpus):
            for b in gpus[number + 1 :]:
                if rng.random() < 0.5:
                    self.links[frozenset((a, b))] = rng.randint(1, 6)
        self.lines.append(f'<system version="{1 if self.kind == "nvlink" else 2}">')
        for node in range(rng.randint(1, 3)):
            self.lines.append(f'  <cpu numaid="{node}" affinity="{1 << node:x}" arch="x86_64">')
            mine = gpus[node::3] if node < 2 else gpus[2::3]
            self._node(rng, node, mine)
            self.lines.append("  </cpu>")
        self.links = {ends: count for ends, count in self.links.items() if ends <= set(self.functions)}
        self.lines.append("</system>")
        text = "\n".join(line for line in self.lines if "target" not in line or self._is_inside(line))
        self.lines = text.split("\n")

    def _is_inside(self, line: str) -> bool:
        return line.split('"')[1] in self.functions

    def _node(self, rng: random.Random, node: int, gpus: list[str]) -> None:
        for number, gpu in enumerate(gpus):
            bridge = f"ffff:{node:02x}:{number:02x}.0" if rng.random() < 0.5 else None
            if bridge is not None:
                self._function(rng, bridge, "0x060400", None, node)
            self._function(rng, gpu, "0x030200", bridge, node)
            brand = f'gcn="90{number}"' if self.kind == "xgmi" else ""
            self.lines.append(f'      <gpu dev="{len(self.functions)}" sm="80" {brand} gdr="0">')
            for ends, count in self.links.items():
                if gpu in ends:
                    (other,) = ends - {gpu}
                    self.lines.append(f'        <{self.kind} target="{other}" count="{count}"/>')
            self.lines.append("      </gpu></pci>")
            if rng.random() < 0.5:
                name, speed = f"mlx5_{len(self.adapters)}", rng.choice([-1, 100000, 400000])
                self.adapters[name] = (f"aaaa:{node:02x}:{number:02x}.1", speed / 8 * 1e6 if speed > 0 else None)
                self._function(rng, self.adapters[name][0], "0x020700", bridge, node)
                self.lines.append(f'      <nic><net name="{name}" speed="{speed}" port="1"/></nic></pci>')
            if bridge is not None:
                self.lines.append("    </pci>")

    def _function(self, rng: random.Random, address: str, class_id: str, parent: str | None, node: int) -> None:
        speed, width = rng.choice([2.5, 5.0, 8.0, 16.0, 32.0, None]), rng.choice([1, 4, 8, 16])
        text = rng.choice([f"{speed:g} GT/s", f"{speed:.1f} GT/s PCIe"]) if speed is not None else ""
        self.functions[address] = (parent, node, SurveyLinkRate(speed, width) if speed is not None else None)
        self.lines.append(f'    <pci busid="{address}" class="{class_id}" link_speed="{text}" link_width="{width}">')

    def check(self, survey: Survey) -> None:
        parts = {part.address: (part.parent, part.numa, part.capable) for part in survey.pci_parts}
        assert parts == self.functions
        assert {frozenset((link.a, link.b)): link.count for link in survey.peer_links} == self.links
        nics = {p.name: (p.pci, p.facts.number("rate")) for p in survey.named_parts if p.kind is DeviceKind.NIC}
        assert nics == self.adapters
        assert {link.kind for link in survey.peer_links} <= {self.kind}


@pytest.mark.parametrize("seed", range(40))
def test_generated_files_are_read_back(seed: int) -> None:
    made = _Random(seed)
    made.check(read_nccl_xml("\n".join(made.lines).encode()))
    prefixed = "prose\n```\n" + "\n".join("# " + line for line in made.lines) + "\n```\n"
    made.check(read_nccl_xml(prefixed.encode()))


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_never_gives_other_links_or_functions(seed: int) -> None:
    made = _Random(seed)
    rng = random.Random(seed)
    for _ in range(30):
        lines = list(made.lines)
        position = rng.randrange(len(lines))
        action = rng.choice(["drop", "twice", "cut", "count", "swap", "glue"])
        text = "\n".join(lines)
        if action == "drop" and "target" in lines[position]:
            text = "\n".join(lines[:position] + lines[position + 1 :])
        elif action == "twice" and ("target" in lines[position] or "<nic>" in lines[position]):
            text = "\n".join([*lines[:position], lines[position], *lines[position:]])
        elif action == "cut":
            text = text[: rng.randrange(len(text))]
        elif action == "count" and "target" in lines[position]:
            lines[position] = lines[position].replace('count="', 'count="1')
            text = "\n".join(lines)
        elif action == "swap" and "target" in lines[position]:
            own = rng.choice(list(made.functions))
            lines[position] = lines[position].replace(lines[position].split('"')[1], own)
            text = "\n".join(lines)
        elif action == "glue":
            text = text[: rng.randrange(len(text))] + text
        try:
            survey = read_nccl_xml(text.encode())
        except UsageError:
            continue
        made.check(survey)
