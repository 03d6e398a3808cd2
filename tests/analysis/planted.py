"""Faults planted into dumps of healthy machines: a link half as wide, an adapter or GPU elsewhere, a GPU gone, a module
that differs. Each fault comes with the names of the device that is right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET


@dataclass(frozen=True)
class Planted:
    """A dump with one fault. A finding is right if it names one of `right` (in its devices or text)."""

    what: str
    data: bytes
    right: tuple[str, ...]


def _bytes(root: ET.Element) -> bytes:
    return ET.tostring(root)


def _parse(data: bytes) -> ET.Element:
    text = re.sub(rb"<!DOCTYPE[^>]*>", b"", data)
    return ET.fromstring(text[text.index(b"<") :])


def nccl_narrow(data: bytes) -> Iterator[Planted]:
    """Each GPU and adapter in turn with half its lanes."""
    for kind in ("gpu", "nic"):
        for k, pci in enumerate(_functions(_parse(data), kind)):
            root = _parse(data)
            pci = _functions(root, kind)[k]
            width = int(pci.get("link_width", "0") or 0)
            if width >= 8:
                pci.set("link_width", str(width // 2))
                yield Planted(f"{kind} {pci.get('busid')} narrow", _bytes(root), (pci.get("busid", ""),))


def nccl_without_a_gpu(data: bytes) -> Iterator[Planted]:
    """Each GPU in turn gone, with the links to it."""
    for k in range(len(_functions(_parse(data), "gpu"))):
        root = _parse(data)
        pci = _functions(root, "gpu")[k]
        address = pci.get("busid", "").lower()
        for parent in list(root.iter()):
            for child in list(parent):
                if child is pci or child.get("target", "").lower() == address:
                    parent.remove(child)
        yield Planted(f"gpu {address} gone", _bytes(root), ("missing",))


def nccl_moved(data: bytes, kind: str) -> Iterator[Planted]:
    """Each device of a kind in turn below another parent of the same shape."""
    for k in range(len(_functions(_parse(data), kind))):
        root = _parse(data)
        parents = {child: parent for parent in root.iter() for child in parent}
        function = pci = _functions(root, kind)[k]
        while parents[pci].tag == "pci" and len(_functions(parents[pci], "gpu") + _functions(parents[pci], "nic")) == 1:
            pci = parents[pci]
        own = parents[pci]
        addresses = [child.get("busid") for child in root.iter("pci")]
        others = [p for p in root.iter(own.tag) if p is not own and len(p) == len(own)]
        if others and addresses.count(own.get("busid")) < 2:  # parts of one switch are the same place
            own.remove(pci)
            others[k % len(others)].append(pci)
            yield Planted(f"{kind} {function.get('busid')} moved", _bytes(root), (function.get("busid", ""),))


_CLASS = {"gpu": ("0x03", "0x12"), "nic": ("0x02",)}


def _functions(root: ET.Element, kind: str) -> list[ET.Element]:
    return [
        pci for pci in root.iter("pci")
        if any(child.tag == kind for child in pci) or pci.get("class", "").startswith(_CLASS[kind])
    ]  # fmt: skip


def hwloc_narrow(data: bytes) -> Iterator[Planted]:
    """Each PCI device with a known rate in turn with half of it."""
    for match in re.finditer(rb'<object type="PCIDev"[^>]*pci_busid="([^"]*)"[^>]*pci_link_speed="([0-9.]+)"', data):
        speed = float(match[2])
        if speed > 1.0:
            text = data[: match.start(2)] + f"{speed / 2:.6f}".encode() + data[match.end(2) :]
            yield Planted(f"{match[1].decode()} narrow", text, (match[1].decode(),))


def hwloc_without_a_gpu(data: bytes, device_id: str) -> Iterator[Planted]:
    """Each function of one model in turn gone."""
    root = _parse(data)
    for k in range(len(_of_model(root, device_id))):
        root = _parse(data)
        gpu = _of_model(root, device_id)[k]
        parent = next(p for p in root.iter() if gpu in list(p))
        parent.remove(gpu)
        for child in [c for c in root if c.tag.startswith("distances2")]:  # they refer to the GPU
            root.remove(child)
        yield Planted(f"{gpu.get('pci_busid')} gone", _bytes(root), ("missing",))


def _of_model(root: ET.Element, device_id: str) -> list[ET.Element]:
    return [o for o in root.iter("object") if o.get("type") == "PCIDev" and device_id in o.get("pci_type", "")]


class Matrix:
    """The cells of a matrix with tabs between them; the text after it is dropped."""

    def __init__(self, data: bytes) -> None:
        lines = data.decode().splitlines()
        at = next(n for n, line in enumerate(lines) if line.startswith("\tGPU0\tGPU1"))
        self.header = lines[at].split("\t")
        rows = [line.split("\t") for line in lines[at + 1 :]]
        self.rows = {row[0].strip(): row for row in rows[: next(n for n, row in enumerate(rows) if len(row) < 3)]}
        self.names = [name for name in self.rows if name in self.header]
        self.gpus = [name for name in self.names if name.startswith("GPU")]
        self.adapters = [name for name in self.names if name not in self.gpus]

    def get(self, a: str, b: str) -> str:
        return self.rows[a][self.header.index(b)].strip()

    def set(self, a: str, b: str, name: str) -> None:
        self.rows[a][self.header.index(b)] = self.rows[b][self.header.index(a)] = name

    def without(self, name: str) -> None:
        """Drop a GPU, and number the others anew, as the tool does."""
        at = self.header.index(name)
        del self.rows[name]
        for row in (self.header, *self.rows.values()):
            del row[at]
        new = {old: f"GPU{k}" for k, old in enumerate(gpu for gpu in self.gpus if gpu != name)}
        self.header = [new.get(word, word) for word in self.header]
        self.rows = {new.get(key, key): [new.get(row[0].strip(), row[0]), *row[1:]] for key, row in self.rows.items()}

    def data(self) -> bytes:
        return "".join("\t".join(row) + "\n" for row in (self.header, *self.rows.values())).encode()


def matrix_moved(data: bytes) -> Iterator[Planted]:
    """Each adapter in turn with the classes of one that is far from it."""
    for label in Matrix(data).adapters:
        matrix = Matrix(data)
        own = {gpu: matrix.get(label, gpu) for gpu in matrix.gpus}
        like = [a for a in matrix.adapters if sorted(matrix.get(a, g) for g in matrix.gpus) == sorted(own.values())]
        far = [a for a in like if a != label and matrix.get(label, a) == "SYS"]
        if far and {"PIX", "PXB", "PHB"} & set(own.values()):
            for gpu in matrix.gpus:
                matrix.set(label, gpu, matrix.get(far[0], gpu))
            yield Planted(f"{label} moved beside {far[0]}", matrix.data(), (label,))


def matrix_without_a_gpu(data: bytes) -> Iterator[Planted]:
    """Each GPU in turn gone."""
    for name in Matrix(data).gpus:
        matrix = Matrix(data)
        matrix.without(name)
        yield Planted(f"{name} gone", matrix.data(), ("missing",))


def matrix_fewer_links(data: bytes) -> Iterator[Planted]:
    """Each GPU in turn with one NVLink less to each other one; the rest are connected through switches."""
    for name in Matrix(data).gpus:
        matrix = Matrix(data)
        for other in matrix.gpus:
            number = matrix.get(name, other)
            if other != name:
                matrix.set(name, other, f"NV{int(number[2:]) - 1}")
        yield Planted(f"{name} with one link less", matrix.data(), (name,))


def matrix_wrong_node(data: bytes) -> Iterator[Planted]:
    """Each GPU in turn with the affinity of the other node."""
    for name in Matrix(data).gpus:
        matrix = Matrix(data)
        start = matrix.header.index("CPU Affinity")
        own = matrix.rows[name][start:]
        other = next((matrix.rows[gpu][start:] for gpu in matrix.gpus if matrix.rows[gpu][start:] != own), None)
        if other is not None:
            matrix.rows[name][start:] = other
            yield Planted(f"{name} at the other node", matrix.data(), (name,))


def shrunken_modules(data: bytes, step: int = 1) -> Iterator[Planted]:
    """Installed modules in turn with half their size."""
    yield from _changed(data, rb"\tSize: (\d+) (GB|MB)", lambda m: f"\tSize: {int(m[1]) // 2} {m[2].decode()}", step)


def slow_modules(data: bytes, step: int = 1) -> Iterator[Planted]:
    """Installed modules in turn with a lower configured speed."""
    pattern = rb"\tConfigured (Memory|Clock) Speed: (\d+) (MT/s|MHz)"
    yield from _changed(data, pattern, lambda m: f"\tConfigured {m[1].decode()} Speed: 1600 {m[3].decode()}", step)


def modules_of_one_rank(data: bytes, step: int = 1) -> Iterator[Planted]:
    """Installed modules in turn with another rank."""
    yield from _changed(data, rb"\tRank: (\d)", lambda m: f"\tRank: {1 if m[1] != b'1' else 2}", step)


def modules_without_ecc(data: bytes, step: int = 1) -> Iterator[Planted]:
    """Installed modules in turn without the bits for ECC."""
    yield from _changed(data, rb"\tTotal Width: (72|80) bits", lambda m: "\tTotal Width: 64 bits", step)


def missing_modules(data: bytes, step: int = 1) -> Iterator[Planted]:
    """Slots in turn without their module."""
    yield from _changed(data, rb"\tSize: (\d+) (GB|MB)", lambda m: "\tSize: No Module Installed", step)


def _changed(data: bytes, pattern: bytes, change: object, step: int) -> Iterator[Planted]:
    blocks = re.split(rb"(?=^Handle )", data, flags=re.MULTILINE)
    at = [k for k, block in enumerate(blocks) if b"\nMemory Device\n" in block and re.search(rb"\tSize: \d", block)
          and re.search(pattern, block)]  # fmt: skip
    for k in at[::step]:
        locator = re.search(rb"\tLocator: (.*)", blocks[k])
        new = re.sub(pattern, lambda m: change(m).encode(), blocks[k], count=1)
        name = "" if locator is None else locator[1].decode().strip()
        yield Planted(f"slot {name}", b"".join([*blocks[:k], new, *blocks[k + 1 :]]), (name,))
