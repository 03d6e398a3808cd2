"""Profiles and traces as text, documents, pages and files of other tools."""
