"""Readers: the text of a tool -> `FabricDump`. Pure; damaged text is a `ParseError`."""
