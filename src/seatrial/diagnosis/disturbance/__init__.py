"""What disturbed repeats, or made all of them slow: from the values that repeats recorded, to causes, to sentences."""
