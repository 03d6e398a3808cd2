"""The index: tables derived from the records of a results folder, for queries over many of them (docs/adr/0028).

It is in the user's cache, never in the folder, may be deleted at any time, and is made again where it does not fit the
records.
"""
