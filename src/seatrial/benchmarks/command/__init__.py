"""Programs that are not ours, measured from outside."""
