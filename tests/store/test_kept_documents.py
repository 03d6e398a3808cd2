"""Documents that stay compressed: the same values, however many there are and however often one is replaced."""

from __future__ import annotations

import pytest

from seatrial.store.record_lines import KeptDocuments


def test_documents_come_back_as_they_were_kept() -> None:
    documents = {f"node{n}": {"name": f"n{n}", "memory": {"peak_Bps": None, "sizes": [n, 1e300]}} for n in range(100)}
    kept = KeptDocuments()
    for key, document in documents.items():
        kept.keep(key, document)
    assert dict(kept) == documents and len(kept) == 100 and list(kept) == list(documents)
    assert "node7" in kept and "node100" not in kept
    with pytest.raises(KeyError):
        kept["node100"]


def test_a_replaced_document_is_not_seen_again() -> None:
    kept = KeptDocuments()
    kept.keep("a", {"modules": 0})
    assert kept["a"] == {"modules": 0}
    kept.keep("a", {"modules": 8})
    assert kept["a"] == {"modules": 8} and len(kept) == 1
