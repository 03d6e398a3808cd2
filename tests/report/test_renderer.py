"""The process that draws charts: its limits, its death and its refusals cost a chart, never the page."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from usual import usually

from seatrial.processes.tree import descendants
from seatrial.report.charts import renderer
from seatrial.report.charts.renderer import NotDrawnError, draw
from seatrial.report.charts.vega import render

pytestmark = pytest.mark.real

SPEC = {
    "data": {"values": [{"x": "a", "y": 1}]},
    "mark": "bar",
    "encoding": {"x": {"field": "x", "type": "nominal"}, "y": {"field": "y", "type": "quantitative"}},
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    renderer.close()
    yield
    renderer.close()


def renderers() -> list[int]:
    return [pid for pid in descendants(os.getpid()) if b"charts.renderer" in Path(f"/proc/{pid}/cmdline").read_bytes()]


_DRAWS = f"from seatrial.report.charts.vega import render; print(render({SPEC!r}, 'm', 'title', 'words').text)"


@pytest.mark.parametrize("gigabytes", usually([2, 4, 40], lambda gigabytes: gigabytes != 2))
def test_under_a_limit_of_address_space_a_sentence_takes_the_place_of_the_chart(gigabytes: int) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (gigabytes * 10**9,) * 2)

    done = subprocess.run([sys.executable, "-c", _DRAWS], capture_output=True, text=True, preexec_fn=limited)
    assert done.returncode == 0
    assert "<svg" in done.stdout or ("Not drawn" in done.stdout and "ulimit -v" in done.stdout)
    if gigabytes <= 4:
        assert "Not drawn" in done.stdout and done.stderr.count("not drawn") == 1
    assert "Traceback" not in done.stderr


def test_a_soft_limit_does_not_keep_a_chart_from_being_drawn() -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 * 10**9, resource.RLIM_INFINITY))

    if resource.getrlimit(resource.RLIMIT_AS)[1] != resource.RLIM_INFINITY:
        pytest.skip("this process has a hard limit of address space")
    done = subprocess.run([sys.executable, "-c", _DRAWS], capture_output=True, text=True, preexec_fn=limited)
    assert done.returncode == 0 and "<svg" in done.stdout


def test_a_renderer_that_dies_is_replaced_for_the_next_chart() -> None:
    assert draw(SPEC).startswith("<svg")
    (pid,) = renderers()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(NotDrawnError, match="was killed by SIGKILL"):
        draw(SPEC)
    assert draw(SPEC).startswith("<svg")


def test_a_specification_that_is_refused_costs_its_chart_alone() -> None:
    svg = render({"mark": "no such mark"}, "m", "title", "words")
    assert not svg.is_picture and "Not drawn" in svg.text and "refused" in svg.text
    assert render(SPEC, "m", "title", "words").is_picture
    assert len(renderers()) == 1


def test_a_renderer_that_cannot_be_loaded_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderer, "_MAIN", "raise ImportError('libX.so: cannot open <file>')")
    spec = {**SPEC, "width": 77}  # not one that was drawn before
    svg = render(spec, "m", "title", "words")
    assert "libX.so: cannot open &lt;file&gt;" in svg.text
    monkeypatch.setattr(renderer.subprocess, "Popen", None)
    assert render(spec, "m", "title", "words").text == svg.text
