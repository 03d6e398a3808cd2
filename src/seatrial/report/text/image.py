"""An image that was made, as text."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.spelling import count, show
from seatrial.report.documents.image import ImageJson
from seatrial.report.text.detail import Detail
from seatrial.report.text.terminal import Style, clean


def image_text(document: ImageJson, style: Style, detail: Detail) -> str:
    """Its path in brief; usually what it is, too; in full also every package."""
    if detail is Detail.BRIEF:
        return clean(document["path"])
    return "\n".join(_parts(document, style, detail))


def _parts(document: ImageJson, style: Style, detail: Detail) -> Iterator[str]:
    size = show(document["size_B"], "B", binary=True)
    yield style.paint(clean(document["path"]), "heading")
    rows = [
        ("format", f"{document['format']}, {size}, {count(document['files'], 'file')}"),
        ("base", f"{clean(document['base'])}, {document['architecture']}"),
        ("digest", document["digest"]),
        ("content", document["content"]),
        ("packages", _packages(document)),
    ]
    rows += [("variable", clean(f"{name}={value}")) for name, value in document["variables"].items()]
    rows += [
        ("program", clean(f"{one['path']} ({one['benchmark']}, {one['compiler']}, {one['march']})"))
        for one in document["programs"]
    ]
    if document["dropped_setuid"]:
        rows.append(("dropped", f"setuid and setgid bits of {count(document['dropped_setuid'], 'file')} of the base"))
    yield style.table(rows)
    if detail is Detail.FULL and document["packages"]:
        packages = [
            (clean(one["name"]), clean(one["version"]), clean(one["architecture"])) for one in document["packages"]
        ]
        yield style.table(packages)


def _packages(document: ImageJson) -> str:
    packages = document["packages"]
    return "unknown: a package manager other than dpkg" if packages is None else count(len(packages), "package")
