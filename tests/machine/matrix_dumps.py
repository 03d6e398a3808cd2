"""Made-up matrices: random machines, printed in all the ways in which people paste them, and what a reader gave."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from seatrial.machine.readers.scalars import read_cpu_list
from seatrial.machine.survey import Survey

Pair = tuple[str, str]

COLUMNS = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""
_P2P_LEGEND = "\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n  U    = Unknown\n"


@dataclass
class Made:
    """A machine as one matrix tells it: the text of each cell, "" where it is empty."""

    labels: list[str]
    cells: dict[Pair, str]
    columns: tuple[str, ...] = ()
    tails: dict[str, tuple[str, ...]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    is_p2p: bool = False

    def cell(self, a: str, b: str) -> str:
        """The text in row `a`, column `b`."""
        return "X" if a == b else self.cells.get((a, b)) or self.cells[b, a]


@dataclass
class Said:
    """What a survey says, in a form to be compared. Values of places are None where nothing is said."""

    labels: list[str]
    paths: list[tuple[str, str, str | None, int | None]]
    p2p: list[tuple[str, str, str | None, str | None]]
    places: dict[tuple[str, str], object]


def said(survey: Survey) -> Said:
    """The devices, pairs and places of a survey."""
    places: dict[tuple[str, str], object] = {}
    for part in survey.named_parts:
        places[part.name, "cpus"] = part.cpus
        places[part.name, "numa"] = part.numa
        places[part.name, "gpu_numa"] = part.facts.integer("gpu_numa")
        places[part.name, "alias"] = part.aliases[0] if part.aliases else None
    return Said(
        [part.name for part in survey.named_parts],
        [(path.a, path.b, path.path_class, path.links) for path in survey.paths],
        [(one.a, one.b, one.read, one.write) for one in survey.p2p],
        places,
    )


def truth(made: Made) -> Said:
    """What a reader should make of it."""
    pairs = [(a, b) for number, a in enumerate(made.labels) for b in made.labels[number + 1 :]]
    paths: list[tuple[str, str, str | None, int | None]] = []
    p2p: list[tuple[str, str, str | None, str | None]] = []
    for a, b in pairs:
        cell = made.cell(a, b)
        if made.is_p2p:
            p2p.append((a, b, cell, None))
        elif cell.startswith("NV"):
            paths.append((a, b, "NV", int(cell[2:])))
        else:
            paths.append((a, b, {"SOC": "SYS"}.get(cell, cell), None))
    places: dict[tuple[str, str], object] = {}
    for label in made.labels:
        texts = dict(zip(made.columns, made.tails.get(label, ()), strict=False))
        cpus, numa, own = (texts.get(column, "") for column in COLUMNS)
        places[label, "cpus"] = frozenset(read_cpu_list(cpus)) if cpus not in ("", "N/A") else None
        places[label, "numa"] = int(numa) if numa.isdecimal() else None
        places[label, "gpu_numa"] = int(own) if own.isdecimal() else None
        places[label, "alias"] = made.aliases.get(label)
    return Said(made.labels, paths, p2p, places)


def is_right(got: Said, want: Said, *, whole: bool) -> bool:
    """Whether a reading is the machine; unless `whole`, places and paths between adapters may be missing, but none may
    be another."""
    if (got.labels, got.p2p, len(got.paths)) != (want.labels, want.p2p, len(want.paths)):
        return False
    for one, path in zip(got.paths, want.paths, strict=True):
        is_missing = not whole and one[:3] == (*path[:2], None) and not path[0].startswith("GPU")
        if one != path and not is_missing:
            return False
    return all(value == want.places[key] or (value is None and not whole) for key, value in got.places.items())


def random_topology(rng: Random, max_gpus: int = 16, max_nics: int = 18) -> Made:
    """Any machine, near enough to real ones: two sockets, affinities that fit them, or none."""
    n_gpus, n_nics = rng.randint(1, max_gpus), rng.choice((0, 0, 1, 2, rng.randint(0, max_nics)))
    stem = rng.choice(("NIC", "NIC", "mlx5_", "mlx4_", "hfi1_", "bnxt_re", "irdma", "ibp12s", "mlx5_bond_"))
    nics = [f"{stem}{number}" for number in range(n_nics)]
    rng.shuffle(nics)
    labels = [f"GPU{number}" for number in range(n_gpus)] + nics
    linked = rng.choice((["NV1", "NV2"], ["NV12"], ["NV18"], ["PIX", "PXB", "PHB"], ["C2C"]))
    far = rng.choice((["SYS", "NODE", "PHB"], ["SOC", "PHB", "PIX"]))
    cells = {}
    for number, a in enumerate(labels):
        for b in labels[number + 1 :]:
            both = a.startswith("GPU") and b.startswith("GPU")
            cells[a, b] = rng.choice([*far, *linked] if both else [*far, "PIX", "PXB"])
    columns = COLUMNS[: rng.choice((1, 2, 2, 3, 3))]
    near = rng.choice(
        (
            [("0-23", "0"), ("24-47", "1")],
            [("0-63,128-191", "0"), ("64-127,192-254", "8")],
            [("0,2,4,6", "0"), ("1,3,5,7", "1")],
            [("0-0,2-2,14-14", "0"), ("1-1,3-3,15-15", "12")],
            [("0-95", "N/A")],
            [("N/A", "N/A")],
            [("0-31", "0-1"), ("32-63", "2-3")],
            [("0", "0"), ("", "1")],
            [("", "")],
        )
    )
    tails = {}
    for number in range(n_gpus):
        cpus, numa = near[number * len(near) // n_gpus]
        tails[f"GPU{number}"] = (cpus, numa, rng.choice(("N/A", "N/A", "16")))[: len(columns)]
    has_legend = stem == "NIC" and rng.random() < 0.7
    aliases = {nic: f"mlx5_{number + 1}" for number, nic in enumerate(nics)} if has_legend else {}
    return Made(labels, cells, columns, tails, aliases)


def random_p2p(rng: Random) -> Made:
    """What `topo -p2p r` says of up to 16 GPUs."""
    labels = [f"GPU{number}" for number in range(rng.randint(2, 16))]
    statuses = rng.choice((["OK"], ["OK", "CNS"], ["NS", "GNS", "TNS"], ["OK", "U", "DR"]))
    cells = {(a, b): rng.choice(statuses) for number, a in enumerate(labels) for b in labels[number + 1 :]}
    return Made(labels, cells, is_p2p=True)


@dataclass(frozen=True)
class Look:
    """How a matrix is printed. `spacing`: tabs, expanded (tabs to 8 columns), single, or aligned."""

    spacing: str = "tabs"
    leading: bool = True
    glued: bool = False
    underlined: bool = False
    shuffled: bool = False
    prefix: str = ""
    around: tuple[str, str] = ("", "")
    newline: str = "\n"
    legend: bool = True

    @property
    def keeps_empty_cells(self) -> bool:
        """Whether it can be seen which of a row's last cells is empty."""
        return self.spacing == "tabs"


