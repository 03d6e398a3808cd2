"""The version of seatrial."""

__version__ = "0.2.0"
