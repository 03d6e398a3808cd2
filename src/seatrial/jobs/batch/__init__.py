"""Batch systems: for each a small class that writes job scripts, makes argument lists, and reads what commands print.

Nothing here starts a process. `systems.SYSTEMS` has them by name; docs/batch-systems.md says how to add one.
"""
