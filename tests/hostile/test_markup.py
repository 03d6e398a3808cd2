"""A results folder in which every string that its author chooses carries markup and control characters: no page, JSON,
text or drawing passes it on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from cli.in_process import seatrial_here
from hostile.folder_damage import MARKUP, make, parsed_lines, record_line
from profiler.made_up_tables import Call, Table, Thread
from report.headless_browser import find_browser, run

from seatrial.model.results.record import content_key

_CLOSED = frozenset(
    {*("kind", "unit", "basis", "class", "verdict", "schema", "identity", "outcome", "stage", "series", "experiment")}
    | {
        *(
            "v",
            "machine",
            "environment",
            "benchmark",
            "along",
            "cores",
            "precision",
            "baseline",
            "figure",
            "over",
            "figures",
        )
    }
)
"""Keys whose values are names of ours, or keys of documents: with other values the document is refused."""
_ESCAPES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


_NAMED_BY_ITS_AUTHOR = ("facts", "notes", "libs", "variables")


def marked(value: Any, key: str = "") -> Any:
    """The value with markup in every string, and in the names that its author chooses."""
    if isinstance(value, str):
        return value if key in _CLOSED else value + MARKUP
    if isinstance(value, dict):
        mark = MARKUP if key in _NAMED_BY_ITS_AUTHOR else ""
        return {name + mark: marked(item, name) for name, item in value.items()}
    return [marked(item, key) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder, with a profile in it."""
    path = make(tmp_path_factory.mktemp("marked") / "results", repeats=12)
    make(path.parent / "other")
    keys: dict[str, str] = {}
    for file in (path / "experiments").iterdir():
        document = marked(json.loads(file.read_bytes()))
        keys[file.stem] = content_key(document)
        file.unlink()
        (path / "experiments" / f"{keys[file.stem]}.json").write_text(json.dumps(document))
    for kind in ("machines", "environments", "studies"):
        for file in (path / kind).iterdir():
            text = json.dumps(marked(json.loads(file.read_bytes())))
            for old, new in keys.items():
                text = text.replace(old, new)
            file.write_text(text)
    for file in (path / "records").iterdir():
        lines = parsed_lines(file)
        for line in lines:
            line["experiment"] = keys[line["experiment"]]
        file.write_bytes(b"".join(record_line(marked(line)) for line in lines))
    (path / "records" / f"bad{'.' * 3}<img src=x>\x1b[31m.jsonl").write_bytes(b"no record\n")
    tables = path / "profiles" / "one" / "tables"
    tables.mkdir(parents=True)
    calls = [Call("MPI_Send", 5, 1000, 0.1), Call("MPI_Allreduce", 4, 8, 0.5)]
    mark = MARKUP.replace("\x1b", "")[:40]
    table = Table(threads=(Thread(calls),), host=f"n{mark}", program=f"/opt/{MARKUP}", library=f"MPI {MARKUP}")
    (tables / "a.mpi").write_bytes(table.data())
    return path


COMMANDS: dict[str, tuple[str, ...]] = {
    "report": ("report", "DIR", "-o", "OUT.html"),
    "compare page": ("compare", "DIR", "--along", "cores", "-o", "OUT.html"),
    "compare repeats": ("compare", "DIR", "--along", "repeat", "-o", "OUT.html"),
    "compare two": ("compare", "DIR/../other", "DIR", "-o", "OUT.html"),
    "compare json": ("compare", "DIR", "--along", "cores", "--format", "json"),
    "discover text": ("discover", "--results", "DIR"),
    "discover json": ("discover", "--results", "DIR", "--format", "json"),
    "discover svg": ("discover", "--results", "DIR", "--format", "svg", "-o", "OUT.svg"),
    "check text": ("check", "--results", "DIR"),
    "check json": ("check", "--results", "DIR", "--format", "json"),
    "profile": ("profile", "--tables", "DIR/profiles/one/tables", "-o", "OUT.html"),
    "profile json": ("profile", "--tables", "DIR/profiles/one/tables", "--format", "json"),
}


@pytest.fixture(scope="module")
def ran(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, str]]:
    """Name of a command -> how it ended, and the file that it wrote."""
    kept: dict[str, tuple[Any, str]] = {}

    def get(name: str) -> tuple[Any, str]:
        if name not in kept:
            where = tmp_path_factory.mktemp("out")
            words = [word.replace("DIR", str(folder)).replace("OUT", str(where / "out")) for word in COMMANDS[name]]
            done = seatrial_here(*words, cwd=where)
            files = list(where.glob("out.*"))
            kept[name] = done, files[0].read_text(encoding="utf-8") if files else ""
        return kept[name]

    return get


@pytest.mark.parametrize("name", COMMANDS)
def test_terminal_output_has_no_escapes(name: str, ran: Callable[[str], tuple[Any, str]]) -> None:
    done, _ = ran(name)
    assert done.returncode in (0, 3) and "Traceback" not in done.stderr, done.stderr[-2000:]
    assert not (found := _ESCAPES.findall(done.stdout + done.stderr)), (found, done.stdout, done.stderr)
    if name.endswith("json"):
        assert "alert(1)" in done.stdout or name == "check json"  # which has no finding
        assert json.loads(done.stdout)


class _Page(HTMLParser):
    """The elements of a page, and what could run."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "img", "iframe", "object", "embed", "link", "base", "form", "input"):
            self.wrong.append(tag)
        for name, value in attrs:
            if name.startswith("on") or (name in ("href", "src", "xlink:href") and ":" in (value or "").split("/")[0]):
                self.wrong.append(f"{tag} {name}={value}")
            self.text.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.mark.parametrize("name", [name for name, words in COMMANDS.items() if "OUT.html" in words])
def test_a_page_has_no_markup_of_the_folder(name: str, ran: Callable[[str], tuple[Any, str]]) -> None:
    page = _Page(ran(name)[1])
    shown = "".join(page.text)
    assert page.wrong == [] and not _ESCAPES.findall(shown)
    if name != "compare repeats":  # its page names no string of the folder
        assert "onerror=alert(1)" in shown and "${7*7}{{7*7}}" in shown, "the markup is on the page as text"


def test_a_drawing_has_no_markup_of_the_folder(ran: Callable[[str], tuple[Any, str]]) -> None:
    text = ran("discover svg")[1]
    tree = ElementTree.fromstring(text)
    tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert not tags & {"script", "img", "image", "foreignObject", "a"} and not _ESCAPES.findall(text)
    assert not [name for element in tree.iter() for name in element.attrib if name.startswith("on")]


@pytest.mark.real
@pytest.mark.parametrize("name", ["report", "compare page", "profile"])
def test_a_browser_runs_nothing_of_the_folder(name: str, ran: Callable[[str], tuple[Any, str]], tmp_path: Path) -> None:
    browser = find_browser()
    page = tmp_path / "page.html"
    harness = "<script>document.title = `ours ${document.scripts.length} ${document.images.length}`</script></body>"
    page.write_text(ran(name)[1].replace("</body>", harness), encoding="utf-8")
    done = run(browser, tmp_path, "--dump-dom", page.as_uri())
    assert "<title>ours 1 0</title>" in done.stdout, done.stderr[-2000:]
    assert "CONSOLE" not in "".join(line for line in done.stderr.splitlines() if "chrome://" not in line)
