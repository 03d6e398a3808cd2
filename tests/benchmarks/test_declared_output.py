"""Numbers found by the patterns and paths of declarations, and the traps of real outputs."""

from __future__ import annotations

import pytest

from seatrial.benchmarks.declared_output import Outputs, read_checks, read_figures
from seatrial.errors import ProtocolError
from seatrial.model.benchmark.declaration import Declaration, DeclaredCheck, DeclaredFigure, Pick, Which


def outputs(**files: str) -> Outputs:
    return Outputs(lambda name: files[name].encode() if name in files else None)


def values(
    text: str, pattern: str = "", *, json: str = "", which: Which = Which.ONLY, scale: float = 1.0
) -> list[float]:
    figure = DeclaredFigure("f", "s", False, Pick(pattern, json, which=which), scale)
    declaration = Declaration("d", "q", ("a",), figures=(figure,))
    return [sample.work["value"] for sample in read_figures(declaration, outputs(stdout=text))]


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [
        ("rate: 12.5 GB/s", r"rate: (\S+) GB/s", 12.5),
        ("rate: 12 GB/s", r"rate: (\S+)", 12.0),
        ("t=1.0D+03", r"t=(\S+)", 1000.0),
        ("t=-.5e-3", r"t=(\S+)", -0.0005),
        ("\x1b[32mrate:\x1b[0m 7", r"rate: (\d+)", 7.0),
        ("  1% done\r 50% done\rrate: 8\n", r"rate: (\d+)", 8.0),
        ("rate: 5.", r"rate: (\S+)", 5.0),
        ("(7.25)", r"\(([0-9.]+)\)", 7.25),
    ],
)
def test_numbers(text: str, pattern: str, found: float) -> None:
    assert values(text, pattern) == [found]


@pytest.mark.parametrize(
    ("text", "pattern", "why"),
    [
        ("rate: 1234.5 GB/s", r".*(\d+\.\d+)", "'4.5', a part of a number"),
        ("rate: 1234.5 GB/s", r"rate: (\d+)", "'1234', a part of a number"),
        ("rate: -5", r"(\d+)", "'5', a part of a number"),
        ("t = 1e-5 s", r"t = (\d)", "'1', a part of a number"),
        ("rate: 1,234 GB/s", r"rate: (\S+)", "has a comma"),
        ("rate: 1,234 GB/s", r"rate: (\d+)", "a part of a number"),
        ("loss: nan", r"loss: (\S+)", "not a finite number"),
        ("rate: 12 GB/s", r"rate: (\d+\.\d+)", "none of the 1 lines of stdout matches"),
        ("rate: 1\nrate: 2", r"rate: (\d+)", "2 lines of stdout match"),
        ("a b", r"a (x)?b", "matches nothing"),
        ("", r"(\d+)", "none of the 0 lines"),
    ],
)
def test_what_is_no_number_is_refused(text: str, pattern: str, why: str) -> None:
    with pytest.raises(ProtocolError, match="figure f: ") as caught:
        values(text, pattern)
    assert why in caught.value.message


def test_several_values() -> None:
    text = "rate: 1\nrate: 2\nrate: 3\n"
    assert values(text, r"rate: (\d)", which=Which.FIRST) == [1.0]
    assert values(text, r"rate: (\d)", which=Which.LAST) == [3.0]
    assert values(text, r"rate: (\d)", which=Which.EACH) == [1.0, 2.0, 3.0]
    assert values("rate: 2\nrate: 2.0\n", r"rate: (\S+)") == [2.0]


def test_json_paths_and_scale() -> None:
    text = 'starting [1/2]\n{"a": {"b": [1, {"c": 2.5}]}, "ok": true}\nbye\n'
    assert values(text, json="a.b[1].c", scale=1e9) == [2.5e9]
    for path, why in (("a.x", "has no a.x"), ("a.b[7]", r"has no a.b\[7\]"), ("ok", "not a finite number")):
        with pytest.raises(ProtocolError, match=why):
            values(text, json=path)
    with pytest.raises(ProtocolError, match="no JSON document"):
        values("nothing here", json="a")
    with pytest.raises(ProtocolError, match="not a finite number"):
        values(f'{{"a": {"9" * 400}}}', json="a")


def test_printed_digits_are_the_resolution() -> None:
    figure = DeclaredFigure("f", "s", False, Pick(r"t (\S+)"))
    (sample,) = read_figures(Declaration("d", "q", ("a",), figures=(figure,)), outputs(stdout="t 20"))
    assert sample.extra["resolution"] == pytest.approx(0.025)


def test_checks() -> None:
    checks = (
        DeclaredCheck("small", Pick(r"r=(\S+)"), high=1e-8),
        DeclaredCheck("missing", Pick(r"x=(\S+)"), high=1.0),
        DeclaredCheck("there", Pick("done"), must_match=True),
        DeclaredCheck("clean", Pick("WARN", file="stderr"), must_match=False),
        DeclaredCheck("each", Pick(r"e=(\d+)", which=Which.EACH), high=5.0),
    )
    found = read_checks(
        Declaration("d", "q", ("a",), checks=checks), outputs(stdout="r=1e-9\ndone\ne=1\ne=9", stderr="a WARN b")
    )
    assert found == {"small": 1e-9, "missing": None, "there": 1.0, "clean": 0.0, "each": 9.0}
