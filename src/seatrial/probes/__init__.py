"""What is observed beside a run, so that a reader can tell the machine's noise from its speed."""
