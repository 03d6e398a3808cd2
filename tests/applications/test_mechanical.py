"""Output of Ansys Mechanical APDL."""

from __future__ import annotations

import pytest
from applications.engineering_logs import figures, refusal, stated
from applications.log_damage import check_mutants, needs_logs
from applications.log_damage import log as sample
from applications.result_texts import MAPDL as OUTPUT

from seatrial.applications.readers import reader_of

NO_LICENCE = "ansys/mapdl12.1-no-licence-run-completed.txt"


def test_the_run_and_its_solution() -> None:
    assert figures("mechanical", OUTPUT) == {("wall",): 65.0, ("solution_time",): 61.5}
    file = reader_of("mechanical").read(OUTPUT.encode())
    assert file.version == "2021 R1"
    assert [sample.extra["resolution"] for sample in file.experiments[0].samples] == pytest.approx([1 / 65, 0.1 / 61.5])
    solver = {"equation_solver": "Sparse (symmetric)"}
    assert stated("mechanical", OUTPUT) == {"nodes": 1, "ranks": 4, "threads": 2, "cores": 8, **solver}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (OUTPUT.replace("RUN COMPLETED", ""), "not ended"),
        (OUTPUT + OUTPUT, "two runs"),
        (OUTPUT.replace("61.5", "0.0"), "nothing was solved"),
        (OUTPUT.replace("61.5", "161.5"), "phases"),
        (OUTPUT.replace("65.000", "0.000"), "above zero"),
        (OUTPUT.replace("requested         :    8", "requested         :    0"), "cores"),
        (OUTPUT.replace("Ansys MAPDL 2021 R1", "Ansys MAPDL 2022 R2"), "two releases"),
        (" *** ERROR ***                           CP =     456.000   TIME= 09:00:00\n" + OUTPUT, "failed"),
    ],
)
def test_runs_without_a_figure(text: str, why: str) -> None:
    assert why in refusal("mechanical", text)


@needs_logs
def test_a_run_without_a_licence_completes_but_has_no_figure() -> None:
    assert "failed" in refusal("mechanical", sample(NO_LICENCE))
    without_message = sample(NO_LICENCE).partition(b"+-------")
    refusal("mechanical", without_message[1] + without_message[2])
    check_mutants("mechanical", (NO_LICENCE,))


def test_a_release_in_the_box_alone() -> None:
    lines = OUTPUT.splitlines(keepends=True)
    boxed = "".join(line for line in lines if not line.startswith("Release:"))
    assert reader_of("mechanical").read(boxed.encode()).version == "2021 R1"
    renamed = "".join(
        "Build: 2021 R1            Release: 21.1       Update: UP20201109\n" if line.startswith("Release:") else line
        for line in lines
    )
    assert reader_of("mechanical").read(renamed.encode()).version == "2021 R1"
