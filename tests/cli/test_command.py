"""How a function becomes a command: its options, those that belong together, and its help."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated, Any

import pytest
import typer

from seatrial.cli import command as commands
from seatrial.cli.command import Options, command, command_named, commands_of
from seatrial.cli.commands import PURPOSES
from seatrial.errors import UsageError


class Speed(Options):
    """Two options, one of which only some commands have."""

    fast: Annotated[bool, typer.Option("--fast", help="be fast")] = False
    slow: Annotated[int, typer.Option("--slow", help="be slow: {}")] = 3


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}
    monkeypatch.setattr(commands, "_found", found)
    return found


def parsed(function: Any, *words: str) -> Any:
    app = typer.Typer(add_completion=False)
    app.command()(function)
    return app(list(words), standalone_mode=False)


def test_options_that_belong_together_are_one_value_in_their_place(registered: dict[str, Any]) -> None:
    @command("made up")
    def made_up(
        name: str, *, speed: Annotated[Speed, {"slow": "a number"}], last: Annotated[int, typer.Option("--last")] = 0
    ) -> Any:
        return name, speed, last

    function, settings = registered["made up"]
    assert parsed(function, "x", "--fast", "--slow", "7", "--last", "1") == ("x", Speed(True, 7), 1)
    assert parsed(function, "x") == ("x", Speed(), 0)
    app = typer.Typer(add_completion=False)
    app.command()(function)
    options = typer.main.get_command(app).params
    assert [one.name for one in options] == ["name", "fast", "slow", "last"]
    assert options[2].help == "be slow: a number" and settings == {"help": ""}


def test_an_option_without_its_words_is_left_out(registered: dict[str, Any]) -> None:
    @command("made up")
    def made_up(*, speed: Speed) -> Any:
        """What it does."""
        return speed

    function, settings = registered["made up"]
    assert parsed(function, "--fast") == Speed(fast=True) and settings == {"help": "What it does."}
    with pytest.raises(typer.TyperException):
        parsed(function, "--slow", "4")


def test_every_command_of_the_overview_is_there_and_every_option_has_its_help() -> None:
    context = typer.Context(command_named("run"))
    for name, purpose in PURPOSES.items():
        found = command_named(name)
        assert found.name == name and found.help.startswith(purpose)
        below = [one for _, one in commands_of(found, context)] if hasattr(found, "commands") else [found]
        assert below
        for option in (option for one in below for option in one.params):
            assert option.help and "{" not in option.help, (name, option.name)


def test_less_and_more_at_once_are_refused_before_anything_else() -> None:
    with pytest.raises(UsageError, match="--quiet and --verbose were both given"):
        command_named("report").main(["nowhere", "-q", "-v"], standalone_mode=False)


def test_a_command_loads_no_other_command() -> None:
    code = "import sys, seatrial.cli.command as m; m.command_named('history'); print(*(n for n in sys.modules if n))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = {name.removeprefix("seatrial.cli.") for name in done.stdout.split() if name.startswith("seatrial.cli.")}
    assert "history" in own and not own & (set(PURPOSES) - {"history"})


def test_the_help_of_run_loads_nothing_that_measures() -> None:
    code = "import sys, seatrial.cli.command as m; m.command_named('run'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in done.stdout.split() if name.startswith("seatrial.")}
    assert "cli" in rooms and not rooms & {"analysis", "benchmarks", "engine", "interface", "jobs", "plan"}


def test_signals_are_taken_before_anything_that_takes_long_is_loaded() -> None:
    """A signal before that ends in a traceback of an import."""
    code = "import sys; before = set(sys.modules); import seatrial.cli.entry; print(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:] += {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name for name in done.stdout.split() if name.startswith("seatrial.") or name in ("shutil", "re")}
    assert loaded <= {"seatrial.cli", "seatrial.cli.entry", "seatrial.cli.process", "seatrial.version"}, loaded


def test_what_reads_profiles_is_loaded_after_the_program() -> None:
    """It takes longer to load than the program takes to start."""
    code = "import sys, seatrial.cli.command as m; m.command_named('profile'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    rooms = {name.split(".")[1] for name in loaded if name.startswith("seatrial.")}
    assert "profiler" in rooms and not rooms & {"analysis", "benchmarks", "diagnosis", "references"}
    assert not loaded & {"numpy", "duckdb", "elftools", "urllib.request", "seatrial.report.profile"}
    assert "seatrial.profiler.capture.wrappers" not in loaded
