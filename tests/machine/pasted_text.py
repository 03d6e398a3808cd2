"""What terminals and tools do to text on its way into a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def folded(text: str, width: int) -> str:
    """As fold(1) breaks lines: every character stays, a tab goes to the next multiple of 8."""
    lines = []
    for line in text.split("\n"):
        piece, column = "", 0
        for sign in line:
            end = (column // 8 + 1) * 8 if sign == "\t" else column + 1
            if end > width and piece:
                lines.append(piece)
                piece, end = "", 8 if sign == "\t" else 1
            piece, column = piece + sign, end
        lines.append(piece)
    return "\n".join(lines)


def on_screen(text: str, width: int) -> str:
    """As a terminal of that width shows it, copied without the spaces at the end of its lines."""
    shown = []
    for line in text.expandtabs().split("\n"):
        shown += [line[at : at + width].rstrip() for at in range(0, max(1, len(line)), width)]
    return "\n".join(shown)


BREAKS: Mapping[str, Callable[[str, int], str]] = {"fold": folded, "screen": on_screen}

LABELS: Mapping[str, Callable[[int], str]] = {
    "pdsh": lambda _: "node01: ",
    "quoted pdsh": lambda _: "> node01: ",
    "srun -l": lambda _: " 0: ",
    "mpirun": lambda _: "[1,0]<stdout>:",
    "rank": lambda _: "[0] ",
    "time": lambda n: f"2024-05-01T10:00:{n % 60:02d}.{n:09d}Z ",
    "time in brackets": lambda n: f"[2024-05-01 10:00:{n % 60:02d}] ",
    "level and time": lambda n: f"INFO 2024-05-01T10:00:{n % 60:02d}+02:00 ",
}


def labelled(text: str, label: Callable[[int], str]) -> str:
    """A label before every line."""
    return "".join(f"{label(number)}{line}\n" for number, line in enumerate(text.splitlines()))
