"""Any program, measured from outside."""
