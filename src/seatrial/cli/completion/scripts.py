"""The scripts that connect the shells with `seatrial --complete`, and where each shell looks for them."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.errors import UsageError
from seatrial.store.files import write_once

_BASH = r"""# bash completion of seatrial
_seatrial() {
    local line="${COMP_LINE:0:COMP_POINT}" candidate lead=""
    local -a words
    read -ra words <<<"$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    local current="${words[-1]}"
    # bash replaces only what follows the last = or : of a word
    [[ "$current" == *[=:]* ]] && lead="${current%"${current##*[=:]}"}"
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        COMPREPLY+=("${candidate#"$lead"}")
    done < <("${words[0]/#\~/$HOME}" --complete "${words[@]:1}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *[=/] ]] && compopt -o nospace
    return 0
}
complete -o default -o bashdefault -F _seatrial seatrial
"""

_ZSH = r"""#compdef seatrial
# zsh completion of seatrial
_seatrial() {
    local line word
    local -a plain open plain_text open_text
    for line in "${(@f)$(${~words[1]} --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        word="${line%%$'\t'*}"
        [[ -z "$word" ]] && continue
        if [[ "$word" == *[=/] ]]; then
            open+=("$word") open_text+=("$word  ${line#*$'\t'}")
        else
            plain+=("$word") plain_text+=("$word  ${line#*$'\t'}")
        fi
    done
    if (( $#plain + $#open == 0 )); then
        compset -P '*='
        _files
        return
    fi
    (( $#plain )) && compadd -Q -l -d plain_text -a plain
    (( $#open )) && compadd -Q -l -S '' -d open_text -a open
}
if [[ "$funcstack[1]" == _seatrial ]]; then
    _seatrial "$@"
else
    compdef _seatrial seatrial
fi
"""

_FISH = r"""# fish completion of seatrial
function __seatrial_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    $program --complete $words (commandline -ct) 2>/dev/null
end
complete -c seatrial -a '(__seatrial_complete)'
"""


class Shell(StrEnum):
    """A shell that completes our words."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


@command("completion")
def _completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish")],
    install: Annotated[
        bool, typer.Option("--install", help="write it to where the shell looks for it, instead of stdout")
    ] = False,
) -> None:
    print(_install(shell) if install else _SCRIPTS[shell], end="")


def _install(shell: Shell) -> str:
    """Write the script to where the shell looks for it; returns what was done, and what is left to do.

    Raises UsageError if it cannot be written.
    """
    path = _place(shell)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_once(path.parent, path.name, data=_SCRIPTS[shell].encode())
    except OSError as error:
        todo = f"write it yourself: seatrial completion {shell} > FILE"
        raise UsageError(f"{path} cannot be written: {error.strerror or error}", todo) from error
    if shell is not Shell.ZSH:
        return f"{path}: written; it works in new shells\n"
    return f"{path}: written\nadd to ~/.zshrc, before compinit: fpath=({path.parent} $fpath)\n"


def _place(shell: Shell) -> Path:
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    if shell is Shell.BASH:
        own = os.environ.get("BASH_COMPLETION_USER_DIR")
        return Path(own or data / "bash-completion", "completions", "seatrial")
    if shell is Shell.ZSH:
        return data / "zsh" / "site-functions" / "_seatrial"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "fish", "completions", "seatrial.fish")
