"""Jobs of batch systems: submitted, followed, collected, cancelled."""
