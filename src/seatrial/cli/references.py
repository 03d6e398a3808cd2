"""`seatrial list --references`: the published values, and those in the site's own file."""

from __future__ import annotations

from seatrial.references.loader import all_references, own_file
from seatrial.report.documents.list import ListJson
from seatrial.report.documents.references import references_document
from seatrial.report.text.references import references_text


def print_references() -> None:
    """Print every reference with its source and the references that contradict it."""
    print(references_text(all_references()))
    own = own_file()
    print(f"\nown file: {own or 'none (docs/references.md states where to create one)'}")


def with_references(document: ListJson) -> ListJson:
    """The `seatrial.list/1` document with the key `references`."""
    return {**document, "references": references_document(all_references())}
