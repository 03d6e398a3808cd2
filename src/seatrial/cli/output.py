"""Output: the result on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from seatrial.cli.command import Options
from seatrial.cli.process import Shown
from seatrial.errors import UsageError
from seatrial.model.json_object import json_of
from seatrial.printable import printable
from seatrial.report.blocks import Detail
from seatrial.report.text.terminal import PLAIN, Style
from seatrial.store.files import write_once


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json_of(document, indent=1))


def write_data(text: str) -> None:
    """Write text for other programs to stdout: unchanged, unless that is a terminal."""
    (sys.stdout.write_data if isinstance(sys.stdout, Shown) else sys.stdout.write)(text)


def style_of(stream: TextIO) -> Style:
    """The layout of text on a stream; on a terminal, with colours and in its width. In a pipe it is always the same:
    scripts read it."""
    if not stream.isatty():
        return PLAIN
    from rich.console import Console

    from seatrial.report.text.terminal_colours import TerminalStyle

    return TerminalStyle(Console(file=stream))


def message(text: str) -> None:
    """Print a message on stderr, without control characters: it may quote a file. It is dropped if stderr cannot be
    written."""
    print_painted(printable(text, "\t\n"))


def print_painted(text: str) -> None:
    """The same for text that was made for the terminal, with our colours; what it quotes is already clean."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError, ValueError):  # `output_error` reports it
        sys.stdout.flush()  # else its lines and ours run together where both go to one file
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:  # the interpreter must not fail to flush it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


class _Messages(logging.Handler):
    """Prints log records as messages."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the text alone, without level, time and logger."""
        message(record.getMessage())


def show_messages() -> None:
    """Print what seatrial logs from now on."""
    log = logging.getLogger("seatrial")
    if not any(isinstance(handler, _Messages) for handler in log.handlers):
        log.addHandler(_Messages())


def hide_warnings() -> None:
    """Print nothing from now on of what seatrial logs as a warning; errors end the command and are printed."""
    logging.getLogger("seatrial").setLevel(logging.ERROR)


def write_file(path: Path, text: str | Iterable[str]) -> None:
    """Write a text file, given whole or in pieces; see `write_bytes`."""
    write_bytes(path, encoded([text] if isinstance(text, str) else text))


def encoded(pieces: Iterable[str]) -> Iterator[bytes]:
    """The bytes of a text file."""
    return (piece.encode(errors="backslashreplace") for piece in pieces)


def write_bytes(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file completely or not at all. Links are followed, since the user gave the path; character devices and
    pipes that somebody reads are written to directly.

    Raises UsageError if it cannot be written.
    """
    try:
        target = _resolved(path)
        if path.name == "" or target.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        if target.exists() and not target.is_file():
            _write_special(target, data)
            return
        write_once(target.parent, target.name, data=data)
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"{str(path)!r} cannot be written: {why}", "give another file with -o") from error


def _resolved(path: Path) -> Path:
    """Raises OSError, also for a path with a null byte."""
    try:
        return path.resolve()
    except ValueError as error:
        raise OSError(str(error)) from error


def _write_special(target: Path, data: bytes | Iterable[bytes]) -> None:
    """Raises OSError; also for what would block or destroy more than a file."""
    mode = target.stat().st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        raise OSError(errno.EINVAL, "it is a block device" if stat.S_ISBLK(mode) else "it is a socket")
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise OSError(error.errno, "nobody reads this FIFO") if error.errno == errno.ENXIO else error from error
    with os.fdopen(descriptor, "wb") as stream:
        os.set_blocking(descriptor, True)
        stream.writelines([data] if isinstance(data, bytes) else data)


RESULTS = Path("seatrial-results")


class Format(StrEnum):
    """Output format of a command."""

    TEXT = "text"
    JSON = "json"


class FailOn(StrEnum):
    """The verdict that counts as a failure; ambiguous includes slower. Of a reference: a figure beyond it."""

    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"
    REFERENCE = "reference"


ResultsOption = Annotated[Path, typer.Option("--results", metavar="DIR", help="the results folder")]
WaitQuietOption = Annotated[
    str | None,
    typer.Option(
        "--wait-quiet",
        metavar="TIME",
        help="wait at most so long until nothing else uses the CPUs, then measure anyway; not part of --budget",
    ),
]
FromOption = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="KIND=FILE[#n]",
        help="output of another tool: hwloc-xml, lscpu, likwid-topology, dmidecode, lspci-vv, lspci-tree, "
        "nvidia-smi-topo, nvidia-smi-p2p, nvidia-smi-q, amd-smi, rocm-smi-topo, nccl-xml, ibstat, opainfo, cxi-stat, "
        "ethtool, ethtool-s; several files describe one machine. Of a fabric: ibnetdiscover, iblinkinfo, "
        "slurm-topology, perfquery, ibqueryerrors, ibswinfo, opafabricinfo",
    ),
]
LiveOption = Annotated[
    bool, typer.Option("--live", help="read this machine (default without --from); with --from, add its facts")
]
PageOption = Annotated[Path | None, typer.Option("-o", metavar="FILE.html", help="also write an HTML page")]
OutputOption = Annotated[Path | None, typer.Option("-o", metavar="FILE", help="write to a file instead of stdout")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=V1,V2",
        help="set a parameter to one or more values; also environment.mpi, environment.compiler, ...",
    ),
]

SiteOption = Annotated[
    Path | None, typer.Option("--site", metavar="FILE", help="the site file (default: ~/.config/seatrial/site.yaml)")
]
SystemOption = Annotated[
    str | None,
    typer.Option("--system", metavar="NAME[:PARTITION]", help="system and partition to run on, from the site file"),
]

MaxNodeHoursOption = Annotated[
    float | None,
    typer.Option(
        "--max-node-hours",
        metavar="HOURS",
        help="with --system: submit nothing if the time limits of its jobs add up to more",
        min=0.0,
    ),
]

MarginOption = Annotated[
    str | None,
    typer.Option(
        "--margin", metavar="PERCENT", help="of a comparison: differences up to this size count as none (default: 2%)"
    ),
]
EquivalenceOption = Annotated[
    str | None,
    typer.Option(
        "--equivalence",
        metavar="PERCENT",
        help="in place of --margin: test that the sides differ by no more, for the verdict equivalent",
    ),
]


class Amount(Options):
    """How much text a command prints. JSON stays as it is. Raises UsageError for both."""

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="print less: {}")] = False
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="print more: {}")] = False

    def __post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise UsageError("--quiet and --verbose were both given", "give one of them")

    @property
    def detail(self) -> Detail:
        """In the words of the reports."""
        return Detail.BRIEF if self.quiet else Detail.FULL if self.verbose else Detail.USUAL

    def announce(self, text: str) -> None:
        """Print a line about what happens, unless it is to be quiet."""
        if not self.quiet:
            message(text)


class Output(Amount):
    """How much text a command prints, or JSON."""

    output_format: Annotated[Format, typer.Option("--format", help="json: a single JSON object on stdout")] = (
        Format.TEXT
    )

    @property
    def as_json(self) -> bool:
        """Whether it is JSON."""
        return self.output_format is Format.JSON

    def show(self, document: Callable[[], Mapping[str, Any]], text: Callable[[Style], str]) -> None:
        """Print the document, or the text in the layout of stdout."""
        if self.as_json:
            print_json(document())
        else:
            print(text(style_of(sys.stdout)))


"""Every kind of `--from`: those of a machine, and those of a fabric."""
