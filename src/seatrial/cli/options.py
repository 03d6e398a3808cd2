"""Options that several commands share, and the words that options take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from seatrial.errors import UsageError
from seatrial.report.text.detail import Detail

RESULTS = Path("seatrial-results")


class Format(StrEnum):
    """Output format of a command."""

    TEXT = "text"
    JSON = "json"


class PictureFormat(StrEnum):
    """Output format of `discover`."""

    TEXT = "text"
    JSON = "json"
    SVG = "svg"


class ExportFormat(StrEnum):
    """Output format of `export`."""

    CSV = "csv"
    MARKDOWN = "markdown"
    PARQUET = "parquet"
    JUNIT = "junit"
    OPENMETRICS = "openmetrics"


class QueryFormat(StrEnum):
    """Output format of `query`."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


class FailOn(StrEnum):
    """The lowest severity that counts as a failure."""

    WARNING = "warning"
    ERROR = "error"


class CompareFailOn(StrEnum):
    """The verdict that counts as a failure; ambiguous includes slower."""

    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"


class FileKind(StrEnum):
    """A kind of file that `init` writes."""

    STUDY = "study"
    SITE = "site"
    BENCHMARK = "benchmark"
    IMAGE = "image"


class Shell(StrEnum):
    """A shell that completes our words."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


FormatOption = Annotated[Format, typer.Option("--format", help="json: a single JSON object on stdout")]
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
OutputOption = Annotated[Path | None, typer.Option("-o", metavar="FILE", help="write to a file instead of stdout")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=V1,V2",
        help="set a parameter to one or more values; also environment.mpi, environment.compiler, ...",
    ),
]

WarmupOption = Annotated[
    int | None,
    typer.Option("--warmup", metavar="N", help="of a program: runs before the timed ones in each repeat", min=0),
]
PrepareOption = Annotated[
    str | None, typer.Option("--prepare", metavar="CMD", help="of a program: run this before each run, not timed")
]
CleanupOption = Annotated[
    str | None, typer.Option("--cleanup", metavar="CMD", help="of a program: run this at the end of each repeat")
]
InputOption = Annotated[
    Path | None, typer.Option("--input", metavar="FILE", help="of a program: its standard input (default: empty)")
]
ExpectOption = Annotated[
    int | None,
    typer.Option("--expect", metavar="STATUS", help="of a program: its exit status (default: 0)", min=0, max=255),
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


def quiet_option(what: str) -> Any:
    """`--quiet`: text with the result and problems only, which `what` names. JSON stays as it is."""
    return typer.Option("--quiet", "-q", help=f"print less: {what}")


def verbose_option(what: str) -> Any:
    """`--verbose`: text with everything that is known, which `what` names. JSON stays as it is."""
    return typer.Option("--verbose", "-v", help=f"print more: {what}")


def detail_of(quiet: bool, verbose: bool) -> Detail:
    """How much to print. Raises UsageError for both options."""
    if quiet and verbose:
        raise UsageError("--quiet and --verbose were both given", "give one of them")
    return Detail.BRIEF if quiet else Detail.FULL if verbose else Detail.USUAL
