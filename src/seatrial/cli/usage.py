"""Mistakes on the command line: an unknown command or option, a missing or invalid value."""

from __future__ import annotations

import re
from typing import Any

import typer

from seatrial.cli.completion.answer import known_table
from seatrial.errors import did_you_mean, nearest_names

_CHOICES = re.compile(r"(?:Value error, )?'(?P<given>.*)' is not one of (?P<choices>'.*')\.?", re.DOTALL)


def usage_text(error: typer.TyperException) -> str:
    """What is wrong and what to write, in two lines. The parser's own words are kept where nothing clearer is known."""
    context = getattr(error, "ctx", None)
    option, parameter = getattr(error, "option_name", None), getattr(error, "param", None)
    if context is None:
        seen = _lower(error.format_message()) if option is None else f"{option} needs a value"
        return f"{seen}\n  seatrial COMMAND --help lists the options"
    name = "seatrial" if context.parent is None else str(context.info_name or "seatrial")
    if option is not None and hasattr(error, "possibilities"):
        return _unknown_option(context, name, str(option))
    if option is not None:
        return f"{name}: {_lower(error.format_message())}\n  {_todo(_parameter(context, str(option)), name)}"
    if parameter is not None:
        return _value(error, parameter, name)
    if context.args is not None and (word := _unknown_command(error)) is not None:
        near = nearest_names(word, context.command.list_commands(context))
        seen = f"unknown command {word!r}" if context.parent is None else f"{name} has no command {word!r}"
        return f"{seen}\n  {did_you_mean(near) if near else _help(name)}"
    return f"{_lower(error.format_message())}\n  {_help(name)}"


def _unknown_option(context: Any, name: str, option: str) -> str:
    """The nearest option of the command; else the commands that have this one."""
    seen = f"{name} has no option {option}"
    if option == "--version":
        return f"{seen}\n  write `seatrial --version`"
    others = [name for name, about in known_table()["commands"].items() if option in about["options"]]
    known = [known for parameter in context.command.params for known in parameter.opts if known.startswith("--")]
    near = nearest_names(option, known)
    if others:
        listed = " and ".join(filter(None, (", ".join(others[:-1]), others[-1])))
        return f"{seen}\n  {listed} {'has' if len(others) == 1 else 'have'} it"
    return f"{seen}\n  {did_you_mean(near) if near and len(option) > 2 else _help(name)}"


def _value(error: Any, parameter: Any, name: str) -> str:
    """A value that is missing or not accepted."""
    label = next(iter(sorted(getattr(parameter, "opts", ()), key=len, reverse=True)), "")
    is_option = label.startswith("-")
    if hasattr(error, "param_type"):
        what = label if is_option else parameter.metavar or parameter.name
        return f"{name} needs {what}\n  {_todo(parameter, name)}"
    what = label if is_option else str(parameter.metavar or parameter.name)
    match = _CHOICES.fullmatch(error.message)
    if match is None:
        seen = error.message.replace("Input should be", "it must be").partition(", unable to parse")[0]
        return f"{what} of {name}: {_lower(seen)}\n  {_todo(parameter, name)}"
    choices = re.findall(r"'([^']*)'", match["choices"])
    near = nearest_names(match["given"], choices)
    return f"{what} cannot be {match['given']!r}\n  {did_you_mean(near) if near else f'it takes {_or(choices)}'}"


def _parameter(context: Any, option: str) -> Any:
    return next((known for known in context.command.params if option in known.opts), None)


def _todo(parameter: Any, name: str) -> str:
    """What the parameter is, from its help."""
    if parameter is None or not parameter.help:
        return _help(name)
    return f"{parameter.metavar or parameter.name}: {parameter.help}"


def _unknown_command(error: typer.TyperException) -> str | None:
    match = re.match(r"No such command '(.*?)'", error.format_message())
    return None if match is None else match[1]


def _help(name: str) -> str:
    of = "" if name == "seatrial" else f" {name}"
    return f"seatrial{of} --help lists the {'options' if of else 'commands'}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _or(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
