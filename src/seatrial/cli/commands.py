"""The commands of `seatrial`: their names, groups and purposes; and `seatrial --help`, which needs nothing else.

Loading Typer takes longer than all else that the overview does, so this module loads nothing of it.
"""

from __future__ import annotations

ABOUT = "Sea trials for HPC machines: measure, compare with limits, explain."
SHORTLY = "sea trials for HPC machines"
HELP = ("-h", "--help")
GROUPS = {
    "Machine": {
        "discover": "Describe a machine (devices, memory, limits) or fabric.",
        "check": "Diagnose a machine (problems, remedies) or a fabric.",
        "cluster": "Nodes, shaped links and Slurm on this machine.",
        "power": "List what measures power and energy here.",
        "vm": "A virtual machine with the topology that you choose.",
    },
    "Measure": {
        "list": "List what can be measured here, and what the rest needs.",
        "run": "Measure benchmarks, a study, or the standard trial.",
        "plan": "Show what would run, for how long, and in which jobs.",
        "build": "Build measuring programs ahead of time.",
    },
    "Results": {
        "import": "Import results of other tools, to compare them.",
        "compare": "Test whether results differ, and list what else changed.",
        "report": "Write a self-contained HTML page for results folders.",
        "export": "Write the figures of a results folder for other tools.",
        "query": "Ask the records of a results folder in SQL (DuckDB).",
        "history": "Show a figure over time, and when it changed.",
        "results": "List, label, merge and clean up results folders.",
    },
    "Explain": {
        "screen": "Find the odd node, device, link or switch of a cluster.",
        "profile": "Show where an MPI program spends its time.",
    },
    "Set up": {
        "init": "Write a commented study, site, benchmark or image file.",
        "completion": "Complete commands, benchmarks and parameters in a shell.",
        "container": "Make a container image from a definition file.",
        "settings": "Change clocks and limits for a command; put them back.",
        "cache": "Show or remove what is kept in the home folder.",
    },
}
"""Group -> command -> purpose, in the order of the overview."""
GROUP_OF = {name: group for group, commands in GROUPS.items() for name in commands}
PURPOSES = {name: purpose for commands in GROUPS.values() for name, purpose in commands.items()}

_WIDEST, _NARROWEST = 80, 50
_LEAST_PURPOSE = 20


def overview() -> str:
    """`seatrial --help`: the commands by group, on one screen of 80 columns and 24 lines."""
    of_groups, of_names = max(map(len, GROUPS)), max(map(len, PURPOSES))
    import shutil  # it takes long to load

    columns = max(min(shutil.get_terminal_size().columns, _WIDEST), _NARROWEST)
    room = max(_LEAST_PURPOSE, columns - of_groups - of_names - 6)
    lines = _wrapped(f"Usage: seatrial [--version] [-h] COMMAND ... ({SHORTLY})", columns, "")
    for group, commands in GROUPS.items():
        for position, (name, purpose) in enumerate(commands.items()):
            lead = "" if position else group
            lines.append(f"  {lead:{of_groups}}  {name:{of_names}}  {_shortened(purpose, room)}")
    return "\n".join(lines)


def _wrapped(text: str, columns: int, indent: str) -> list[str]:
    lines = [indent]
    for word in text.split():
        if len(lines[-1]) + len(word) > columns:
            lines.append(indent)
        lines[-1] += f"{'' if lines[-1] == indent else ' '}{word}"
    return lines


def _shortened(text: str, columns: int) -> str:
    """The text, or as many of its words as fit with three points after them."""
    if len(text) <= columns:
        return text
    words = text.split()
    while words and len(" ".join(words)) > columns - 3:
        words.pop()
    return " ".join(words) + "..."
