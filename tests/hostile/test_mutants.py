"""No damage to a file that is read, or to a results folder, ends in anything but a result or a clear refusal: no other
exception, no hang, no huge memory, no number that JSON cannot represent, no figure that the text does not state.

SEATRIAL_MUTATIONS=10000 in the environment makes so many mutants, in place of 600, over everything together. Dumps of
machines have their own test (`machine/test_mutated_dumps.py`), with as many.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SHARED_DATA
from hostile.file_damage import DUMPS, kinds, mutant, read, samples
from hostile.folder_damage import Damaged, make
from hostile.stated_figures import wrong_figures
from hostile.text_damage import damaged
from hostile.uses import USES
from machine.mutations import TooSlowError, limited

from seatrial.errors import SeatrialError

MUTANTS = int(os.environ.get("SEATRIAL_MUTATIONS", "600"))
KINDS = [kind for kind in kinds() if kind not in DUMPS]
EACH = -(-MUTANTS // (len(KINDS) + len(USES)))
SLOW = frozenset({"table", "I/O samples", "report", "compare A B", "compare --along cores"})
"""These draw charts: a fifth as many."""
_MOST_SECONDS = 5
_MOST_B = 1 << 30


def _count(what: str) -> int:
    return -(-EACH // 5) if what in SLOW else EACH


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    """At most a gigabyte more than now; beyond it, what runs inside gets a MemoryError."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (used + _MOST_B, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_read_or_refused(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    if not samples(kind):
        assert not SHARED_DATA.is_dir(), "no file of this kind: add a real one to the samples, or make one up"
        pytest.skip("needs the third-party samples (shared/data), which are not here")
    read(kind, samples(kind)[0], tmp_path)
    refused = 0
    for number in range(_count(kind)):
        data = mutant(kind, number)
        try:
            with limited(_MOST_SECONDS), _little_memory():
                read(kind, data, tmp_path)
        except SeatrialError as error:
            assert str(error).strip()
            refused += 1
        except (Exception, TooSlowError) as error:
            kept = tmp_path / f"mutant-{number}"
            kept.write_bytes(data)
            pytest.fail(f"mutant({kind!r}, {number}), kept as {kept}: {type(error).__name__}: {error}")
    assert refused or kind in ("table", "I/O samples"), "damage that is never noticed is no damage"
    if kind.startswith("import "):
        _check_figures(kind.removeprefix("import "), tmp_path)


def _check_figures(kind: str, folder: Path) -> None:
    """Damaged texts have no figure that they do not state, or that another statement in them contradicts."""
    texts = samples(f"import {kind}")
    for number in range(_count(kind)):
        undamaged, data = damaged(kind, number, texts)
        if wrong := wrong_figures(kind, undamaged, data):
            kept = folder / f"text-{number}"
            kept.write_bytes(data)
            pytest.fail(f"damaged({kind!r}, {number}), kept as {kept}: {wrong}")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The undamaged folder, which has everything that the uses ask for."""
    return make(tmp_path_factory.mktemp("good") / "results", repeats=11)


@pytest.mark.parametrize("use", USES)
def test_a_damaged_folder_is_used_or_refused(
    use: str, good: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    other = make(tmp_path / "other", repeats=11)
    if use not in ("compare --along node", "profile --trace"):  # it has one node, and no figures of a network
        USES[use](good, other)
    for number in range(_count(use)):
        seed = number * len(USES) + list(USES).index(use)
        damaged = Damaged(good, tmp_path / "damaged", seed)
        try:
            with limited(_MOST_SECONDS):
                USES[use](damaged.path, other)
        except SeatrialError as error:
            assert str(error).strip()
        except (Exception, TooSlowError) as error:
            pytest.fail(f"Damaged(seed={seed}): {damaged.what}: {type(error).__name__}: {error}")
