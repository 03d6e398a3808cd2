"""The concepts of seatrial as immutable records and pure functions: the standard library and msgspec only, no I/O."""
