"""Where `seatrial` starts: signals and streams are taken care of before anything else is loaded."""

from __future__ import annotations

from seatrial.cli.signals import ignore_signals, stopped_status, take_signals
from seatrial.cli.streams import take_streams


def main() -> None:
    """Run the command of this process."""
    take_signals()
    take_streams()
    try:
        from seatrial.cli.main import run_main
    except KeyboardInterrupt:
        raise SystemExit(stopped_status() or 1) from None
    try:
        run_main()
    finally:
        ignore_signals()
