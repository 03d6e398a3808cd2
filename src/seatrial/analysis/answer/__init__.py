"""The answer of a study, computed from its results."""
