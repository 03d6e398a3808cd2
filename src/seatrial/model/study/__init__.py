"""Studies, comparisons, answers and screens."""
