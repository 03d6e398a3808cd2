"""Exports of results: `tables.py` has the formats with an entry for each figure."""
