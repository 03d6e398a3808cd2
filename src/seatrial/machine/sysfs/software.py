"""The software of a node that programs depend on: libraries that the loader finds, modules of the kernel, and
installed packages.

Nodes of one system have the same; what one node has otherwise is a difference that a screen and a comparison list. None
of it identifies a machine: records state which libraries their programs loaded (`Hello.libs`).

* Libraries are looked for as ld.so(8) does: LD_LIBRARY_PATH, the MPI library whose compiler is first on PATH (its
  wrappers write that path into programs), /etc/ld.so.cache (glibc, sysdeps/generic/dl-cache.h), the default folders.
  Variants for processors (glibc-hwcaps) are not looked at.
* A module states a version, or a checksum of its sources; `taint` has O or P if it is not part of the kernel.
* /var/lib/dpkg/status: deb-control(5); /lib/apk/db/installed: apk-package(5); `rpm -qa`.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from seatrial.machine.elf_head import ELF_IDENT, build_id_in
from seatrial.machine.files import FileTree
from seatrial.machine.survey import FactBook, Survey
from seatrial.model.machine.fact import LIBRARY, MODULE, OFED, PACKAGE, PACKAGES
from seatrial.processes.working_folder import on_path

_LIBRARIES = re.compile(
    r"lib(?:c|stdc\+\+|gomp|mpi|mpich|mpi_(?:cray|gnu|intel|amd|nvidia)\w{0,9}|ucp|uct|fabric|psm2|ibverbs|rdmacm|pmix|nccl|rccl|cuda|amdhip64"
    r"|blas|openblas\w{0,8}|blis|mkl_rt|fftw3|hwloc|numa)\.so\.\d{1,4}"
)
_DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_MULTIARCH = re.compile(r"\w{3,12}-linux-gnu")
_CACHE = "/etc/ld.so.cache"
_CACHE_MARK = b"glibc-ld.so.cache1.1"
_CACHE_HEAD = struct.Struct("<20sII20x")
"""magic, nlibs, len_strings, then flags, extension_offset and what is unused."""
_CACHE_ENTRY = struct.Struct("<iIIIQ")
"""flags, key and value (offsets of the name and the path from the magic), osversion, hwcap."""
_SHOWN = 12
_SOFTWARE = "software"


def survey_software(files: FileTree, environment: Mapping[str, str]) -> Survey:
    """Libraries, modules of the kernel and packages; `environment` is that of programs on a running system."""
    book = FactBook()
    for name, paths in sorted(_candidates(files, environment).items()):
        found = next(filter(None, (_library(files, path) for path in paths)), None)
        book.say(f"{LIBRARY}{name}", found, f"{_SOFTWARE} (as ld.so finds it)")
    _add_modules(files, book)
    status, installed = "/var/lib/dpkg/status", "/lib/apk/db/installed"
    if (text := files.text(status)) is not None:
        _add_packages(book, "dpkg", _read_dpkg(text), f"{_SOFTWARE} ({status})")
    elif (text := files.text(installed)) is not None:
        _add_packages(book, "apk", _read_apk(text), f"{_SOFTWARE} ({installed})")
    return Survey(_SOFTWARE, facts=book.facts())


def _candidates(files: FileTree, environment: Mapping[str, str]) -> dict[str, list[str]]:
    """Name of a library -> the files of that name, first those that the loader takes first."""
    found: dict[str, list[str]] = {}

    def add(folder: str) -> None:
        for name in files.names(folder):
            if _LIBRARIES.fullmatch(name):
                found.setdefault(name, []).append(f"{folder}/{name}")

    for folder in re.split("[:;]", environment.get("LD_LIBRARY_PATH", "")):
        if folder.startswith("/"):
            add(folder.rstrip("/"))
    wrapper = on_path("mpicc", environment.get("PATH", "")) if files.is_live else None
    if wrapper is not None:
        for below in ("lib", "lib64"):
            add(str(PurePosixPath(wrapper).parent.parent / below))
    for name, path in _read_loader_cache(files.data(_CACHE) or b""):
        if _LIBRARIES.fullmatch(name):
            found.setdefault(name, []).append(path)
    for folder in _DEFAULT_FOLDERS:
        for below in filter(_MULTIARCH.fullmatch, files.names(folder)):
            add(f"{folder}/{below}")
        add(folder)
    return found


def _read_loader_cache(data: bytes) -> Iterator[tuple[str, str]]:
    """Name and path of its libraries, in the order in which the loader compares them; none if it is damaged."""
    start = data.find(_CACHE_MARK)
    if start < 0 or len(data) < start + _CACHE_HEAD.size:
        return
    _, number, _ = _CACHE_HEAD.unpack_from(data, start)
    first = start + _CACHE_HEAD.size
    table = data[first : first + number * _CACHE_ENTRY.size]
    for _, key, value, _, variant in _CACHE_ENTRY.iter_unpack(table[: len(table) // _CACHE_ENTRY.size * 24]):
        if not variant:
            yield _text_at(data, start + key), _text_at(data, start + value)


def _text_at(data: bytes, offset: int) -> str:
    end = data.find(b"\0", offset, offset + 4096)
    return data[offset : max(end, offset)].decode("utf-8", "replace")


def _library(files: FileTree, path: str) -> str | None:
    """The file behind a path and what identifies its content; None if it is not for 64-bit programs."""
    real = files.real(path)
    stream = None if real is None else files.opened(real)
    if real is None or stream is None:
        return None
    try:
        with stream:
            if stream.read(len(ELF_IDENT)) != ELF_IDENT:
                return None
            stream.seek(0)
            content = build_id_in(stream) or hashlib.sha256(files.data(real) or b"").hexdigest()
    except OSError:
        return None
    return f"{real} ({content[:_SHOWN]})"


_MODULES = "/sys/module"
_IMPORTANT_MODULES = frozenset(
    {
        *("ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib", "hfi1", "irdma", "bnxt_re", "efa", "rdma_rxe", "siw"),
        *("nvidia", "nvidia_peermem", "gdrdrv", "amdgpu", "knem", "xpmem", "lustre", "beegfs", "mmfs26", "tcp_bbr"),
    }
)
"""For networks, GPUs, memory of other processes and file systems; of the others those that are not of the kernel."""
_OUTSIDE = frozenset("OP")


def _add_modules(files: FileTree, book: FactBook) -> None:
    """Add a fact for each module that matters: its version, else the checksum of its sources."""
    for name in files.names(_MODULES):
        folder = f"{_MODULES}/{name}"
        is_outside = not _OUTSIDE.isdisjoint(files.word(f"{folder}/taint") or "")
        if is_outside or name in _IMPORTANT_MODULES:
            words = (files.word(f"{folder}/version"), files.word(f"{folder}/srcversion"))
            stated = ", ".join(filter(None, words)) or "version not stated"
            shown = stated if is_outside else f"of the kernel, {stated}"
            book.say(f"{MODULE}{name}", shown, f"{_SOFTWARE} ({folder})")


_PACKAGES = re.compile(
    r"(?:lib)?(?:openmpi|mpich|mvapich|ucx|ucp|fabric|ibverbs|rdmacm|psm2|pmix|openblas|hwloc)[\w.+-]{0,40}"
    r"|rdma-core|glibc|libc6|libstdc\+\+6?|(?:slurm|mlnx-of|knem|xpmem|lustre|beegfs)[\w.+-]{0,40}"
    r"|(?:nvidia-(?:driver|kernel)|cuda-drivers?|kmod-(?:nvidia|mlnx))[\w.+-]{0,40}|rocm-core|intel-oneapi-m(?:pi|kl)"
)
_WITHOUT_EFFECT = re.compile(r"-(?:dev|devel|docs?|dbg|dbgsym|debuginfo|data|common|man)\Z")

Package = tuple[str, str, str]
"""Name, version and architecture."""


def _add_packages(book: FactBook, manager: str, packages: Iterable[Package], source: str) -> None:
    """Add a digest of all packages, and the versions of those that measurements depend on."""
    each = sorted({package for package in packages if package[0] != "gpg-pubkey"})
    if not each:
        return
    digest = hashlib.sha256("\n".join(map(" ".join, each)).encode()).hexdigest()
    book.say(PACKAGES, f"{len(each)} of {manager}, {digest[:_SHOWN]}", source)
    versions: dict[str, list[str]] = {}
    for name, version, _ in each:
        if _PACKAGES.fullmatch(name) and not _WITHOUT_EFFECT.search(name):
            versions.setdefault(name, []).append(version)
    for name, own in versions.items():
        book.say(f"{PACKAGE}{name}", ", ".join(dict.fromkeys(own)), source)


RPM_QUERY = ("-qa", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE} %{ARCH}\\n")


def read_rpm(data: bytes) -> Survey:
    """The packages that `rpm` prints for this query; other lines are skipped."""
    lines = (line.split(" ") for line in data.decode("utf-8", "replace").splitlines())
    book = FactBook()
    _add_packages(book, "rpm", [(words[0], words[1], words[2]) for words in lines if len(words) == 3], "rpm -qa")
    return Survey("rpm", facts=book.facts())


def read_ofed_info(data: bytes) -> Survey:
    """The release that `ofed_info -s` prints: "MLNX_OFED_LINUX-5.8-2.0.3.0:"."""
    book = FactBook()
    book.say(OFED, data.decode("utf-8", "replace").strip().rstrip(":")[:80], "ofed_info -s")
    return Survey("ofed_info", facts=book.facts())


def _read_dpkg(text: str) -> Iterator[Package]:
    for fields in _records(text, ": ", frozenset({"Package", "Status", "Version", "Architecture"})):
        if fields.get("Status", "").endswith(" installed") and "Package" in fields:
            yield fields["Package"], fields.get("Version", ""), fields.get("Architecture", "")


def _read_apk(text: str) -> Iterator[Package]:
    for fields in _records(text, ":", frozenset("PVA")):
        if "P" in fields:
            yield fields["P"], fields.get("V", ""), fields.get("A", "")


def _records(text: str, divider: str, wanted: frozenset[str]) -> Iterator[dict[str, str]]:
    """These fields of each paragraph."""
    for paragraph in text.split("\n\n"):
        pairs = (line.partition(divider) for line in paragraph.split("\n"))
        yield {name: value.strip() for name, _, value in pairs if name in wanted}
