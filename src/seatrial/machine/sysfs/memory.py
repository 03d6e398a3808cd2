"""Memory sizes, huge pages and swap: /proc/meminfo, the online memory blocks, the huge page pools."""

from __future__ import annotations

import re

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.meminfo import read_meminfo
from seatrial.machine.readers.scalars import read_choice
from seatrial.machine.readers.zoneinfo import read_present_pages
from seatrial.machine.survey import CpuPart, FactBook
from seatrial.model.machine import DeviceKind

_BLOCKS = "/sys/devices/system/memory"
_POOLS = "/sys/kernel/mm/hugepages"
_THP = "/sys/kernel/mm/transparent_hugepage"


def add_memory(files: FileTree, parts: tuple[CpuPart, ...], book: FactBook, unread: list[str]) -> None:
    """Add all sizes of the memory, the most useful first: the total of the kernel, then the sums of parts."""
    _add_meminfo(files, book, unread)
    blocks = _online_blocks(files)
    book.say("memory_total", blocks, f"{_BLOCKS} (sum of the online blocks)", "B")
    book.say("memory_online", blocks, f"{_BLOCKS} (sum of the online blocks)", "B")
    pages, page_B = read_present_pages(files.text("/proc/zoneinfo") or ""), _page_size(files)
    if pages is not None and page_B is not None:
        book.say("memory_present", pages * page_B, "/proc/zoneinfo (pages present in all zones)", "B")
    nodes = [part.facts.integer("memory_total") for part in parts if part.kind is DeviceKind.NUMA]
    known = [size for size in nodes if size is not None]
    if known:
        source = "/sys/devices/system/node (sum of MemTotal of the NUMA nodes)"
        book.say("memory_total", sum(known), source, "B", volatile=True)
    _add_huge_pages(files, book)


def _add_meminfo(files: FileTree, book: FactBook, unread: list[str]) -> None:
    source = "/proc/meminfo"
    text = files.text(source)
    try:
        values = read_meminfo(text or "")
    except ParseError as error:
        unread.append(f"memory: {source} is invalid ({error.message})")
        return
    book.say("memory_total", values.get("MemTotal"), f"{source} (MemTotal)", "B")
    book.say("memory_available", values.get("MemAvailable"), f"{source} (MemAvailable)", "B", volatile=True)
    book.say("swap_total", values.get("SwapTotal"), f"{source} (SwapTotal)", "B")
    book.say("swap_free", values.get("SwapFree"), f"{source} (SwapFree)", "B", volatile=True)


def _online_blocks(files: FileTree) -> int | None:
    """Bytes of the online memory blocks (Documentation/admin-guide/mm/memory-hotplug.rst; the size is bare hex)."""
    try:
        block = int(files.word(f"{_BLOCKS}/block_size_bytes") or "", 16)
    except ValueError:
        return None
    names = [name for name in files.names(_BLOCKS) if re.fullmatch(r"memory\d+", name)]
    states = [files.word(f"{_BLOCKS}/{name}/state") for name in names]
    return states.count("online") * block or None


def _page_size(files: FileTree) -> int | None:
    """Bytes of the kernel's pages: those of the smallest mapping of this process."""
    sizes = re.findall(r"^KernelPageSize: +([0-9]{1,9}) kB$", files.text("/proc/self/smaps") or "", re.MULTILINE)
    return min(map(int, sizes), default=0) * 1024 or None


def _add_huge_pages(files: FileTree, book: FactBook) -> None:
    for name in ("enabled", "defrag"):
        text = files.text(f"{_THP}/{name}")
        if text is None:
            continue
        try:
            book.say(f"thp_{name}", read_choice(text), f"{_THP}/{name}")
        except ParseError:
            continue
    for pool in files.names(_POOLS):
        match = re.fullmatch(r"hugepages-(\d{1,12})kB", pool)
        if match is None:
            continue
        size = _binary_size(int(match[1]))
        total, free = files.integer(f"{_POOLS}/{pool}/nr_hugepages"), files.integer(f"{_POOLS}/{pool}/free_hugepages")
        book.say(f"hugetlb_{size}_total", total, f"{_POOLS}/{pool}/nr_hugepages", "1")
        book.say(f"hugetlb_{size}_free", free, f"{_POOLS}/{pool}/free_hugepages", "1", volatile=True)


def _binary_size(kib: int) -> str:
    for scale, name in ((1 << 20, "GiB"), (1 << 10, "MiB")):
        if kib >= scale and kib % scale == 0:
            return f"{kib // scale}{name}"
    return f"{kib}KiB"
