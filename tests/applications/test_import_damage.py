"""Result files that were cut, glued, shuffled or changed in one place: refused, called wrong, or the true numbers."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from applications.result_texts import (
    as_bytes,
    babelstream,
    babelstream_csv,
    fio,
    google_benchmark,
    hpl,
    hpl_row,
    stream,
)
from conftest import SHARED_DATA
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.applications.readers import reader_of
from seatrial.benchmarks import benchmark_named
from seatrial.errors import ParseError
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings

OUTPUTS = SHARED_DATA / "outputs"
SAMPLES = {
    "stream_run1.txt": "stream",
    "stream_run2.txt": "stream",
    "babelstream_omp_run1.txt": "babelstream",
    "thebandwidthbenchmark_avx512_run1.txt": "thebandwidthbenchmark",
    "hpcc_n2000.txt": "hpcc",
    "hpcg_openmpi_2x64.txt": "hpcg",
    "fio_seqread_128k.json": "fio-json",
    "fio_seqwrite_128k.json": "fio-json",
}
needs_samples = pytest.mark.skipif(
    not OUTPUTS.is_dir(), reason="the third-party samples (shared/data/outputs) are not here"
)

Values = dict[tuple[object, ...], float]

ROWS = ((hpl_row(20000, 55.5), True), (hpl_row(30000, 60.25, nb=256), True))
TEXTS = {
    "stream": stream(),
    "stream 5.9": stream(version="5.9"),
    "babelstream": babelstream(),
    "babelstream csv": babelstream_csv(),
    "hpl": hpl(ROWS),
    "fio-json": as_bytes(fio()).decode(),
    "google-benchmark-json": as_bytes(google_benchmark()).decode(),
}
CHECKED = ("stream", "stream 5.9", "babelstream", "babelstream csv", "hpl")
"""Texts in which a time stands beside each rate, and the size of the work."""


def outcome(kind: str, text: str) -> Values | None:
    """Every figure with its settings, or None where the file is refused or says that it is wrong."""
    try:
        file = reader_of(kind.split()[0]).read(text.encode())
    except ParseError:
        return None
    found: Values = {}
    for experiment in file.experiments:
        if file.failed or experiment.failed:
            continue
        benchmark = benchmark_named(experiment.benchmark)
        point = benchmark.point(experiment.parameters)
        for reading in readings(benchmark, Machine("m"), point, experiment.samples):
            found[(benchmark.name, *sorted(map(str, point.items())), reading.figure.name)] = reading.value
    return found or None


def real_text(name: str) -> str:
    return (OUTPUTS / name).read_text()


def cuts(text: str, count: int) -> list[int]:
    """Places to cut: every line, and some within lines."""
    ends = [i for i, character in enumerate(text) if character == "\n"]
    some = random.Random(7).sample(range(len(text)), min(count, len(text)))
    return sorted({*(ends if len(ends) < 300 else random.Random(8).sample(ends, 150)), *some})


@pytest.mark.parametrize("kind", TEXTS)
def test_a_file_cut_anywhere_gives_all_of_its_true_numbers_or_none(kind: str) -> None:
    text = TEXTS[kind]
    whole = outcome(kind, text)
    assert whole
    for end in cuts(text, 300):
        assert outcome(kind, text[:end]) in (None, whole), text[:end][-200:]


@pytest.mark.parametrize("kind", TEXTS)
def test_a_file_without_its_beginning(kind: str) -> None:
    text = TEXTS[kind]
    whole = outcome(kind, text)
    for start in cuts(text, 100):
        assert outcome(kind, text[start:]) in (None, whole)


@needs_samples
@pytest.mark.parametrize("name", SAMPLES)
def test_a_real_file_cut_anywhere(name: str) -> None:
    text = real_text(name)
    whole = outcome(SAMPLES[name], text)
    assert whole
    for end in cuts(text, 40):
        assert outcome(SAMPLES[name], text[:end]) in (None, whole), text[:end][-200:]


@pytest.mark.parametrize("first", TEXTS)
@pytest.mark.parametrize("second", TEXTS)
def test_two_files_in_one_are_two_runs_or_one_of_them_is_not_seen(first: str, second: str) -> None:
    both = TEXTS[first] + "\n" + TEXTS[second]
    if first.split()[0] == second.split()[0]:
        known = {**(outcome(first, TEXTS[first]) or {}), **(outcome(second, TEXTS[second]) or {})}
        assert outcome(first, both) == known
    else:
        assert outcome(first, both) in (None, outcome(first, TEXTS[first]))
        assert outcome(second, both) in (None, outcome(second, TEXTS[second]))


@needs_samples
def test_two_real_runs_in_one_file() -> None:
    one, two = real_text("stream_run1.txt"), real_text("stream_run2.txt")
    assert len(reader_of("stream").read((one + two).encode()).runs) == 2
    for name, kind in SAMPLES.items():
        assert outcome(kind, real_text(name) * 2) in (None, outcome(kind, real_text(name))), name


@needs_samples
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_lines_of_two_real_runs_mixed_never_make_a_third(data: st.DataObject) -> None:
    one, two = real_text("stream_run1.txt").splitlines(True), real_text("stream_run2.txt").splitlines(True)
    chosen = data.draw(st.lists(st.booleans(), min_size=len(one), max_size=len(one)))
    mixed = [b if pick else a for a, b, pick in zip(one, two, chosen, strict=True)]
    truths = [outcome("stream", "".join(lines)) for lines in (one, two)]
    values = outcome("stream", "".join(mixed))
    if values is not None:  # rows of both are sound rows, but each figure must be one that a run printed
        assert all(value in (truths[0][key], truths[1][key]) for key, value in values.items())


@pytest.mark.parametrize("kind", CHECKED)
def test_rows_swapped_or_lost_never_change_a_number(kind: str) -> None:
    lines = TEXTS[kind].splitlines(keepends=True)
    whole = outcome(kind, TEXTS[kind])
    for i in range(len(lines)):
        for j in range(i + 1, len(lines)):
            swapped = list(lines)
            swapped[i], swapped[j] = lines[j], lines[i]
            assert outcome(kind, "".join(swapped)) in (None, whole), (lines[i], lines[j])
        without = "".join(lines[:i] + lines[i + 1 :])
        found = outcome(kind, without)
        assert found is None or set(found.values()) == set(whole.values()), lines[i]
        assert outcome(kind, "".join([*lines[:i], lines[i], *lines[i:]])) in (None, whole), lines[i]


def near(found: Values, whole: Values, tolerance: float) -> bool:
    """Whether every number is one of the true ones, up to the digits that times are printed to."""
    return all(any(abs(v - w) <= tolerance * w for w in whole.values()) for v in found.values())


@pytest.mark.parametrize("kind", CHECKED)
def test_one_character_changed_moves_no_number_beyond_its_last_digits(kind: str) -> None:
    text, whole = TEXTS[kind], outcome(kind, TEXTS[kind])
    dice = random.Random(11)
    places = [i for i, character in enumerate(text) if character.isdigit() or character in ".eE+-"]
    for place in places:
        for new in dice.sample("0123456789.eE+-, x", 4):
            found = outcome(kind, text[:place] + new + text[place + 1 :])
            # 5.9 prints times to four decimals, so its rates are known to 0.3 % only.
            assert found is None or near(found, whole, 0.004 if kind == "stream 5.9" else 0.0005), (place, new)


@needs_samples
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_one_digit_of_a_real_report_of_hpcg_changed(data: st.DataObject) -> None:
    text = real_text("hpcg_openmpi_2x64.txt")
    whole = outcome("hpcg", text)
    section = text.index("Benchmark Time Summary")
    places = [i for i in range(section, len(text)) if text[i].isdigit()]
    place = data.draw(st.sampled_from(places))
    found = outcome("hpcg", text[:place] + data.draw(st.sampled_from("0123456789")) + text[place + 1 :])
    assert found is None or near(found, whole, 0.0005)


@settings(max_examples=200, deadline=None)
@given(noise=st.binary(max_size=400), kind=st.sampled_from(sorted(TEXTS)), at=st.integers(0, 4000))
def test_bytes_put_in_anywhere_end_in_a_result_or_an_error_of_ours(noise: bytes, kind: str, at: int) -> None:
    text = TEXTS[kind].encode()
    with contextlib.suppress(ParseError):
        reader_of(kind.split()[0]).read(text[:at] + noise + text[at:])


@needs_samples
def test_every_sample_that_is_there_is_read() -> None:
    for name, kind in SAMPLES.items():
        assert Path(OUTPUTS / name).is_file()
        assert outcome(kind, real_text(name)), name
