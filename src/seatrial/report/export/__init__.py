"""Exports of results: one module for each format."""
