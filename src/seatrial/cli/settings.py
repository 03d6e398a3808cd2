"""`seatrial settings`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.environments.settings.change import changed_here, replay
from seatrial.errors import UsageError
from seatrial.interface.settings import run_with_settings
from seatrial.model.environment.machine_settings import MACHINE_SETTINGS, setting_of
from seatrial.model.spelling import count
from seatrial.report.text.terminal import clean


@command("settings", context_settings={"allow_interspersed_args": False})
def _settings(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND", help="run this with the settings of --set")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help=f"a setting for the command: {', '.join(MACHINE_SETTINGS)}"),
    ] = None,
    restore: Annotated[
        bool, typer.Option("--restore", help="put back what a killed seatrial has left changed on this host")
    ] = False,
    shared: Annotated[bool, typer.Option("--shared", help="also on a node on which other users run programs")] = False,
    root: Annotated[Path, typer.Option("--root", metavar="DIR", help="a folder in place of /", hidden=True)] = Path(
        "/"
    ),
) -> int:
    """Without options: what is changed on this host now. With a command: its exit status."""
    if words:
        wanted = dict(map(_pair, given or ()))
        if not wanted:
            raise UsageError("a command, but no setting was given", "for example: --set governor=performance")
        values = {name: setting_of(name, text) for name, text in wanted.items()}
        return run_with_settings(words, values, root=root, shared=shared).exit_status
    if given:
        raise UsageError(
            "--set is for the time of a command", "for example: seatrial settings --set turbo=false -- ./app"
        )
    if restore:
        return _restore(root)
    left = changed_here()
    for one in left:
        who = "is in use" if one.is_guarded else "is left by a seatrial that was killed (--restore puts it back)"
        for entry in one.entries:
            print(clean(f"{entry.path}: {entry.new} (was {entry.old}), {who}"))
    if not left:
        print("Nothing is changed on this host.")
    return 0


def _restore(root: Path) -> int:
    undone = [one for _, one in replay(root)]
    for one in undone:
        for path in one.restored:
            print(clean(f"{path}: put back"))
        for path, why in one.kept.items():
            print(clean(f"{path}: {why}"))
    print(f"{count(sum(len(one.restored) for one in undone), 'setting')} put back.")
    return 3 if any(one.kept for one in undone) else 0


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not value:
        raise UsageError(f"--set {text!r} is not of the form NAME=VALUE", "for example: --set governor=performance")
    return name.removeprefix("environment."), value