def random_look(rng: Random) -> Look:
    """Any way of printing."""
    around = rng.choice(
        (
            ("", ""),
            ("$ nvidia-smi topo -m\n", "$ echo done\n"),
            ("Our node has GPU0 and GPU1:\n\n```bash\n[me@node ~]$ nvidia-smi topo -m\n", "```\n\nX marks it.\n"),
            ("> quoted\n", "\nNIC0 is fast. GPU0 GPU1 are near.\n"),
        )
    )
    return Look(
        spacing=rng.choice(("tabs", "tabs", "expanded", "single", "aligned")),
        leading=rng.random() < 0.7,
        glued=rng.random() < 0.2,
        underlined=rng.random() < 0.3,
        shuffled=rng.random() < 0.2,
        prefix=rng.choice(("", "", "# ", "> ", "#", "> > ")),
        around=around,
        newline=rng.choice(("\n", "\n", "\r\n")),
        legend=rng.random() < 0.8,
    )


def show(made: Made, look: Look, rng: Random) -> bytes:
    """The dump as bytes."""
    head, *rows = table(made, look, rng)
    lines = [head, *rows]
    if look.spacing == "expanded":
        lines = [line.expandtabs(8) for line in lines]
    elif look.spacing == "single":
        lines = [" ".join(line.split()) for line in lines]
    elif look.spacing == "aligned":
        lines = _aligned(made, lines)
    if look.underlined:
        lines[0] = f"\x1b[4m{lines[0]}\x1b[0m"
    text = "\n".join(lines) + "\n"
    if look.legend:
        text += _P2P_LEGEND if made.is_p2p else _LEGEND
        if made.aliases:
            text += "\nNIC Legend:\n\n" + "".join(f"  {label}: {name}\n" for label, name in made.aliases.items())
    body = "".join(f"{look.prefix}{line}\n" for line in text.splitlines())
    return (look.around[0] + body + look.around[1]).replace("\n", look.newline).encode()


def table(made: Made, look: Look, rng: Random) -> list[str]:
    """Header and rows with a tab between cells, as nvidia-smi prints them."""
    labels = "".join(made.labels) if look.glued else "\t".join(made.labels)
    head = ("\t" if look.leading else "") + "\t".join([labels, *made.columns])
    rows = []
    for label in made.labels:
        cells = [" X " if other == label else made.cell(label, other) for other in made.labels]
        tail = list(made.tails.get(label, ()))
        if len(tail) == 3:
            tail.insert(2, "")
        rows.append("\t".join([label, *cells, *tail]))
    if look.shuffled:
        rng.shuffle(rows)
    return [head, *rows]


def _aligned(made: Made, lines: list[str]) -> list[str]:
    """Each cell below its header, two spaces apart, as somebody's editor would do it."""
    rows = [["", *made.labels, *made.columns]]
    for line in lines[1:]:
        label = line.split("\t")[0]
        rows.append([label, *(made.cell(label, other) for other in made.labels), *made.tails.get(label, ())])
    widths = [max(len(row[at]) if at < len(row) else 0 for row in rows) for at in range(len(rows[0]))]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) for row in rows]
    if "\t" not in lines[0].lstrip("\t") or not lines[0].startswith("\t"):
        shown[0] = shown[0].lstrip()
    return [line.rstrip() for line in shown]
