"""Profiles and traces as text, JSON, pages and files for other tools."""
