"""Faults of machines: in dumps, under `seatrial check --from KIND=FILE`; in libraries and builds, on this machine.

A case is named if the first warning is of a right rule, and names the planted device or slot.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from causes import dumps
from causes.case import QUIET_ONLY, Bench, Case, Said, Skip, planted
from causes.dumps import Server, Slot, changed, moved, narrow_uplink, server, slots, without

SHARED = frozenset({"gpus-share-uplink"})
"""True of the made-up server: two GPUs share the uplink of each switch."""
FORMATS: dict[str, Callable[[Server], str]] = {
    "nccl-xml": dumps.nccl_xml,
    "hwloc-xml": dumps.hwloc_xml,
    "lspci-vv": dumps.lspci_vv,
    "nvidia-smi-topo": dumps.smi_matrix,
}
WIDTH = planted("link-unlike-siblings", "link-below-capability")
PLACE = planted("device-out-of-place", "paths-contradict-numa")
LINKS = planted("gpu-link-missing")
SLOTS = planted("memory-unbalanced", "memory-module-differs")
SOURCE = Path(__file__).with_name("machines.c")


@dataclass(frozen=True)
class Tree:
    """A server with a fault, in one format. `words` must be said; without causes it is a control."""

    name: str
    kind: str
    machine: Server
    right: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    is_quick: bool = False


HEALTHY = server()
ONE_LESS = changed(HEALTHY, "GPU3", nvlinks=17)
TREES = (
    Tree("a GPU with 4 of 16 lanes", "hwloc-xml", changed(HEALTHY, "GPU5", lanes=4), WIDTH, ("gpu-5",), is_quick=True),
    Tree("a GPU with 8 of 16 lanes", "nccl-xml", changed(HEALTHY, "GPU2", lanes=8), WIDTH, ("gpu-2",), is_quick=True),
    Tree("a GPU in a slot of 8 lanes", "lspci-vv", changed(HEALTHY, "GPU6", slot_lanes=8), WIDTH, ("gpu-6",)),
    Tree("a GPU that trained with 4 lanes", "lspci-vv", changed(HEALTHY, "GPU1", lanes=4), WIDTH, ("gpu-1",)),
    Tree("an adapter with 8 of 16 lanes", "nccl-xml", changed(HEALTHY, "mlx5_4", lanes=8), WIDTH, ("mlx5_4",)),
    Tree("an adapter with half of the rate", "hwloc-xml", changed(HEALTHY, "mlx5_7", lanes=8), WIDTH, ("mlx5_7",)),
    Tree("an adapter at another switch", "nccl-xml", moved(HEALTHY, "mlx5_3", 2), PLACE, ("mlx5_3",), is_quick=True),
    Tree("an adapter at another switch", "hwloc-xml", moved(HEALTHY, "mlx5_6", 0), PLACE, ("mlx5_6",)),
    Tree("an adapter at the other socket", "nvidia-smi-topo", moved(HEALTHY, "mlx5_0", 3), PLACE, ("mlx5_0",)),
    Tree("a GPU at another switch", "nccl-xml", moved(HEALTHY, "GPU4", 0), PLACE, ("gpu-4",)),
    Tree("a GPU with the node of the others", "nvidia-smi-topo", replace(HEALTHY, nodes={"GPU1": 1}), PLACE, ("GPU1",)),
    Tree("seven of eight GPUs", "nccl-xml", without(HEALTHY, "GPU3"), planted("gpu-missing"), ("7 GPUs",)),
    Tree("seven of eight GPUs", "hwloc-xml", without(HEALTHY, "GPU7"), planted("gpu-missing"), ("7 GPUs",)),
    Tree("seven of eight GPUs", "nvidia-smi-topo", without(HEALTHY, "GPU0"), planted("gpu-missing"), ("7 GPUs",)),
    Tree("an uplink of 8 lanes", "nccl-xml", narrow_uplink(HEALTHY, 2, 8), planted("uplink-unlike-siblings"),
         ("0000:30:00.0",)),
    Tree("an uplink of 8 lanes", "hwloc-xml", narrow_uplink(HEALTHY, 1, 8), planted("uplink-unlike-siblings"),
         ("0001:21:00.0",)),
    Tree("a GPU with one NVLink less", "nvidia-smi-topo", ONE_LESS, LINKS, ("GPU3 has 17 NVLinks",)),
    Tree("a pair without NVLink", "nvidia-smi-topo", replace(HEALTHY, fewer={("GPU2", "GPU6"): 0}), LINKS,
         ("GPU2 and GPU6",)),
    *(Tree("control: the healthy server", kind, HEALTHY, is_quick=kind == "nccl-xml") for kind in FORMATS),
    Tree("control: one adapter for each switch", "nvidia-smi-topo", server(adapters=1)),
    Tree("control: four GPUs and two adapters", "nccl-xml", server(gpus=1, adapters=1)),
    Tree("control: all GPUs idle", "lspci-vv", replace(HEALTHY, switches=tuple(
        replace(s, cards=tuple(replace(c, GTps=2.5) if c.kind == dumps.GPU else c for c in s.cards))
        for s in HEALTHY.switches))),
    Tree("control: two GPUs in unlike slots", "hwloc-xml",
         changed(server(gpus=1, adapters=1, switches=2), "GPU1", slot_lanes=8)),
)  # fmt: skip


@dataclass(frozen=True)
class Memory:
    """A server with these modules; `slot` must be named."""

    name: str
    modules: list[Slot]
    slot: str = ""
    right: frozenset[str] = frozenset()
    is_quick: bool = False


def _with(locator: str, **values: Any) -> list[Slot]:
    return [replace(slot, **values) if slot.locator == locator else slot for slot in slots()]


MEMORY = (
    Memory("a module of half the size", _with("A3", GiB=16), "A3", SLOTS, is_quick=True),
    Memory("a module of twice the size", _with("B5", GiB=64), "B5", SLOTS),
    Memory("a slower module", _with("B2", MTps=2400), "B2", SLOTS),
    Memory("a module of one rank", _with("A6", rank=1), "A6", SLOTS),
    Memory("a missing module", _with("B4", GiB=0), "B4", SLOTS),
    Memory("a missing module of one socket", _with("A1", GiB=0), "A1", SLOTS),
    Memory("a module without ECC", _with("B1", total_bits=64), "B1", planted("memory-module-without-ecc")),
    Memory("control: six modules in each socket", slots(), is_quick=True),
    Memory("control: twelve modules in each socket", slots(filled=12)),
    Memory("control: modules of two manufacturers", _with("A2", part="HMA84GR7DJR4N-XN")),
)


def _checked(bench: Bench, kind: str, text: str) -> Said:
    file = bench.folder / "dump.txt"
    file.write_text(text)
    return _warnings(bench.seatrial("check", "--from", f"{kind}={file}", "--format", "json"))


def _warnings(document: Any) -> Said:
    """The findings that are not notes, the largest loss first; the text has the devices, too."""
    found = [finding for finding in document["findings"] if finding["severity"] != "info"]
    text = "; ".join(f"{', '.join(one['devices'])}: {one['observation']}" for one in found)
    return Said(tuple((one["rule"], one.get("loss")) for one in found), text)


def _tree(one: Tree) -> Case:
    def say(bench: Bench) -> Said:
        return _checked(bench, one.kind, FORMATS[one.kind](one.machine))

    return Case(
        "machines", one.name, say, one.right, words=one.words, allowed=SHARED, variant=one.kind, loads=QUIET_ONLY,
        is_quick=one.is_quick,
    )  # fmt: skip


def _memory(one: Memory) -> Case:
    def say(bench: Bench) -> Said:
        return _checked(bench, "dmidecode", dumps.dmidecode(one.modules))

    words = (f"lot {one.slot} (",) if one.slot else ()
    return Case(
        "machines", one.name, say, one.right, words=words, variant="dmidecode", loads=QUIET_ONLY, is_quick=one.is_quick
    )  # fmt: skip


def _gemm(kernels: str | None, bench: Bench) -> Said:
    """A matrix product with the kernels of another processor; what the check of the results says of its BLAS."""
    results = str(bench.folder / "results")
    words = ["run", "cpu.gemm", "--set", "precision=fp64", "--set", "threads=1", "--budget", "5s", "--results", results]
    variables = dict(os.environ)
    if kernels is not None:
        if "avx2" not in Path("/proc/cpuinfo").read_text():
            raise Skip("needs a CPU with AVX2")
        variables["OPENBLAS_CORETYPE"] = kernels
        words += ["--set", "kernels=forced", "--set", "blas=openblas"]
    bench.seatrial(*words, "--format", "json", variables=variables)
    said = _warnings(bench.seatrial("check", "--results", results, "--format", "json"))
    causes = tuple(cause for cause in said.causes if cause[0] in ("blas-kernels-older", "far-below-limit"))
    return Said(causes, said.text)


def _flags(first: Sequence[str], second: Sequence[str], bench: Bench) -> Said:
    """Two builds of one source, timed by `command` in two folders: the difference in flags that compare lists."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise Skip("gcc is missing")
    study = bench.folder / "study.yaml"
    program = bench.folder / "program"
    study.write_text(
        "study: flags\nquestion: How long does the program run?\nbenchmarks:\n  command:\n"
        f"    argv: ['{program}']\nrepeat: {{budget: 5s}}\n"
    )
    for side, flags in (("first", first), ("second", second)):
        subprocess.run([compiler, *flags, str(SOURCE), "-o", str(program)], check=True)
        bench.seatrial("run", str(study), "--results", str(bench.folder / side), "--format", "json")
    document = bench.seatrial("compare", "first", "second", "--format", "json")
    listed = [d for d in document["differences"] if d["what"].endswith(("built with", "compiled by"))]
    text = "; ".join(f"{d['what']}: {d['baseline']} -> {d['candidate']}" for d in listed)
    return Said(tuple((d["what"].partition("program program ")[2], None) for d in listed), text)


