"""How a command ends: each error, a signal and a full output stream in one clear message, and the exit status."""

from __future__ import annotations

import gc
import sys

import typer

from seatrial.cli.command import app
from seatrial.cli.process import all_done, output_error, stopped_status, take_signals, take_streams
from seatrial.errors import ResourceError, SeatrialError, StoreError

_LEAST_ADDRESSES_B = 128 << 20
"""With fewer, some module or other of Python fails to load, each with another error."""


def main() -> None:
    """The entry point, as `entry.main`, for who has loaded this module."""
    take_signals()
    take_streams()
    run_main()


_RESUMED = (["run"], ["screen"])
"""The commands that record repeats."""


def run_main() -> None:
    """Run the command and exit. A SeatrialError, a signal and a full output stream each end in one clear message."""
    # Records are many small objects that live as long as the command; the collector would traverse them repeatedly.
    gc.set_threshold(200_000, 50, 100)
    try:
        status = _status()
        all_done()
    except SystemExit:  # a signal while the last message was printed
        status = stopped_status() or 1
    sys.exit(status)


def _status() -> int:
    """Run the command and report what went wrong; the exit status."""
    from seatrial.cli.output import message, show_messages

    show_messages()
    status = _status_of_command()
    stopped = stopped_status()
    if stopped is not None:
        output_error()
        kept = "; finished repeats are kept, and the same command resumes" if sys.argv[1:2] in _RESUMED else ""
        message(f"seatrial: interrupted{kept}")
        return stopped
    error = output_error()
    if error is not None:
        todo = "redirect it to another file and repeat the command; finished repeats are kept and not run again"
        message(f"seatrial: standard output cannot be written: {error.strerror or error}\n  {todo}")
        return status or StoreError.exit_code
    return status


def _status_of_command() -> int:
    from seatrial.cli.output import message

    try:
        ResourceError.require_memory("seatrial", _LEAST_ADDRESSES_B)
        return int(app(standalone_mode=False) or 0)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except SeatrialError as error:
        message(f"seatrial: {error}")
        return error.exit_code
    except BrokenPipeError:  # a stream that is not ours
        return StoreError.exit_code
    except OSError as error:
        if (limited := ResourceError.of(error)) is not None:
            message(f"seatrial: {limited}")
            return limited.exit_code
        where = f" ({error.filename})" if error.filename else ""
        message(f"seatrial: {error.strerror or error}{where}; every finished repeat is kept")
        return StoreError.exit_code
    except typer.TyperException as error:
        from seatrial.cli.usage import usage_text

        message(f"seatrial: {usage_text(error)}")
        return error.exit_code
    except BaseException as error:
        stopped = stopped_status()
        if stopped is not None:  # a library has made another exception of the signal
            return stopped
        limited = ResourceError.of(error)
        if limited is None:
            raise
        message(f"seatrial: {limited}")
        return limited.exit_code
