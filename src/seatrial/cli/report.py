"""`seatrial report`."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from seatrial.analysis.study_results import study_results
from seatrial.analysis.trials import trials_of
from seatrial.cli.folder import contents_in
from seatrial.cli.output import write_file
from seatrial.cli.profile_folder import profiles_in
from seatrial.report.pages.page import page


def report_command(results: Path, output: Path) -> None:
    """Write the page of a results folder and print its path."""
    profiles = profiles_in(results)
    contents = contents_in(results, may_be_empty=bool(profiles))
    trials = trials_of(contents)
    studies = study_results(contents, [result for trial in trials for result in trial.results])
    link = quote(os.fsencode(os.path.relpath(results.resolve(), output.resolve().parent)))
    write_file(output, page(trials, link, studies, profiles))
    print(output.resolve())
