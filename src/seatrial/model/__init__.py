"""The concepts of seatrial as frozen dataclasses and pure functions: standard library only, no I/O."""
