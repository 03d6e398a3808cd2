"""Finds words that CONTRIBUTING.md excludes, in documents, strings, docstrings and comments; part of `make lint`."""

from __future__ import annotations

import re
import sys

from draw_sentences import NATIVE, ROOT, sentences

_ROW = re.compile(r"^\| (?P<write>[^|]+) \| (?P<avoid>[^|]+) \| (?P<patterns>`.*`) \|$", re.MULTILINE)


def rules() -> list[tuple[re.Pattern[str], str]]:
    """What is excluded, and what to write instead, as the table of CONTRIBUTING.md has it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return [
        (re.compile(pattern.replace(r"\|", "|"), re.IGNORECASE), row["write"])
        for row in _ROW.finditer(text)
        for pattern in re.findall(r"`([^`]+)`", row["patterns"])
    ]


def found() -> list[str]:
    """A line for each wrong word. The native sources are left out: every change of one is compiled everywhere."""
    excluded = rules()
    return [
        f"{one.path}:{one.line}: {match[0]!r}: write {write}: {one.text[:100]}"
        for one in sorted(set(sentences(fewest_words=3)))
        if one.path.suffix not in NATIVE and one.path.name != "CONTRIBUTING.md"
        for pattern, write in excluded
        if (match := pattern.search(re.sub("`[^`]*`", "``", one.text))) is not None
    ]


if __name__ == "__main__":
    lines = found()
    print("\n".join(lines))
    sys.exit(1 if lines else 0)
