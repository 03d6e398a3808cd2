"""What the command line does, as plain functions: values in, frozen dataclasses out, SeatrialError where it cannot.

`import seatrial` gives `discover`, `run`, `results`, `compare` and `profile`. What they find worth saying on the way
(a damaged line of a results folder, a library that is missing) goes to the logger `seatrial`.
"""
