"""The words of seatrial as plain frozen dataclasses and pure functions: standard library only, no input or output."""
