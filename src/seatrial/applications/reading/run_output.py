"""What a run that seatrial started leaves. It is read as logs of other runs are; what is wrong with it is a
ProtocolError that names the application, as the user has no file to look at."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from seatrial.applications.reading.log import Log
from seatrial.errors import ParseError, ProtocolError
from seatrial.model.benchmark.program import ProgramRecord

T = TypeVar("T")
_NO_RUN = ProgramRecord()


def not_read(application: str, why: str) -> ProtocolError:
    """The error that this output is not understood."""
    return ProtocolError(f"cannot read {application}'s output: {why}")


def output_file(application: str) -> Callable[[Callable[[Log], T]], Callable[[bytes], T]]:
    """Make a function of lines one of the content of a file that an application left."""

    def of_bytes(parse: Callable[[Log], T]) -> Callable[[bytes], T]:
        @wraps(parse)
        def read(data: bytes) -> T:
            try:
                return parse(Log(application, data, is_given=False))
            except ParseError as error:
                place = "" if error.line is None else f"line {error.line}: "
                raise not_read(application, f"{place}{error.why}") from error

        return read

    return of_bytes


def run_output(
    application: str, nothing: ProgramRecord = _NO_RUN
) -> Callable[[Callable[[Log], ProgramRecord]], Callable[[bytes], ProgramRecord]]:
    """Make a function of lines one of what an application printed; `nothing` is the record if that is nothing."""

    def of_bytes(parse: Callable[[Log], ProgramRecord]) -> Callable[[bytes], ProgramRecord]:
        parsed = output_file(application)(parse)

        @wraps(parse)
        def read(data: bytes) -> ProgramRecord:
            return parsed(data) if data.strip() else nothing

        return read

    return of_bytes
