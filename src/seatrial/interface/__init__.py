"""What the commands do, as plain functions: they take Python values, return frozen dataclasses and raise SeatrialError.

`import seatrial` gives `discover`, `run`, `results`, `compare` and `profile`. Messages that are not errors, such as a
damaged line of a results folder, go to the logger `seatrial`.
"""
