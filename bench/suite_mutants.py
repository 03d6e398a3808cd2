"""Mutation testing: plants faults in src/seatrial one at a time, and runs the tests against each.

The test suite must pass without faults. The tree is not modified: the script works in copies of its tracked files.
mutation.py creates and draws the faults. Each is tested with the tests that ran its line, if the coverage data names
any. Otherwise the order is: the fast tests of its package, all other fast tests, then the tests marked `real` that a
map (--select), the coverage data or the table AREAS in mutant_tests.py names, or else all of them. For programs and
kernels the other fast tests come last. The first failing test is repeated without the fault; if it fails again, the
result is "unclear". To record coverage, run `python -m pytest --cov=seatrial --cov-context=test` (pytest-cov).
Variables such as SEATRIAL_TEST_CACHE are passed on.

python bench/suite_mutants.py [--count 60] [--seed 13] [--native 0.33] [--list] [--only 3,7] [--jobs 2]
                              [--coverage-data .coverage] [--select map.json] [--mutants record.json] [-o record.json]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mutant_tests import ROOT, SOURCES, Selection, test_folder
from mutation import NATIVE, Mutant, draw, find_again

# A pytest plugin that deselects all tests except those listed in a file.
CHOOSER = """
import os, pathlib
def pytest_collection_modifyitems(config, items):
    wanted = set(pathlib.Path(os.environ["SUITE_MUTANTS_TESTS"]).read_text().splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
    items[:] = [item for item in items if item.nodeid in wanted]
"""
NOTHING_RAN = 5  # pytest's exit status


def main() -> None:
    """Draw the mutants, run the tests, print the summary."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    tracked = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True)
    files = [name for name in tracked.stdout.split("\0") if name and (ROOT / name).is_file()]
    texts = {
        name: (ROOT / name).read_bytes().decode()
        for name in files
        if name.startswith(SOURCES) and name.endswith((".py", *NATIVE))
    }
    record = _drawn(options, texts) if options.mutants is None else _found_again(options.mutants, texts)
    if options.output is not None and options.output.exists():
        _take_over(record, json.loads(options.output.read_text(encoding="utf-8")))
    _keep(record, options.output)
    if not options.list:
        todo = [
            one
            for one in record["mutants"]
            if one["verdict"] is None and (not options.only or one["number"] in options.only)
        ]
        _run_all(todo, files, Selection(options.select, options.coverage_data), options, record)
    _print_summary(record, options.only)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60, help="number of mutants (default: 60)")
    parser.add_argument(
        "--seed",
        type=int,
        default=13,
        help="seed of the draw; the same tree and seed give the same mutants (default: 13)",
    )
    parser.add_argument(
        "--native", type=float, default=0.33, help="share of mutants in programs and kernels (default: 0.33)"
    )
    parser.add_argument(
        "--mutants", type=Path, help="locate the mutants of this record in this tree instead of drawing new ones"
    )
    parser.add_argument("--list", action="store_true", help="draw the mutants without running tests")
    parser.add_argument(
        "--only", type=lambda text: {int(word) for word in text.split(",")}, help="run only these mutants, such as 3,7"
    )
    parser.add_argument("--fast", action="store_true", help="skip tests marked real")
    parser.add_argument("--select", type=Path, help='{"src/...py": {"line": [tests]}, "src/...cpp": [test files]}')
    parser.add_argument("--coverage-data", type=Path, help="data file of coverage.py with test contexts")
    parser.add_argument(
        "--limit",
        type=float,
        default=20.0,
        help="minutes per mutant; a mutant that takes longer counts as caught (default: 20)",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="number of copies of the tree to use in parallel (default: 1)"
    )
    parser.add_argument("-o", "--output", type=Path, help="record; if it exists, only missing mutants are run")
    return parser.parse_args()


def _drawn(options: argparse.Namespace, texts: Mapping[str, str]) -> dict[str, Any]:
    mutants, broken = draw(texts, options.seed, options.count, options.native, _compiles)
    return {
        "seed": options.seed,
        "native": options.native,
        "does_not_compile": [mutant.document() for mutant in broken],
        "mutants": [_entry(number, mutant.document()) for number, mutant in enumerate(mutants, start=1)],
    }


