"""Commands: functions whose parameters are the options, each in a module that is loaded when its command is chosen."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import cache
from importlib import import_module
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer
from msgspec import structs
from typer.core import TyperGroup

from seatrial.cli.commands import ABOUT, GROUP_OF, HELP, PURPOSES, overview
from seatrial.model.frozen import Frozen
from seatrial.version import __version__

F = TypeVar("F", bound=Callable[..., int | None])

_MODULES = {"import": "import_", "completion": "completion.scripts"}
"""Those that are not named as their command."""
_found: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {}
"""Words of a command, such as "results list" -> what it calls, and the settings of its parser."""


class Options(Frozen):
    """Options that belong together: in place of a parameter of such a class, a command has the options that its fields
    are, and gets one value.

    `Annotated[CLASS, {FIELD: WORDS}]` fills the {} in the help of a field; a field with {} and no words is left out.
    """


def command(words: str, **settings: Any) -> Callable[[F], F]:
    """The decorated function is the command of these words; it returns the exit status (None: 0).

    The help of a command of the overview is its purpose and then the docstring, that of a command in a group the
    docstring.
    """

    def add(function: F) -> F:
        about = inspect.cleandoc(function.__doc__ or "")
        if words in PURPOSES:
            about = f"{PURPOSES[words]}\n\n{about}".rstrip()
        _found[words] = _flat(function), {"help": about, **settings}
        return function

    return add


@cache
def command_named(name: str) -> Any:
    """A command, or group of commands, of the overview, as its parser."""
    import_module(f"seatrial.cli.{_MODULES.get(name, name)}")
    app = typer.Typer(name=name, help=PURPOSES[name], add_completion=False, no_args_is_help=True, rich_markup_mode=None)
    if name in _found:
        function, settings = _found[name]
        app.command(name, rich_help_panel=GROUP_OF[name], **settings)(function)
        return typer.main.get_command(app)
    app.callback()(lambda: None)
    for words, (function, settings) in _found.items():
        if words.startswith(f"{name} "):
            app.command(words.removeprefix(f"{name} "), **settings)(function)
    return typer.main.get_command(app)


def commands_of(group: Any, context: Any) -> Iterator[tuple[str, Any]]:
    """The commands of a group by name, in its order."""
    return ((name, group.get_command(context, name)) for name in group.list_commands(context))


def _flat(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with an option for each field of its `Options`."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, tuple[type[Options], list[str]]] = {}
    flat: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if isinstance(kind, type) and issubclass(kind, Options):
            own = list(_fields(kind, *notes or [{}]))
            groups[name] = kind, [one.name for one in own]
            flat += own
        else:
            flat.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))

    def called(**given: Any) -> Any:
        values = {name: kind(**{one: given.pop(one) for one in own}) for name, (kind, own) in groups.items()}
        return function(**given, **values)

    vars(called)["__signature__"] = inspect.Signature(flat)
    return called


def _fields(kind: type[Options], words: Mapping[str, str]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    for field in structs.fields(kind):
        value, about = get_args(hints[field.name])
        if "{}" in about.help:
            if field.name not in words:
                continue
            about = copy(about)
            about.help = about.help.format(words[field.name])
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=Annotated[value, about]
        )


class Commands(TyperGroup):
    """The commands of seatrial, in the order of the overview."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The overview."""
        formatter.write(overview() + "\n")

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(PURPOSES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The one of that name, if there is one."""
        return command_named(cmd_name) if cmd_name in PURPOSES else None


app = typer.Typer(
    name="seatrial",
    help=ABOUT,
    add_completion=False,
    rich_markup_mode=None,
    cls=Commands,
    context_settings={"help_option_names": list(HELP)},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"seatrial {__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version and exit")
    ] = False,
) -> None:
    pass
