"""seatrial: sea trials for HPC machines."""

__version__ = "0.1.0"