def _found_again(path: Path, texts: Mapping[str, str]) -> dict[str, Any]:
    """The mutants of a record, located in this tree, with their numbers."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for place, one in enumerate(record["mutants"]):
        found = find_again(Mutant.from_document(one), texts)
        entry = _entry(one["number"], one if found is None else found.document())
        record["mutants"][place] = entry | ({"verdict": "not found"} if found is None else {})
    return record


def _entry(number: int, document: Mapping[str, Any]) -> dict[str, Any]:
    return {"number": number, **document, "verdict": None, "by": None, "stage": None, "note": "", "seconds": 0.0}


def _take_over(record: dict[str, Any], earlier: Mapping[str, Any]) -> None:
    """Copy the verdicts of an earlier run."""
    identity = ("file", "line", "column", "before", "after")
    mutants = {tuple(one[name] for name in identity): one for one in record["mutants"]}
    for one in earlier["mutants"]:
        if one["verdict"] in (None, "not found", "unclear"):
            continue
        same = mutants.get(tuple(one[name] for name in identity))
        if same is None:
            sys.exit(
                f"the existing record has different mutants ({one['file']}:{one['line']}): choose another output file"
            )
        same.update({name: one[name] for name in ("verdict", "by", "stage", "note", "seconds")})


def _keep(record: Mapping[str, Any], output: Path | None) -> None:
    if output is not None:
        half = output.with_name(output.name + ".part")
        half.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        half.replace(output)


@cache
def _mpi_flags() -> tuple[str, ...]:
    for asked in ("--showme:compile", "-compile-info"):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            done = subprocess.run(["mpicc", asked], check=True, capture_output=True, text=True)
            return tuple(word for word in done.stdout.split() if word.startswith(("-I", "-D")))
    return ()


def _compiles(mutant: Mutant) -> bool:
    """Whether it compiles. Also true if the file does not compile without the fault, since nothing is known then."""
    if not mutant.is_native or mutant.file.endswith(".cl"):
        return True
    source = (ROOT / mutant.file).read_bytes().decode()
    return _is_taken(mutant.file, mutant.applied(source)) or not _is_taken(mutant.file, source)


@cache
def _is_taken(file: str, text: str) -> bool:
    folder = ROOT / SOURCES / "native"
    if "profiler/native" in file:
        compiler = ["gcc", "-x", "c", "-std=c11", "-D_GNU_SOURCE", "-I", str(ROOT / SOURCES / "profiler" / "native")]
    else:
        compiler = ["g++", "-x", "c++", "-std=c++20", '-DSEATRIAL_BUILD="none"', *_mpi_flags()]
    command = [*compiler, "-w", "-fsyntax-only", "-I", str(folder), "-I", str((ROOT / file).parent), "-"]
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True).returncode == 0
    except FileNotFoundError:
        return False


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy of the tree, and the folder for temporary files of its tests, which identifies their processes."""

    tree: Path
    temporary: Path

    @classmethod
    def made(cls, home: Path, files: Sequence[str]) -> _Copy:
        """Copy the tracked files; link `shared` if it is next to the tree."""
        copy = cls(home / ROOT.name, home / "t")
        for name in files:
            (copy.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy.tree / name, follow_symlinks=False)
        if (ROOT.parent / "shared").exists():
            (home / "shared").symlink_to((ROOT.parent / "shared").resolve())
        (home / "suite_mutants_chooser.py").write_text(CHOOSER, encoding="utf-8")
        where = "import seatrial, sys; sys.exit(not seatrial.__file__.startswith(sys.argv[1]))"
        if subprocess.run([sys.executable, "-c", where, str(copy.tree)], env=copy.environment()).returncode != 0:
            sys.exit("Python does not import seatrial from the copy of the tree")
        return copy

    def environment(self) -> dict[str, str]:
        """The current environment, with this copy first on the path."""
        paths = [str(self.tree / "src"), str(self.tree.parent), os.environ.get("PYTHONPATH", "")]
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "TMPDIR": str(self.temporary),
            "SUITE_MUTANTS_TESTS": str(self.tree.parent / "tests.txt"),
        }

    def tests(self, mark: str, tests: Sequence[str], seconds: float) -> tuple[int, str]:
        """Run tests (files, folders, ids, options) up to the first failure; return the exit status and that test.

        Raises subprocess.TimeoutExpired.
        """
        ids = [test for test in tests if "::" in test]
        (self.tree.parent / "tests.txt").write_text("\n".join(ids), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
        command += ["-m", mark, *(["-p", "suite_mutants_chooser"] if ids else [])]
        command += list(dict.fromkeys(test.partition("::")[0] for test in tests))
        self.temporary.mkdir(exist_ok=True)
        process = subprocess.Popen(
            command,
            cwd=self.tree,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=max(1.0, seconds))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            self.tidy()
            process.wait()
        first = re.search(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", output, re.MULTILINE)
        return process.returncode, first[1] if first else ""

    def tidy(self) -> None:
        """End processes that the tests left running, identified by their temporary folder, and empty that folder."""
        mark = f"TMPDIR={self.temporary}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    os.kill(int(folder.name), signal.SIGKILL)
        for left in (self.temporary, self.tree / ".hypothesis"):
            shutil.rmtree(left, ignore_errors=True)

    @contextlib.contextmanager
    def with_fault(self, mutant: Mutant, number: int) -> Iterator[None]:
        """Apply a fault to the copy. The modification time changes too, so that Python ignores old .pyc files."""
        path = self.tree / mutant.file
        whole, times = path.read_bytes(), path.stat()
        path.write_bytes(mutant.applied(whole.decode()).encode())
        os.utime(path, (times.st_atime, times.st_mtime + 2 * number))
        try:
            yield
        finally:
            path.write_bytes(whole)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _decide(one: dict[str, Any], copy: _Copy, selection: Selection, options: argparse.Namespace) -> None:
    """Run the tests against one mutant, and store the result in its entry."""
    mutant, start, limit = Mutant.from_document(one), time.monotonic(), 60 * options.limit
    verdict, by, note, stage = "survived", "", "", ""
    with copy.with_fault(mutant, one["number"]):
        for name, mark, tests in _stages(mutant, selection, options.fast):
            if not tests:
                continue
            stage = name
            try:
                status, by = copy.tests(mark, tests, limit - (time.monotonic() - start))
            except subprocess.TimeoutExpired:
                verdict, note = "timeout", f"over {options.limit:g} min"
                break
            if status not in (0, NOTHING_RAN):
                verdict = "caught"
                break
    seconds = round(time.monotonic() - start, 1)
    if verdict == "caught" and by and _fails_alone(copy, by, limit):
        verdict, note = "unclear", "the test also fails without the fault"
    if verdict == "survived":
        stage, note = "", selection.without_a_test(mutant)
    if verdict == "caught" and not by:
        note = "no test was collected, or pytest ended without naming one"
    one.update(verdict=verdict, by=by or None, stage=stage or None, note=note, seconds=seconds)


def _fails_alone(copy: _Copy, test: str, limit: float) -> bool:
    try:
        mark = "real or not real" if "::" in test else "not real"  # a file that could not be collected
        return copy.tests(mark, [test], limit)[0] not in (0, NOTHING_RAN)
    except subprocess.TimeoutExpired:
        return True


def _stages(mutant: Mutant, selection: Selection, is_fast: bool) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Name, mark and tests of each stage. Fast tests cover little of programs and kernels, so they come last there."""
    if tests := selection.of_line(mutant):
        yield "same line", "not real" if is_fast else "real or not real", tests
        return
    folder = test_folder(mutant.file)
    others = ("fast, others", "not real", ["tests", *([f"--ignore={folder}"] if folder else [])])
    yield "fast, same package", "not real", [folder] if folder else []
    if not mutant.is_native:
        yield others
    if not is_fast:
        yield from ((name, "real", tests) for name, tests in selection.stages(mutant))
    if mutant.is_native:
        yield others


def _run_all(
    todo: Sequence[dict[str, Any]],
    files: Sequence[str],
    selection: Selection,
    options: argparse.Namespace,
    record: Mapping[str, Any],
) -> None:
    copies: queue.SimpleQueue[_Copy] = queue.SimpleQueue()
    made: list[_Copy] = []
    lock, is_over = threading.Lock(), threading.Event()

    def run_one(one: dict[str, Any]) -> None:
        if is_over.is_set():
            return
        copy, entry = copies.get(), dict(one)
        try:
            _decide(entry, copy, selection, options)
        finally:
            copies.put(copy)
        with lock:
            if not is_over.is_set():
                one.update(entry)
                _keep(record, options.output)
                print(_line(one), flush=True)

    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # tests start programs as other users
        for number in range(min(options.jobs, len(todo))):
            made.append(_Copy.made(Path(folder) / str(number), files))
            copies.put(made[-1])
        with ThreadPoolExecutor(max(1, options.jobs)) as pool:
            runs = [pool.submit(run_one, one) for one in todo]
            try:
                for run in runs:
                    run.result()
            finally:
                is_over.set()
                while not all(run.done() for run in runs):  # stopped by the user or an error
                    for copy in made:
                        copy.tidy()
                    time.sleep(0.2)


def _line(one: Mapping[str, Any]) -> str:
    """One mutant as text."""
    verdict = {"survived": "SURVIVED", "caught": "caught by", None: "not run"}.get(one["verdict"], one["verdict"])
    result = " ".join(filter(None, (verdict, one["by"], f"({one['note']})" if one["note"] else "")))
    return (
        f"{one['number']:3} {one['file']}:{one['line']}  {one['operator']}  {one['seconds']:.0f} s  {result}\n"
        f"    - {one['before'].strip()}\n    + {one['after'].strip()}"
    )


def _print_summary(record: Mapping[str, Any], only: set[int] | None) -> None:
    mutants = [one for one in record["mutants"] if not only or one["number"] in only]
    print(
        f"\nseed {record['seed']}, {len(mutants)} mutants; drawn but not compiling: {len(record['does_not_compile'])}"
    )
    for one in mutants:
        print(_line(one))
    for kind, is_native in (("Python", False), ("native", True)):
        verdicts = [one["verdict"] or "not run" for one in mutants if one["file"].endswith(NATIVE) == is_native]
        counted = [f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts))]
        print(f"{kind}: {', '.join(counted) or 'none'}")


if __name__ == "__main__":
    main()
