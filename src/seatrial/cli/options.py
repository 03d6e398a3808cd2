"""Options that several commands share, and the words that options take."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from seatrial.cli.command import Options
from seatrial.cli.output import message, print_json, style_of
from seatrial.errors import UsageError
from seatrial.report.text.terminal import Detail, Style

RESULTS = Path("seatrial-results")


class Format(StrEnum):
    """Output format of a command."""

    TEXT = "text"
    JSON = "json"


class FailOn(StrEnum):
    """The verdict that counts as a failure; ambiguous includes slower."""

    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"


ResultsOption = Annotated[Path, typer.Option("--results", metavar="DIR", help="the results folder")]
FromOption = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="KIND=FILE[#n]",
        help="output of another tool: hwloc-xml, lspci-vv, lspci-tree, dmidecode, nvidia-smi-topo, nvidia-smi-p2p, "
        "amd-smi, rocm-smi-topo, nccl-xml, ibstat, opainfo, cxi-stat, ethtool; several files describe one machine. Of "
        "a fabric: ibnetdiscover, iblinkinfo, slurm-topology",
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
