"""The script that an interpreter runs is read from its command line, by real Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.environments.compiler import first_compiler
from seatrial.environments.loader import c_compiler

pytestmark = pytest.mark.real

SOURCE = Path(__file__).parents[2] / "src/seatrial/profiler/native/script.c"
ASK = """
import ctypes, sys
library = ctypes.CDLL(LIBRARY)
text = ctypes.create_string_buffer(64)
library.seatrial_find_script(INTERPRETER, text, ctypes.c_size_t(64))
print(text.value.decode())
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("script") / "script.so"
    subprocess.run([*c_compiler(first_compiler()), "-shared", "-fPIC", "-o", str(path), str(SOURCE)], check=True)
    return path


def script(library: Path, folder: Path, *words: str, interpreter: bytes = b"/usr/bin/python3.11") -> str:
    text = ASK.replace("LIBRARY", repr(str(library))).replace("INTERPRETER", repr(interpreter))
    (folder / "app.py").write_text(text)
    words = tuple(text if word == "TEXT" else word for word in words)
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_scripts_modules_and_commands(library: Path, tmp_path: Path) -> None:
    assert script(library, tmp_path, "app.py") == "app.py"
    assert script(library, tmp_path, "-uW", "ignore", "-X", "utf8", "./app.py", "-m", "x") == "./app.py"
    assert script(library, tmp_path, "-Wignore", "--check-hash-based-pycs", "never", "app.py") == "app.py"
    assert script(library, tmp_path, "-m", "app", "more") == "-m app"
    assert script(library, tmp_path, "-c", "TEXT", "more") == "-c"
    assert script(library, tmp_path, "app.py", interpreter=b"/opt/app") == ""
