"""Output of BabelStream of all ages: GPU-STREAM 1 and 2 state less, and their "MB" may be 2^20 B."""

from __future__ import annotations

import pytest
from applications.result_texts import babelstream

from seatrial.applications.readers import reader_of
from seatrial.errors import ParseError
from seatrial.model.results.imported import ImportedFile

ELEMENTS = 49_999_872
ROWS = "".join(
    f"{name:12}{rate:<12}{arrays * ELEMENTS * 8 / rate / 1e6:<12.6g}{1e-2:<12.6g}{8e-3:<12.6g}\n"
    for name, rate, arrays in (("Copy", 278448, 2), ("Mul", 278463, 2), ("Add", 280658, 3), ("Triad", 280592, 3))
)
FIRST = f"""GPU-STREAM
Version: 1.0
Implementation: CUDA
Precision: double
Array size: 381.5 MB (=0.4 GB)
Total size: 1144.4 MB (=1.1 GB)
Using CUDA device GeForce
Function    MBytes/sec  Min (sec)   Max         Average
{ROWS}"""


def read(text: str) -> ImportedFile:
    return reader_of("babelstream").read(text.encode())


def without(*starts: str) -> str:
    return "".join(line for line in FIRST.splitlines(keepends=True) if not line.startswith(starts))


def test_version_1_counts_its_megabytes_by_1024() -> None:
    file = read(FIRST)
    (experiment,) = file.experiments
    assert (file.version, experiment.parameters["precision"]) == ("1.0", "fp64")
    assert experiment.parameters["array_B"] == round(381.5 * 2**20) and "array_B" in experiment.notes
    assert [sample.work["amount"] for sample in experiment.samples] == [278448e6, 278463e6, 280658e6, 280592e6]


def test_version_1_need_not_state_sizes() -> None:
    assert "array_B" not in read(without("Precision", "Array", "Total")).experiments[0].parameters
    resized = without("Precision", "Array", "Total").replace(
        "Using", f"Resizing array from 50000000 to {ELEMENTS}\nUsing"
    )
    parameters = read(resized).experiments[0].parameters
    assert (parameters["array_B"], parameters["precision"]) == (ELEMENTS * 8, "fp64")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (babelstream().replace("Array size: 640.0", "Array size: 340.0"), "not the number of elements"),
        (babelstream(with_elements=False).replace("Array size: 640.0", "Array size: 340.0"), "of the stated size"),
        (FIRST.replace("278463 ", "378463 "), "of the stated size"),
        (FIRST.replace("Version: 1.0", "Version: 2.0"), "Running kernels"),
        (babelstream().replace("0.03459     ", "0           "), "decimals"),
    ],
)
def test_sizes_rates_and_times_that_contradict_each_other_are_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError) as caught:
        read(text)
    assert why in str(caught.value)


def test_the_port_for_Java_does_not_print_the_word_kernels() -> None:
    java = (
        babelstream().replace("Running kernels 100", "Running all 100").replace("OpenMP", f"jdk-stream; ({'x' * 200})")
    )
    assert len(read(java).experiments[0].samples) == 5
