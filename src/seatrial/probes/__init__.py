"""System state observed around a repeat, to separate noise on the machine from its speed."""
