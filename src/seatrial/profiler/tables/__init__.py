"""What each process leaves: its table of calls, its input and output."""
