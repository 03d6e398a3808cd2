"""What a machine, a fabric or a guest is."""
