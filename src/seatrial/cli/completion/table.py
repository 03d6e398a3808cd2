"""The table that completion answers from: commands, options, benchmarks, parameters and kinds of files."""

from __future__ import annotations

import re
from typing import Any

import typer

from seatrial.applications.readers import readers
from seatrial.benchmarks import registry
from seatrial.cli.command import app, commands_of
from seatrial.cli.sources import KINDS
from seatrial.environments.cache_contents import kinds
from seatrial.model.benchmark.parameter import Parameter, ParameterKind
from seatrial.model.environment.mpi import MpiFamily
from seatrial.plan.environment_axes import AXES, MPI, NAMED
from seatrial.report.export.image_recipes import RECIPES

_CHOICES = re.compile(r"<([a-z-]+(?:\|[a-z-]+)+)>")


def made_table() -> dict[str, Any]:
    """As JSON."""
    group: Any = typer.main.get_command(app)
    context = group.make_context("seatrial", [], resilient_parsing=True)
    return {
        "options": _options(group, context),
        "commands": _commands(group, context),
        "groups": {
            name: _commands(group_of, context)
            for name, group_of in commands_of(group, context)
            if hasattr(group_of, "commands")
        },
        "benchmarks": {
            name: {
                "question": benchmark.question,
                "parameters": {parameter.name: _parameter(parameter) for parameter in benchmark.parameters},
            }
            for name, benchmark in registry().items()
            if benchmark.program.can_run
        },
        "environment": {
            axis: {"help": "", "values": list(MpiFamily if axis == MPI else AXES[axis].words)} for axis in NAMED
        },
        "imports": sorted(readers()),
        "dumps": sorted(KINDS),
        "recipes": sorted(RECIPES),
        "kept": list(dict.fromkeys(kind.name for kind in kinds())),
    }


def _commands(group: Any, context: Any) -> dict[str, Any]:
    """Name of a command -> its help and options."""
    return {
        name: {"help": _first(command.help or ""), "options": _options(command, context)}
        for name, command in commands_of(group, context)
    }


def _options(command: Any, context: Any) -> dict[str, Any]:
    """Name of an option -> its help, whether it takes a value, and its choices, as the help shows them."""
    found: dict[str, Any] = {}
    for parameter in command.params:
        match = _CHOICES.search((parameter.get_help_record(context) or ("",))[0])
        about = {
            "help": _first(getattr(parameter, "help", None) or ""),
            "takes": not getattr(parameter, "is_flag", False),
            "choices": match[1].split("|") if match else [],
        }
        found |= {option: about for option in parameter.opts if option.startswith("-")}
    return found | {"--help": {"help": "show the help", "takes": False, "choices": []}}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    words = ("true", "false") if parameter.kind is ParameterKind.FLAG else parameter.words
    return {"help": _first(parameter.help), "values": list(words)}


def _first(text: str) -> str:
    """One line."""
    return text.partition("\n")[0].strip()
