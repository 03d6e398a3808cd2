"""Readers of other tools' result files: pure functions from bytes to an `ImportedFile`, one module per format."""
