"""Where `seatrial` starts: signals and streams are taken care of before anything else is loaded."""

from __future__ import annotations

import os
import sys

from seatrial.cli.process import ignore_signals, output_error, stopped_status, take_signals, take_streams

COMPLETE = "--complete"
"""How the scripts of `seatrial completion` ask for the words that may follow."""


def main() -> None:
    """Run the command of this process."""
    take_signals()
    take_streams()
    _leave_working_folder()
    if sys.argv[1:2] == [COMPLETE]:
        from seatrial.cli.completion.answer import print_answers

        print_answers(sys.argv[2:])
        return
    try:
        from seatrial.cli.commands import HELP, overview

        if len(sys.argv) == 2 and sys.argv[1] in HELP:
            print(overview())
            if output_error() is None:
                return
        from seatrial.cli.ending import run_main
    except KeyboardInterrupt:
        raise SystemExit(stopped_status() or 1) from None
    try:
        run_main()
    finally:
        ignore_signals()


def _leave_working_folder() -> None:
    """Load no modules from the working folder, which an empty entry of PYTHONPATH adds: whoever writes there could
    replace any of them."""
    try:
        here = os.getcwd()  # noqa: PTH109 - pathlib is not loaded yet
    except OSError:
        return
    if here not in os.environ.get("PYTHONPATH", "").split(":") and not __file__.startswith(f"{here}/seatrial/"):
        sys.path[:] = [entry for entry in sys.path if entry not in ("", here)]
