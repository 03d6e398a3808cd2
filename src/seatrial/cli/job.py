"""`python -m seatrial.cli.job FOLDER`: what the script of a job runs on its node. Its output is the job's."""

from __future__ import annotations

import sys
from pathlib import Path

from seatrial.cli.process import all_done, ignore_signals, stopped_status, take_signals, take_streams


def main() -> None:
    """Measure what the job was submitted for; exit with 0 if all that it measured is recorded, whatever that is: for
    the batch system, which may send mail about jobs that fail, the job has then succeeded."""
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
    from seatrial.cli.run_results import nothing_measured
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
    return 0 if found.problem is None else 3


if __name__ == "__main__":
    main()