LIVE = (
    ("kernels for a processor without AVX", partial(_gemm, "Prescott"), planted("blas-kernels-older"), ("Prescott",)),
    ("kernels for a processor with AVX only", partial(_gemm, "Sandybridge"), planted("blas-kernels-older"),
     ("Sandybridge",)),
    ("control: the library's own kernels", partial(_gemm, None), frozenset(), ()),
    ("-O0 against -O3, with debug information", partial(_flags, ["-g", "-O0"], ["-g", "-O3"]), planted("built with"),
     ("-O0 -> -O3",)),
    ("-O1 against -O2, with recorded switches",
     partial(_flags, ["-frecord-gcc-switches", "-O1"], ["-frecord-gcc-switches", "-O2"]), planted("built with"),
     ("-O1 -> -O2",)),
    ("control: built again with the same flags", partial(_flags, ["-g", "-O2"], ["-g", "-O2"]), frozenset(), ()),
    ("control: another source with the same flags", partial(_flags, ["-g", "-O2"], ["-g", "-O2", "-DROUNDS=300"]),
     frozenset(), ()),
)  # fmt: skip

CASES: tuple[Case, ...] = (
    *map(_tree, TREES),
    *map(_memory, MEMORY),
    *(
        Case("machines", name, say, right, words=words, variant="live", loads=QUIET_ONLY)
        for name, say, right, words in LIVE
    ),
)
