"""The version of seatrial."""

__version__ = "0.1.0"
