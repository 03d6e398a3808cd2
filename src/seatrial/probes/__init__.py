"""What is recorded alongside a run, to separate the machine's noise from its speed."""
