"""One profile from the tables of all ranks."""
