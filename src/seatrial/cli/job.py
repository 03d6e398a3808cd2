"""`python -m seatrial.cli.job FOLDER`: what the script of a job runs on its node. Its output is the job's."""

from __future__ import annotations

import sys
from pathlib import Path

from seatrial.cli.process import all_done, ignore_signals, stopped_status, take_signals, take_streams


def main() -> None:
    """Measure what the job was submitted for; exit with the status of `seatrial run`."""
    take_signals()
    take_streams()
    try:
        status = _measured(Path(sys.argv[1]))
        all_done()
    except SystemExit as end:
        status = stopped_status() or (end.code if isinstance(end.code, int) else 1)
    try:
        sys.exit(status)
    finally:
        ignore_signals()


def _measured(folder: Path) -> int:
    from seatrial.cli.output import message, show_messages
    from seatrial.cli.progress import TerminalProgress
    from seatrial.cli.run_results import exit_status, nothing_measured
    from seatrial.errors import SeatrialError
    from seatrial.interface.run import run
    from seatrial.jobs.folder import run_job
    from seatrial.report.blocks import Detail
    from seatrial.report.text.results import results_text

    show_messages()
    try:
        found = run_job(folder, TerminalProgress(verbose=True), run)
    except SeatrialError as error:
        message(f"seatrial: {error}")
        return error.exit_code
    print(results_text(found.experiments, detail=Detail.FULL))
    for line in nothing_measured(found.experiments):
        message(line)
    return exit_status(found.experiments, named=True)


if __name__ == "__main__":
    main()
