"""The commands as plain functions: they take Python values, return immutable records and raise SeatrialError.

`import seatrial` provides `discover`, `run`, `results`, `compare` and `profile`. Messages that are not errors, such as
a damaged line in a results folder, go to the logger `seatrial`.
"""
