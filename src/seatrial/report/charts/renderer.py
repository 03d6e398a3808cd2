"""Draws Vega-Lite specifications in a child process, so that a renderer that cannot start or dies costs its chart only.

vl-convert contains V8, which reserves tens of gigabytes of address space when it starts and ends its whole process
where a limit (`ulimit -v`) forbids that; an error inside it may end the process as well. One child draws all charts. A
child that died before it had drawn anything is not started again; one that died later is, for the next chart.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from seatrial.processes.guard import end_with
from seatrial.processes.messages import pack, receive
from seatrial.processes.working_folder import without_working_folder

LIMIT_S = 120.0
"""For one chart. The largest take seconds."""

_MAIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from seatrial.report.charts.renderer import serve; serve()"
)
_MOST_WORDS = 200
_GIB = 2**30


class NotDrawnError(Exception):
    """A chart could not be drawn; the text says what was tried and seen, without a full stop."""


class _Renderer:
    """The child process."""

    def __init__(self) -> None:
        ours, its = socket.socketpair()
        self._channel = ours
        self._stderr = os.memfd_create("stderr")
        self.has_drawn = False
        with its:
            # No program of a benchmark, so not the guard's: that one takes what is left behind to be a program's, which
            # it cannot while a child of ours runs beside.
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-B",
                    "-I",
                    "-S",
                    "-c",
                    _MAIN,
                    json.dumps(sys.path),
                    str(its.fileno()),
                    str(os.getpid()),
                ],
                env=without_working_folder(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=self._stderr,
                stderr=self._stderr,
                pass_fds=(its.fileno(),),
                process_group=0,
            )

    def draw(self, spec: str) -> str:
        """The SVG. Raises NotDrawnError if the child cannot draw it, EOFError, with what was seen, if it died."""
        try:
            self._channel.sendall(pack(spec))
        except OSError:
            raise EOFError(self._death()) from None
        waiting = select.poll()
        waiting.register(self._channel, select.POLLIN)
        if not waiting.poll(LIMIT_S * 1e3):
            self.close()
            raise EOFError(f"the chart renderer (vl-convert) did not finish within {LIMIT_S:g} s and was killed")
        answer = receive(self._channel)
        if answer is None:
            raise EOFError(self._death())
        svg, problem = answer
        if problem:
            raise NotDrawnError(f"the chart renderer (vl-convert) refused it: {_first_words(problem)}")
        self.has_drawn = True
        return str(svg)

    def close(self) -> None:
        """End the child."""
        self._process.kill()
        self._process.wait()
        self._channel.close()

    def _death(self) -> str:
        status = self._process.wait()
        self._channel.close()
        how = f"was killed by {_signal_name(-status)}" if status < 0 else f"ended with exit status {status}"
        seen = _first_words(os.pread(self._stderr, 1 << 16, 0).decode("utf-8", "replace"))
        text = f"the chart renderer (vl-convert) {how}" + (f": {seen}" if seen else "")
        limit = resource.getrlimit(resource.RLIMIT_AS)[1]
        if limit == resource.RLIM_INFINITY:
            return text
        return f"{text}; the address space is limited to {limit / _GIB:.3g} GiB (ulimit -v), try without that limit"


_renderer: _Renderer | None = None
_does_not_start = ""


def draw(spec: Mapping[str, Any]) -> str:
    """The chart as SVG. Raises NotDrawnError."""
    global _renderer, _does_not_start
    if _does_not_start:
        raise NotDrawnError(_does_not_start)
    try:
        if _renderer is None:
            _renderer = _Renderer()
        return _renderer.draw(json.dumps(spec))
    except OSError as error:
        _renderer, _does_not_start = None, f"the chart renderer cannot be started: {error.strerror or error}"
        raise NotDrawnError(_does_not_start) from error
    except EOFError as error:
        if _renderer is not None and not _renderer.has_drawn:
            _does_not_start = str(error)
        _renderer = None
        raise NotDrawnError(str(error)) from error


def close() -> None:
    """End the child, and forget what it could not do."""
    global _renderer, _does_not_start
    if _renderer is not None:
        _renderer.close()
    _renderer, _does_not_start = None, ""


def _forget() -> None:
    global _renderer
    _renderer = None


atexit.register(close)
os.register_at_fork(after_in_child=_forget)


def serve() -> None:
    """In the child: draw what comes until nothing more does. Panics of the renderer's Rust code are exceptions."""
    end_with(int(sys.argv[3]))
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft != hard:  # V8 needs address space, not memory
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import vl_convert  # contains a JavaScript engine

    channel = socket.socket(fileno=int(sys.argv[2]))
    while (spec := receive(channel)) is not None:
        try:
            answer = (vl_convert.vegalite_to_svg(json.loads(spec)), "")
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            answer = ("", f"{type(error).__name__}: {error}")
        channel.sendall(pack(answer))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _first_words(text: str) -> str:
    """The first line that says something, or the last of a Python traceback, without decoration, shortened."""
    lines = text.splitlines()
    for line in reversed(lines) if text.startswith("Traceback") else lines:
        said = line.strip("# \t.")
        if said:
            return said if len(said) <= _MOST_WORDS else said[:_MOST_WORDS] + "…"
    return ""
