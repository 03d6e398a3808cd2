"""The charts of a profile."""
