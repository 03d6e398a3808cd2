"""What HPL prints: read as it is, by itself and inside hpcc; cut, glued or damaged it is refused or gives the truth."""

from __future__ import annotations

import random

import pytest
from applications.result_texts import hpl, hpl_row
from conftest import SHARED_DATA

from seatrial.applications.hpl_output import operations, read_hpcc, read_xhpl
from seatrial.errors import ProtocolError
from seatrial.model.benchmark.program import ProgramRecord

HPCC = SHARED_DATA / "outputs" / "hpcc_n2000.txt"
needs_hpcc = pytest.mark.skipif(not HPCC.is_file(), reason="the third-party samples (shared/data/outputs) are not here")

ROWS = ((hpl_row(20000, 55.5, p=1), True), (hpl_row(20000, 60.25, nb=256, p=1), True))
TEXT = hpl(ROWS)

Rates = dict[tuple[object, ...], float]


def rates(record: ProgramRecord) -> Rates:
    """Point -> flop/s."""
    return {tuple(s.point.values()): s.work["flops"] / s.elapsed_s for s in record.samples}


def of_xhpl(text: str) -> Rates | None:
    try:
        return rates(read_xhpl(text.encode()))
    except ProtocolError:
        return None


def of_hpcc(text: str) -> Rates | None:
    try:
        return rates(read_hpcc(text.encode()))
    except ProtocolError:
        return None


def inside_hpcc(text: str) -> str:
    """HPL's text as hpcc shows it: the title comes before the other tests too."""
    title = "HPLinpack 2.0  --  High-Performance Linpack benchmark  --   September 10, 2008\n"
    return f"{title}Begin of HPL section.\n{text}\nEnd of HPL section.\nEnd of HPC Challenge tests.\n"


def test_each_row_is_a_sample_at_its_point() -> None:
    record = read_xhpl(TEXT.encode())
    assert [dict(sample.point) for sample in record.samples] == [
        {"n": 20000, "nb": 192, "grid": "1x2"},
        {"n": 20000, "nb": 256, "grid": "1x2"},
    ]
    assert list(rates(record).values()) == pytest.approx([55.5e9, 60.25e9])
    assert record.samples[0].work["flops"] == operations(20000) == pytest.approx(2 / 3 * 20000**3 + 1.5 * 20000**2)
    assert record.checks == {"residual": 3.2136e-3, "wrong_solutions": 0}
    assert record.notes["hpl_version"] == "2.3" and record.ended


def test_hpl_inside_hpcc_is_the_same() -> None:
    assert of_hpcc(inside_hpcc(TEXT)) == of_xhpl(TEXT)


def test_a_wrong_solution_is_told_with_its_residual() -> None:
    record = read_xhpl(hpl((ROWS[0], (ROWS[1][0], False))).encode())
    assert record.checks == {"residual": 2.5136e9, "wrong_solutions": 1}
    overflowed = read_xhpl(hpl(((ROWS[0][0], False),)).replace("2.51360000e+09", "nan").encode())
    assert overflowed.checks == {"residual": None, "wrong_solutions": 1}


def test_a_skipped_system_counts_as_wrong() -> None:
    text = TEXT.replace("Finished      2", "Finished      3").replace("     0 tests skipped", "     1 tests skipped")
    assert read_xhpl(text.encode()).checks["wrong_solutions"] == 1


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\0" + TEXT.encode(),
        TEXT.encode() * 2,
        TEXT.replace("HPLinpack", "Linpack").encode(),
        TEXT.replace("PASSED", "passed", 1).encode(),
        TEXT.replace("      2 tests completed and passed", "      1 tests completed and passed").encode(),
        TEXT.replace("5.5500e+01", "5.7500e+01").encode(),
        b"Loop time of 3.1 on 2 procs for 200 steps with 32000 atoms\n",
    ],
)
def test_what_is_not_one_whole_run_is_refused(damage: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_xhpl(damage)
    with pytest.raises(ProtocolError):
        read_hpcc(damage)


def test_cut_anywhere_it_gives_all_or_nothing() -> None:
    whole = of_xhpl(TEXT)
    assert whole
    for end in range(len(TEXT)):
        assert of_xhpl(TEXT[:end]) in (None, whole)
    held = inside_hpcc(TEXT)
    for end in range(0, len(held), 7):
        assert of_hpcc(held[:end]) in (None, whole)


def test_two_runs_in_one_file_are_refused() -> None:
    assert of_hpcc(inside_hpcc(TEXT) * 2) is None
    assert of_hpcc(inside_hpcc(TEXT + TEXT)) is None


def test_one_character_changed_moves_no_rate_beyond_its_last_digits() -> None:
    whole = of_xhpl(TEXT)
    assert whole
    dice = random.Random(5)
    start = TEXT.index("T/V")
    for place in [k for k in range(start, len(TEXT)) if TEXT[k].isdigit() or TEXT[k] in ".e+"]:
        for new in dice.sample("0123456789.eE+- x", 4):
            found = of_xhpl(TEXT[:place] + new + TEXT[place + 1 :])
            if found is not None:
                assert sorted(found.values()) == pytest.approx(sorted(whole.values()), rel=5e-4), (place, new)


@needs_hpcc
def test_a_real_run_of_hpcc() -> None:
    record = read_hpcc(HPCC.read_bytes())
    (sample,) = record.samples
    assert dict(sample.point) == {"n": 2000, "nb": 128, "grid": "1x2"}
    # The summary of the same file: HPL_Tflops=0.0177404, HPL_time=0.300972
    assert sample.work["flops"] / sample.elapsed_s == pytest.approx(17.7404e9, rel=1e-4)
    assert sample.elapsed_s == pytest.approx(operations(2000) / 17.7404e9, rel=1e-4)
    assert 0 < (record.checks["residual"] or 0) < 16 and record.checks["wrong_solutions"] == 0
    assert record.notes["hpl_version"] == "2.0"


@needs_hpcc
def test_a_real_run_of_hpcc_cut_glued_or_damaged() -> None:
    text = HPCC.read_text()
    whole = of_hpcc(text)
    assert whole
    ends = [k for k, character in enumerate(text) if character == "\n"]
    for end in ends[:: max(1, len(ends) // 150)]:
        assert of_hpcc(text[:end]) in (None, whole)
    assert of_hpcc(text * 2) is None
    section = text.index("Begin of HPL section.")
    dice = random.Random(6)
    for place in dice.sample(range(section, text.index("End of HPL section.")), 400):
        found = of_hpcc(text[:place] + dice.choice("0123456789 .x\n") + text[place + 1 :])
        if found is not None:
            assert sorted(found.values()) == pytest.approx(sorted(whole.values()), rel=5e-4), text[place - 20 : place]
