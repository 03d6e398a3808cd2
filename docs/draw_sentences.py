"""Draws sentences by chance, to be read by somebody who does not know the code: `python docs/draw_sentences.py --seed
1`.

From what users read: README, docs, and the texts in the source (help, errors, findings, pages). `--code` adds what
contributors read: comments, docstrings, docs/adr.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
NATIVE = (".cpp", ".hpp", ".c", ".h", ".cl")
_NATIVE_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`(])|\n\s*\n|\n\s*(?=[-*|#])| \| ")
_NO_PROSE = re.compile(r"\(\?|[;=]\s*$|\w\(\w+\)|==|::|->|[\\^]|=\{\}|\bSELECT\b|^\W*\{\}: \{\}")
"""Code and patterns among the texts."""
_WORD = re.compile(r"[A-Za-z]{2,}")


class Sentence(NamedTuple):
    """A sentence and where it is. `is_code`: only contributors read it."""

    path: Path
    line: int
    text: str
    is_code: bool


def sentences(fewest_words: int = 5) -> Iterator[Sentence]:
    """All with so many words, those of generated files and of results left out."""
    yield from (one for one in _all() if len(_WORD.findall(one.text)) >= fewest_words)


def _all() -> Iterator[Sentence]:
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")]:
        if "results" not in path.parts:
            is_code = "adr" in path.parts or path.name == "CONTRIBUTING.md"
            yield from _of_text(path, 1, _prose(path.read_text(encoding="utf-8")), is_code=is_code)
    for path in (ROOT / "src").rglob("*.*"):
        if path.suffix == ".py":
            yield from _of_python(path)
        elif path.suffix in NATIVE:
            yield from _of_native(path)
        elif path.suffix in (".html", ".yaml"):
            text = re.sub(r"\{[{%#].*?[}%#]\}|<[^>]*>", " ", path.read_text(encoding="utf-8"))
            yield from _of_text(path, 1, text, is_code=False)


def _prose(text: str) -> str:
    """Markdown without examples and addresses; lines keep their numbers."""
    text = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)
    return _LINK.sub(lambda found: found[1] + "\n" * found[0][len(found[1]) :].count("\n"), text)


def _of_python(path: Path) -> Iterator[Sentence]:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    is_help = "@command(" in source
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield from _of_text(path, node.lineno, "".join(parts), is_code=False)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield from _of_text(path, node.lineno, node.value, is_code=id(node) in texts and not is_help)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from _of_text(path, token.start[0], token.string.lstrip("# "), is_code=True)


def _of_native(path: Path) -> Iterator[Sentence]:
    source = path.read_text(encoding="utf-8")
    for found in _NATIVE_COMMENT.finditer(source):
        yield from _of_text(path, source[: found.start()].count("\n") + 1, found[0].strip("/* "), is_code=True)
    for found in re.finditer(r'"((?:[^"\\\n]|\\.)*)"', _NATIVE_COMMENT.sub("", source)):
        yield from _of_text(path, 0, found[1], is_code=False)


def _of_text(path: Path, line: int, text: str, *, is_code: bool) -> Iterator[Sentence]:
    begin = 0
    for end in [*(found.span() for found in _END.finditer(text)), (len(text), len(text))]:
        part = text[begin : end[0]]
        words = " ".join(part.split())
        if words:
            first = line + text[:begin].count("\n") + part[: len(part) - len(part.lstrip())].count("\n")
            yield Sentence(path.relative_to(ROOT), first, words, is_code)
        begin = end[1]


def main() -> None:
    """Print them, each with its file and line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--code", action="store_true", help="also what only contributors read")
    asked = parser.parse_args()
    found = sorted({one for one in sentences() if (asked.code or not one.is_code) and not _NO_PROSE.search(one.text)})
    for one in random.Random(asked.seed).sample(found, asked.count):  # noqa: S311 - not for security
        print(f"{one.text}\n    {one.path}:{one.line}")


if __name__ == "__main__":
    main()
