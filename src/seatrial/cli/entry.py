"""Where `seatrial` starts: signals and streams are taken care of before anything else is loaded."""

from __future__ import annotations

import sys

from seatrial.cli.commands import HELP, overview
from seatrial.cli.process import ignore_signals, output_error, stopped_status, take_signals, take_streams

COMPLETE = "--complete"
"""How the scripts of `seatrial completion` ask for the words that may follow."""


def main() -> None:
    """Run the command of this process."""
    take_signals()
    take_streams()
    if sys.argv[1:2] == [COMPLETE]:
        from seatrial.cli.completion.answer import print_answers

        print_answers(sys.argv[2:])
        return
    if len(sys.argv) == 2 and sys.argv[1] in HELP:
        print(overview())
        if output_error() is None:
            return
    try:
        from seatrial.cli.ending import run_main
    except KeyboardInterrupt:
        raise SystemExit(stopped_status() or 1) from None
    try:
        run_main()
    finally:
        ignore_signals()
