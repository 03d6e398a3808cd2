"""Open the index of a results folder; it is made, or brought up to date, where necessary."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.analysis.index.build import DuplicatesError, create, extend
from seatrial.analysis.index.state import Additions, additions, folder_state
from seatrial.errors import BuildError, ResourceError, StoreError
from seatrial.processes.own_folder import own_folder, temporary_folder
from seatrial.store.cache import CacheError, check_folder, make_folder, own_cache
from seatrial.store.folder import ResultsFolder
from seatrial.store.reading import FileSpan
from seatrial.version import __version__

if TYPE_CHECKING:
    import duckdb

_VERSION = 3
_MEMORY, _DISK = "400MB", "16GB"
_ADDRESSES_B, _ADDRESSES_OF_CPU_B = 768 << 20, 128 << 20
"""Of DuckDB and numpy, and of their threads on each CPU. With fewer the C library or OpenBLAS ends the process."""


@contextmanager
def opened_index(
    folder: ResultsFolder, *, memory: str = _MEMORY, disk: str = _DISK, threads: int | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection for reading the views (`analysis.index.views`) of a folder as it is now. What is computed with it
    takes at most this much memory, and then space on disk; by default it uses all CPUs.

    SQL that runs on it can read neither files nor the network, nor change its settings. Raises StoreError,
    ResourceError.
    """
    need_B = _ADDRESSES_B + _ADDRESSES_OF_CPU_B * (os.cpu_count() or 1)
    ResourceError.require_memory("the index of a results folder", need_B)
    import duckdb

    with ExitStack() as opened:
        try:
            place = opened.enter_context(_place(folder))
            _bring_up_to_date(folder, place)
            connection = opened.enter_context(_connect(place, read_only=True))
            # Each process has its own: DuckDB removes the whole folder at the end.
            spilled = opened.enter_context(own_folder(place.parent, "spilled-"))
        except (duckdb.Error, OSError) as error:
            if (limited := ResourceError.of(error)) is not None:
                raise limited from error
            if isinstance(error, duckdb.Error):
                raise StoreError(f"the index of {folder.path} cannot be made: {error}") from error
            raise StoreError(f"the index of {folder.path} cannot be made: {error.strerror or error}") from error
        connection.execute(f"SET memory_limit = '{memory}'")
        connection.execute("SET temp_directory = ?", [str(spilled)])
        connection.execute(f"SET max_temp_directory_size = '{disk}'")
        if threads is not None:
            connection.execute(f"SET threads = {threads:d}")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def damaged_lines(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """What of the folder was rejected, a sentence each."""
    return [row[0] for row in connection.execute("SELECT text FROM stored.damaged").fetchall()]


def _bring_up_to_date(folder: ResultsFolder, place: Path) -> None:
    if _fits(folder, place):
        return
    with _locked(place):
        if _fits(folder, place):  # another process made it meanwhile
            return
        for left in place.parent.glob(f"{place.name}.*"):  # by a process that was killed
            if left.is_file():
                left.unlink(missing_ok=True)
        private = place.with_name(f"{place.name}.{os.getpid()}-{secrets.token_hex(4)}")
        try:
            if not (_is_ours(place) and _extended(folder, place, private)):
                _remove(private)
                _made(folder, private)
            if not _is_ours(place):
                _remove(place)
            private.replace(place)
        finally:
            private.unlink(missing_ok=True)
            Path(f"{private}.wal").unlink(missing_ok=True)
            shutil.rmtree(f"{private}.tmp", ignore_errors=True)


def _is_ours(place: Path) -> bool:
    """Whether it is a file of this user and no link: what it names is run when results are read (docs/adr/0075)."""
    try:
        found = place.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1


def _remove(place: Path) -> None:
    """Whatever has the name of an index; of a link, the link."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _columns(connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """The columns of all tables and views of ours, with their types."""
    return connection.execute(
        "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
    ).fetchall()


@cache
def _usual_columns() -> list[tuple[object, ...]]:
    import duckdb

    with duckdb.connect(":memory:") as connection:
        create(connection)
        return _columns(connection)


def _fits(folder: ResultsFolder, place: Path) -> bool:
    """Whether the index exists and is complete."""
    import duckdb

    if not _is_ours(place):
        return False
    try:
        with _connect(place, read_only=True) as connection:
            if _columns(connection) != _usual_columns():
                return False
            found = additions(connection, folder, folder_state(folder))
            return found is not None and found.are_none
    except duckdb.Error:
        return False


def _extended(folder: ResultsFolder, place: Path, private: Path) -> bool:
    """Whether the index could be brought up to date, as the file `private`."""
    import duckdb

    try:
        shutil.copyfile(place, private)
        with _connect(private, read_only=False) as connection:
            if _columns(connection) != _usual_columns():
                return False
            state = folder_state(folder)
            new = additions(connection, folder, state)
            if new is None or _redefines(connection, new):
                return False
            extend(connection, folder, state, new, is_new=False)
        return True
    except (DuplicatesError, duckdb.Error):
        return False


def _redefines(connection: duckdb.DuckDBPyConnection, new: Additions) -> bool:
    """Whether new documents change what was read before: a machine that is known better now, or what was missing."""
    if not new.documents:
        return False
    ((damaged,),) = connection.execute("SELECT count(*) FROM stored.damaged").fetchall()
    return any(kind == "machines" for kind, _ in new.documents) or damaged > 0


def _made(folder: ResultsFolder, private: Path) -> None:
    with _connect(private, read_only=False) as connection:
        state = folder_state(folder)
        create(connection)
        spans = [FileSpan(name, 0, state.sizes[name]) for name in state.files]
        extend(connection, folder, state, Additions(spans, list(state.documents)), is_new=True)


def _connect(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": _MEMORY,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "temp_directory": f"{path}.tmp",
    }
    return duckdb.connect(str(path), read_only=read_only, config=config)


@contextmanager
def _place(folder: ResultsFolder) -> Iterator[Path]:
    """The file of the index in the user's cache; a temporary one if the cache cannot be used."""
    try:
        top = own_cache().path / "index"
        str(top).encode()  # DuckDB takes no other paths
        make_folder(top)
        check_folder(top)
    except (OSError, UnicodeError, CacheError, BuildError):
        with temporary_folder("index") as private:
            yield private / "index.duckdb"
        return
    of_folder = hashlib.sha256(os.fsencode(folder.path.resolve())).hexdigest()[:24]
    place = top / f"{of_folder}-{_made_by()}.duckdb"
    for old in top.glob(f"{of_folder}-*.duckdb"):
        if old != place:
            _remove(old)  # of another version
    yield place


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """One process at a time makes an index; without locks on the file system, several make the same."""
    path = place.with_suffix(".lock")
    if not _is_ours(path):
        _remove(path)
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


_DEPENDS_ON = ("analysis", "applications", "benchmarks", "diagnosis", "machine", "model", "stats", "store")
"""The packages whose files decide what an index contains."""


@cache
def _made_by() -> str:
    """Identifies the code that makes an index: its version, the library's, and the state of our files."""
    import duckdb

    found = hashlib.sha256(f"{_VERSION} {__version__} {duckdb.__version__}".encode())
    top = Path(__file__).parents[2]
    for name in _DEPENDS_ON:
        for path in sorted(
            path for path in (top / name).rglob("*.*") if path.suffix in (".py", ".sql", ".toml", ".txt")
        ):
            seen = path.stat()
            found.update(f"{path.relative_to(top)} {seen.st_size} {seen.st_mtime_ns}".encode())
    return found.hexdigest()[:16]
