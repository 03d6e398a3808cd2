"""Made-up fat trees of any size, as the tools would print them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_GBPS = {"EDR": "25.78125 Gbps", "HDR": "53.125 Gbps", "NDR": "106.25 Gbps", "QDR": "10.0 Gbps"}


@dataclass(frozen=True)
class FatTree:
    """`pods` x `leaves` leaf switches with `nodes` nodes each, `spines` in a pod, `cores` above if there are several
    pods. `slow` is a rate for single links, by the names of their two ends; `missing` are links that are not there."""

    pods: int = 1
    leaves: int = 2
    nodes: int = 2
    spines: int = 2
    cores: int = 0
    rate: str = "4xHDR"
    slow: Mapping[tuple[str, str], str] = field(default_factory=dict)
    missing: tuple[tuple[str, str], ...] = ()

    @property
    def switches(self) -> list[str]:
        """The names of all switches."""
        pods = range(self.pods)
        return [
            *(f"leaf-{p}-{number}" for p in pods for number in range(self.leaves)),
            *(f"spine-{p}-{number}" for p in pods for number in range(self.spines)),
            *(f"core-{number}" for number in range(self.cores)),
        ]

    @property
    def hosts(self) -> list[str]:
        """The names of all nodes."""
        return [f"n{number:05}" for number in range(self.pods * self.leaves * self.nodes)]

    def links(self) -> list[tuple[str, str, str]]:
        """(upper end, lower end, rate) of every link."""
        pairs = [(f"leaf-{at // self.nodes // self.leaves}-{at // self.nodes % self.leaves}", host)
                 for at, host in enumerate(self.hosts)]  # fmt: skip
        for p in range(self.pods):
            pairs += [(f"spine-{p}-{s}", f"leaf-{p}-{leaf}") for leaf in range(self.leaves) for s in range(self.spines)]
            pairs += [(f"core-{c}", f"spine-{p}-{c % self.spines}") for c in range(self.cores)]
        return [
            (upper, lower, self.slow.get((upper, lower), self.rate))
            for upper, lower in pairs
            if (upper, lower) not in self.missing
        ]

    def ibnetdiscover(self) -> str:
        """As ibnetdiscover prints it."""
        ids = {name: f"S-{number:016x}" for number, name in enumerate(self.switches, 0x1000)}
        ids |= {name: f"H-{number:016x}" for number, name in enumerate(self.hosts, 0x100000)}
        ports: dict[str, list[str]] = {name: [] for name in ids}
        for upper, lower, rate in self.links():
            at = {upper: len(ports[upper]) + 1, lower: len(ports[lower]) + 1}
            for own, peer in ((upper, lower), (lower, upper)):
                ports[own].append(f'[{at[own]}]\t"{ids[peer]}"[{at[peer]}] \t\t# "{_described(peer)}" lid 1 {rate}')
        records = ["#\n# Topology file: generated on Mon Jan  5 10:00:00 2026\n#\n"]
        for name, lines in ports.items():
            kind, called = ("switch", "Switch") if ids[name].startswith("S") else ("ca", "Ca")
            number = max(len(lines), 64 if kind == "switch" else 1)
            text = f'"{_described(name)}"' + (" base port 0 lid 1 lmc 0" if kind == "switch" else "")
            head = f"vendid=0x2c9\ndevid=0x{kind == 'ca':x}\n{kind}guid=0x{ids[name][2:]}\n"
            head += f'{called}\t{number} "{ids[name]}"\t\t# {text}'
            records.append("\n".join([head, *lines]) + "\n")
        return "\n".join(records)

    def iblinkinfo(self) -> str:
        """As iblinkinfo prints it; slow links could be of the usual rate."""
        lids = {name: number for number, name in enumerate([*self.switches, *self.hosts], 1)}
        ports: dict[str, list[str]] = {name: [] for name in lids}
        width, speed = self.rate.split("x")
        for upper, lower, rate in self.links():
            at = {upper: len(ports[upper]) + 1, lower: len(ports[lower]) + 1}
            w, s = rate.split("x")
            could = " ".join([f"Could be {width}X"] * (w != width) + [f"Could be {_GBPS[speed]}"] * (s != speed))
            for own, peer in ((upper, lower), (lower, upper)):
                guid = f"    0x{lids[own]:016x}" if own.startswith("n") else "          "
                ports[own].append(
                    f"{guid} {lids[own]:6} {at[own]:4}[  ] ==( {w}X {_GBPS[s]:>18} Active/  LinkUp)==> "
                    f'{lids[peer]:6} {at[peer]:4}[  ] "{_described(peer)}" ( {could})'
                )
        heads = {name: f"Switch: 0x{lid:016x} {name}:" for name, lid in lids.items()}
        heads |= {name: f"CA: {_described(name)}:" for name in self.hosts}
        order = [*self.hosts, *self.switches]
        return "".join("\n".join([heads[name], *ports[name]]) + "\n" for name in order)

    def iblinkinfo_lines(self) -> str:
        """The same as `iblinkinfo -l` prints it."""
        lids = {name: number for number, name in enumerate([*self.switches, *self.hosts], 1)}
        text: list[str] = []
        owner, guid = "", ""
        for line in self.iblinkinfo().splitlines():
            if "==(" not in line:
                name = line.split(":")[1].split()[-1 if line[0] == "S" else 0]
                owner, guid = (name, f"0x{lids[name]:016x}")
                continue
            own, arrow, peer = line.partition("==> ")
            peer_guid = int(peer.split()[0])
            text.append(
                f'{guid} "{_described(owner):>30}" {" ".join(own.split()[own.startswith("    0x") :])}{arrow} '
                f"0x{peer_guid:016x} {peer.strip()}"
            )
        return "\n".join(text) + "\n"


def _described(name: str) -> str:
    return f"{name} mlx5_0" if name.startswith("n") else name
