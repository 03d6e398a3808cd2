"""`seatrial --complete WORD...`: the words that may replace the last one, each with a description.

It answers from a table (table.py) that is made again when a file of the package changes, so that a key press loads
neither the benchmarks nor the parser of the command line.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from seatrial.version import __version__

TYPE_CHECKING = False  # importing typing takes longer than the rest
if TYPE_CHECKING:
    from typing import Any

    Word = tuple[str, str]  # a word and its description
    Table = dict[str, Any]

_PACKAGE = Path(__file__).parents[2]
_SOURCES = ("applications", "benchmarks", "cli", "machine", "model", "plan")
_STUDIES = (".yaml", ".yml")
_MOST_SITE_B = 1 << 20
_MOST_ENTRIES = 10_000
_SYSTEM = re.compile(r" +([A-Za-z0-9][A-Za-z0-9_.-]*) *:")


def print_answers(words: Sequence[str]) -> None:
    """A line for each word: the word, a tab, its description."""
    try:
        for word, text in answers(words or [""], known_table()):
            print(f"{word}\t{text}")
    except Exception:  # a key press must not show a traceback
        sys.exit(1)


def answers(words: Sequence[str], table: Table) -> list[Word]:
    """The words that may replace the last of `words`, in order, each once."""
    found = dict(_possible(words, table))
    return [(word, text) for word, text in found.items() if word.startswith(words[-1])]


def _possible(words: Sequence[str], table: Table) -> Iterator[Word]:
    current, before = words[-1], words[:-1]
    name = next((word for word in before if not word.startswith("-")), None)
    if name is None:
        own = table["options"] if current.startswith("-") else table["commands"]
        yield from ((word, about["help"]) for word, about in own.items())
        return
    command = table["commands"].get(name)
    if command is None or "--" in before:
        return
    inner = next((word for word in before if word in table["groups"].get(name, {})), None)
    options = (command if inner is None else table["groups"][name][inner])["options"]
    option, equals, value = current.partition("=")
    if equals and option in options:
        yield from _prefixed(f"{option}=", _values(option, [*before, value], options, table))
    elif options.get(before[-1], {}).get("takes"):
        yield from _values(before[-1], words, options, table)
    elif current.startswith("-"):
        yield from ((word, about["help"]) for word, about in options.items())
    else:
        if inner is None and name in table["groups"]:
            yield from ((word, about["help"]) for word, about in table["groups"][name].items())
        yield from _arguments(name, current, table)


def _arguments(name: str, current: str, table: Table) -> Iterator[Word]:
    benchmarks = [(benchmark, about["question"]) for benchmark, about in table["benchmarks"].items()]
    if name in ("run", "build", "list"):
        yield from benchmarks
    if name == "list":
        yield from ((benchmark.partition(".")[0], "an area") for benchmark, _ in benchmarks)
    if name in ("run", "build", "plan", "container"):
        yield from _files(current)
    if name == "import":
        yield from ((f"{kind}=", "results of another tool") for kind in table["imports"])
    if name == "init":
        yield from ((kind, "") for kind in ("study", "site", "benchmark", "image"))
    if name == "cache":
        yield from ((kind, "") for kind in table["kept"])
    if name == "completion":
        yield from ((shell, "") for shell in ("bash", "zsh", "fish"))
    if name in ("compare", "report", "export", "query", "history", "results"):
        yield from _folders(current)


def _values(option: str, words: Sequence[str], options: Table, table: Table) -> Iterator[Word]:
    """The values that an option takes."""
    if option == "--set":
        yield from _settings(words, table)
    elif option == "--from":
        yield from ((f"{kind}=", "output of another tool") for kind in table["dumps"])
    elif option == "--also-as":
        yield from ((f"{kind}=", "a recipe of the image") for kind in table["recipes"])
    elif option == "--results":
        yield from _folders(words[-1])
    elif option == "--system":
        yield from ((system, "a system of the site file") for system in _systems(words))
    else:
        yield from ((choice, "") for choice in options[option]["choices"])


def _settings(words: Sequence[str], table: Table) -> Iterator[Word]:
    """Parameters of the benchmarks on the line (else of all), then their values."""
    known = table["benchmarks"]
    named = [known[word] for word in words if word in known] or list(known.values())
    parameters: Table = {}
    for benchmark in named:
        for name, about in benchmark["parameters"].items():
            parameters.setdefault(name, about)
    parameters |= table["environment"]
    name, equals, given = words[-1].partition("=")
    if not equals:
        yield from ((f"{parameter}=", about["help"]) for parameter, about in parameters.items())
        return
    lead = given[: given.rfind(",") + 1]
    yield from _prefixed(f"{name}={lead}", ((value, "") for value in parameters.get(name, {}).get("values", ())))


def _prefixed(lead: str, words: Iterable[Word]) -> Iterator[Word]:
    return ((lead + word, text) for word, text in words)


def _entries(current: str) -> list[tuple[str, os.DirEntry[str]]]:
    """The files and folders that continue a path, each with the path as it would be written."""
    folder, slash, start = current.rpartition("/")
    found = []
    try:
        with os.scandir((folder + slash) or ".") as entries:
            for _, entry in zip(range(_MOST_ENTRIES), entries, strict=False):
                if entry.name.startswith(start) and not entry.name.startswith(".") and entry.name.isprintable():
                    found.append((folder + slash + entry.name, entry))
    except OSError:
        return []
    return sorted(found, key=lambda pair: pair[0])


def _files(current: str) -> Iterator[Word]:
    """Study files, and folders to look into if the path has begun."""
    for written, entry in _entries(current):
        if entry.name.endswith(_STUDIES):
            yield written, "a study"
        elif current and entry.is_dir():
            yield f"{written}/", ""


def _folders(current: str) -> Iterator[Word]:
    """Results folders, and other folders if the path has begun."""
    for written, entry in _entries(current):
        if entry.is_dir() and Path(entry.path, "FORMAT").is_file():
            yield written, "results"
        elif current and entry.is_dir():
            yield f"{written}/", ""


def _systems(words: Sequence[str]) -> Iterator[str]:
    """The systems of the site file, read without a YAML parser: names below `systems:` in block style."""
    named = next((after for word, after in pairwise(words) if word == "--site"), None)
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    try:
        with Path(named or Path(base, "seatrial", "site.yaml")).open("rb") as stream:
            text = stream.read(_MOST_SITE_B).decode("utf-8", "replace")
    except OSError:
        return
    depth, is_inside = 0, False
    for line in text.splitlines():
        if line[:1] not in (" ", "#", ""):
            depth, is_inside = 0, line.startswith("systems:")
        elif is_inside and (match := _SYSTEM.match(line)):
            indentation = len(line) - len(line.lstrip())
            depth = depth or indentation
            if indentation == depth:
                yield match[1]


def known_table() -> Table:
    """The table of this version, from the cache or made now."""
    key, path = _key(), _cache()
    try:
        kept = json.loads(path.read_bytes())
        if kept["key"] == key:
            return dict(kept["table"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # made below
    from seatrial.cli.completion.table import made_table
    from seatrial.store.files import write_once

    table = made_table()
    with suppress(OSError):  # without a cache it takes longer
        path.parent.mkdir(parents=True, exist_ok=True)
        write_once(path.parent, path.name, data=json.dumps({"key": key, "table": table}).encode())
    return table


def _cache() -> Path:
    """In the folder of the programs that were built (store/cache.py)."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "seatrial")
    return Path(os.environ.get("SEATRIAL_CACHE") or usual, "completion.json")


def _key() -> list[str | int]:
    """Changes with any source file: the newest time, the number of files and their size."""
    newest = number = size = 0
    folders = [str(_PACKAGE / name) for name in _SOURCES]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    found = entry.stat()
                    newest, number, size = max(newest, found.st_mtime_ns), number + 1, size + found.st_size
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return [__version__, str(_PACKAGE), newest, number, size]
