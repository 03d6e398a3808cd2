"""Histories of figures on the page."""
