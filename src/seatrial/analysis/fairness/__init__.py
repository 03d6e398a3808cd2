"""What is not the same on both sides of a comparison: one module for each place where that can show."""
