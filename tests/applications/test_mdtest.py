"""Results of mdtest: real ones, and damaged ones."""

from __future__ import annotations

import pytest
from applications.log_damage import check_mutants, counted_once, figures, log, needs_logs, noisy, others, refused

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError

ARCHER = "mdtest/mdtest-archer-128nodes.txt"
NARVAL = "mdtest/mdtest-easy-write-narval.txt"

# The form of version 4, two iterations, with statistics of each rank.
NEW = """\
-- started at 03/01/2024 10:00:00 --

mdtest-4.0.0 was launched with 2 total task(s) on 1 node(s)
Command line used: ./mdtest '-n' '100' '-i' '2'
2 tasks, 200 files/directories

SUMMARY rate (in ops/sec): (of 2 iterations)
   Operation     per Rank: Max            Min           Mean      per Iteration: Max            Min           Mean        Std Dev
   ---------               ---            ---           ----                     ---            ---           ----        -------
   Directory creation          600.000        500.000        550.000           1200.000       1000.000       1100.000        141.421
   Directory stat                  0.000          0.000          0.000              0.000          0.000          0.000          0.000
   Directory rename              0.000          0.000          0.000              0.000          0.000          0.000          0.000
   Directory removal               0.000          0.000          0.000              0.000          0.000          0.000          0.000
   File creation               300.000        250.000        275.000            600.000        500.000        550.000         70.711
   File stat                       0.000          0.000          0.000              0.000          0.000          0.000          0.000
   File removal                    0.000          0.000          0.000              0.000          0.000          0.000          0.000
   Tree creation                20.000         10.000         15.000             20.000         10.000         15.000          7.071
   Tree removal                    0.000          0.000          0.000              0.000          0.000          0.000          0.000

SUMMARY time (in ms/op): (of 2 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                   0.400          0.333          0.367          0.047
-- finished at 03/01/2024 10:00:05 --
"""  # noqa: E501


@needs_logs
def test_operations_that_were_run() -> None:
    assert figures("mdtest", log(ARCHER)) == {
        "file_create": [13610.762],
        "file_stat": [19802.755],
        "file_remove": [6469.594],
        "tree_create": [4.168],
        "tree_remove": [2.439],
    }
    assert figures("mdtest", log(NARVAL)) == {"file_create": [79439.712], "tree_create": [7.7]}
    (experiment,) = reader_of("mdtest").read(log(ARCHER)).experiments
    assert experiment.parameters == {"ranks": 3072, "nodes": 128, "items": 1047552}


def test_the_mean_of_the_iterations() -> None:
    assert figures("mdtest", NEW.encode()) == {
        "directory_create": [1100.0],
        "file_create": [550.0],
        "tree_create": [15.0],
    }


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("-- finished", "-- done", "has not ended"),
        ("        550.000         70", "        950.000         70", "min <= mean <= max"),
        ("        550.000         70", "        560.000         70", "not in the middle"),
        ("500.000        550.000         70.711", "500.000        550.000        170.711", "the deviation"),
        ("(of 2 iterations)\n   Operation     per", "(of 1 iterations)\n   Operation     per", "one iteration"),
        ("         70.711", "", "min <= mean"),
        ("70.711", "70.x11", "a damaged row"),
        ("\nSUMMARY time", "\nS", "a second header in the table of rates"),
        ("SUMMARY rate", "SUMMARY", "no table"),
        ("2 tasks, 200", "4 tasks, 200", "launched with 2 tasks"),
        ("\nSUMMARY rate", "Process 1(n1): FAILED in create_remove_items\nSUMMARY rate", "found an error"),
        ("File removal", "File remo", "a damaged row"),
        ("   File removal   ", "   -   ", "no row file_remove"),
        ("(of 2 iterations)\n   Oper", "(of 2 iterations)\n\n   Oper", "not followed by the header"),
        ("mdtest-4.0.0", "mdtest", "from another program"),
    ],
)
def test_a_damaged_run_is_refused(old: str, new: str, why: str) -> None:
    assert old in NEW
    refused("mdtest", NEW.replace(old, new).encode(), why)


@needs_logs
def test_times_below_the_title_of_rates_are_refused() -> None:
    """What is left where the rows of the first table and the title of the second are lost."""
    text = log(NARVAL)
    header = text.index(b"   Operation ")
    second = text.index(b"   Operation ", header + 1)
    refused("mdtest", text[: text.index(b"\n", header) + 1] + text[second:], "rows of another table")


@needs_logs
def test_a_run_that_contradicts_itself_is_refused() -> None:
    refused("mdtest", log(ARCHER).replace(b"08:15:00", b"08:13:00"), "but the operations take 292 s")
    counted_once("mdtest", log(ARCHER))


def test_noise_is_survived() -> None:
    text = NEW.encode()
    assert figures("mdtest", noisy(text)) == figures("mdtest", text)


@needs_logs
def test_results_of_other_programs_are_refused() -> None:
    for path in others("mdtest"):
        with pytest.raises(ParseError):
            reader_of("mdtest").read(path.read_bytes())


@needs_logs
def test_damaged_results() -> None:
    check_mutants("mdtest", (ARCHER, NARVAL))
