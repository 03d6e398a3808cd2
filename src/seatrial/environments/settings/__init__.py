"""Settings of the machine that an experiment asks for (clocks, governors, limits), and that are always put back."""
