"""One thing wrong in a text, as copying and editing make it."""

from __future__ import annotations

import random


def damage(draw: random.Random, text: str) -> tuple[str, str]:
    """What was done, and the text with it."""
    lines = text.splitlines(keepends=True)
    index = draw.randrange(len(lines))
    line = lines[index].rstrip("\n")
    column = draw.randrange(len(line) + 1)
    how = draw.choice(["delete", "truncate", "twice", "swap", "cut", "indent", "paste"])
    if how == "delete":
        del lines[index]
    elif how == "truncate":
        lines[index] = line[:column] + "\n"
    elif how == "twice":
        lines.insert(index, lines[index])
    elif how == "swap" and index:
        lines[index - 1], lines[index] = lines[index], lines[index - 1]
    elif how == "cut":
        return how, text[: draw.randrange(len(text))]
    elif how == "indent":
        lines[index] = " " + lines[index]
    elif how == "paste":  # a terminal that breaks long lines
        lines[index] = f"{line[:column]}\n{line[column:]}\n"
    return how, "".join(lines)
