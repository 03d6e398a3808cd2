"""Programs in environment modules: found in module files that are not run, and loaded where the site file says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.engine.kinds.external import found_program
from seatrial.environments.installed import NotInstalledError, NotLoadedError, find_interpreter
from seatrial.environments.modules import NoModuleError, load_modules, module_with
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import External
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.environment.site import Site
from seatrial.plan.site_file import read_site
from seatrial.plan.site_in_force import use_site_within

LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")


def tool(name: str) -> External:
    return External(
        name=name,
        install="install it",
        output="stdout",
        arguments=lambda params, directory: [],
        parse=lambda data: ProgramRecord(),
        version=("--version",),
    )


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in two versions and their modules, as EasyBuild writes them (Lua), in a MODULEPATH of their own."""
    for version in ("2023", "2024"):
        program = tmp_path / f"apps/solver/{version}/bin/solve_it"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\necho "Solver {version} ${{SOLVER_DATA-without data}}"\n')
        program.chmod(0o755)
        file = tmp_path / f"files/chem/solver/{version}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f'os.execute("touch {tmp_path}/was-run")\n'
            f'local root = "{program.parent.parent}"\n'
            'prepend_path("PATH", pathJoin(root, "bin"))\n'
            'setenv("SOLVER_DATA", "it\'s \\"here\\" \\\\ $HOME")\n'
            'unsetenv("SOLVER_BAD")\n'
        )
    monkeypatch.setenv("MODULEPATH", f"{tmp_path}/files")
    for name in ("LMOD_CMD", "MODULES_CMD"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_newest_module_with_a_program_is_named_and_not_run(modules: Path) -> None:
    found = module_with("solve_it", os.environ)
    assert found == ("chem/solver/2024", modules / "apps/solver/2024/bin/solve_it")
    assert module_with("solve_that", os.environ) is None
    assert not (modules / "was-run").exists()


@pytest.mark.parametrize(
    "text", ["prepend-path PATH $root/bin", 'prepend_path("PATH", root .. "/bin")', "setenv X ${R}/usr/bin"]
)
def test_a_computed_path_names_no_folder_of_the_system(text: str, tmp_path: Path) -> None:
    """`$root/bin` is not /bin."""
    (tmp_path / "solver").write_text(f"#%Module\n{text}\n")
    assert module_with("sh", {"MODULEPATH": str(tmp_path)}) is None


def test_a_missing_program_names_the_module_and_the_remedy(modules: Path) -> None:
    with pytest.raises(NotLoadedError) as caught:
        found_program(tool("solve_it"))
    path = modules / "apps/solver/2024/bin/solve_it"
    assert caught.value.message == f"solve_it is not on PATH; the module chem/solver/2024 has {path}"
    assert caught.value.todo == (
        "module load chem/solver/2024, or write `programs: {solve_it: module load chem/solver/2024}` in the site file"
    )
    with pytest.raises(NotInstalledError) as other:
        found_program(tool("solve_that"))
    assert (other.value.message, other.value.todo) == ("solve_that is not on PATH", "install it")


def test_another_program_of_the_application_may_be_in_a_module(modules: Path) -> None:
    first = tool("solve_that")
    with pytest.raises(NotLoadedError) as caught:
        found_program(External(**{**_fields(first), "alternatives": (tool("solve_it"),)}))
    assert caught.value.message.startswith("solve_it is not on PATH; the module chem/solver/2024")


def test_a_library_of_python_is_found_in_the_module_of_the_site_file(
    modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = modules / "torch/lib"
    (folder / "torch").mkdir(parents=True)
    (folder / "torch/__init__.py").write_text("")
    path = Path(sys.executable).parent
    answer = f"import os\nos.environ['PYTHONPATH'] = {str(folder)!r}\nos.environ['PATH'] = {str(path)!r}\n"
    monkeypatch.setenv("LMOD_CMD", made_up_command(modules, answer))
    with use_site_within(site("programs: {PyTorch: module load pytorch/2}"), None):
        found = find_interpreter("torch", "install it", name="PyTorch")
        assert found.modules == ("pytorch/2",) and dict(found.changes)["PYTHONPATH"] == str(folder)
        with pytest.raises(NotInstalledError, match="import jax after module load pytorch/2"):
            find_interpreter("jax", "install it", name="PyTorch")


def _fields(program: External) -> dict[str, object]:
    return {name: getattr(program, name) for name in ("name", "install", "output", "arguments", "parse", "version")}


def site(text: str) -> Site:
    return read_site(text.encode(), "site.yaml")


def made_up_command(folder: Path, answer: str, status: int = 0, said: str = "") -> str:
    """A module command that prints this."""
    (folder / "answer").write_text(answer)
    (folder / "said").write_text(said)
    command = folder / "modulecmd"
    command.write_text(
        f'#!/bin/sh\necho "$*" > {folder}/asked\ncat {folder}/said >&2\ncat {folder}/answer\nexit {status}\n'
    )
    command.chmod(0o755)
    return str(command)


def of_environment_modules(path: str) -> str:
    """What Environment Modules 5.2.0 printed, with other paths."""
    return f"""import os
os.environ['__MODULES_LMALTNAME'] = 'solver/2023&as|solver/default&as|solver/latest'
os.environ['PATH'] = '{path}'
os.environ['LOADEDMODULES'] = 'solver/2023'
os.environ['SOLVER_BAD'] = ''
del os.environ['SOLVER_BAD']
os.environ['SOLVER_DATA'] = 'it\\'s "here"'
_mlstatus = True
"""


def test_a_program_of_a_module_runs_with_its_variables(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = of_environment_modules(f"{modules}/apps/solver/2023/bin:{os.environ['PATH']}")
    monkeypatch.setenv("MODULES_CMD", made_up_command(modules, answer))
    with use_site_within(site("programs: {solve_it: module load gcc/12 solver/2023}"), None):
        _, found = found_program(tool("solve_it"))
    assert (modules / "asked").read_text() == "python load gcc/12 solver/2023\n"
    assert found.path == modules / "apps/solver/2023/bin/solve_it"
    assert (found.version, found.modules) == ('Solver 2023 it\'s "here"', ("gcc/12", "solver/2023"))
    changes = dict(found.changes)
    assert changes["SOLVER_BAD"] is None and changes["SOLVER_DATA"] == 'it\'s "here"'
    assert not any(name.startswith("_") for name in changes)
    assert found.document()["program"]["modules"] == ["gcc/12", "solver/2023"]
    assert found.key != replace(found, modules=()).key, "the same file with other libraries is another program"


@pytest.mark.parametrize(
    ("answer", "status", "said", "reason"),
    [
        (
            "_mlstatus = False\n",
            1,
            'Lmod: unknown:\n"solver/7"\n',
            'module load solver/7 fails: Lmod: unknown: "solver/7"',
        ),
        ("import os\n", 0, "nothing to do", "module load solver/7 changes nothing: nothing to do"),
        ("os.system('id')\n", 0, "", "is not understood (line 1 is not an assignment to a variable)"),
        ("import os\nos.environ['A'] = open('/etc/passwd').read()\n", 0, "", "line 2 is not an assignment"),
        ("os.environ[1] = 'x'\n", 0, "", "line 1 is not an assignment"),
        ("import sys\n", 0, "", "line 1 is not an assignment"),
        ("if [ x ]; then\n", 0, "", "is not understood (invalid syntax"),
    ],
)
def test_what_is_no_list_of_variables_is_refused(
    answer: str, status: int, said: str, reason: str, tmp_path: Path
) -> None:
    variables = {**os.environ, "LMOD_CMD": made_up_command(tmp_path, answer, status, said)}
    with pytest.raises(NoModuleError) as caught:
        load_modules(["solver/7"], variables)
    assert reason in caught.value.message and caught.value.need == "module"


def test_without_a_module_command_the_error_says_what_sets_it(modules: Path) -> None:
    of_site = site("programs: {solve_it: module load solver/2023}")
    with use_site_within(of_site, None), pytest.raises(NoModuleError) as caught:
        found_program(tool("solve_it"))
    assert caught.value.message == "module load solver/2023: there is no module command here"
    assert "LMOD_CMD or MODULES_CMD" in caught.value.todo


def test_a_module_without_the_program_is_told(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODULES_CMD", made_up_command(modules, "os.environ['A'] = 'b'\n"))
    of_site = site("programs: {solve_that: module load solver/2023}")
    with use_site_within(of_site, None), pytest.raises(NotInstalledError) as caught:
        found_program(tool("solve_that"))
    assert caught.value.message == "solve_that is not on PATH after module load solver/2023"


@pytest.mark.parametrize("names", ["load", "load -q x", "load a;b", "purge", "load $(id)"])
def test_other_commands_are_refused(names: str) -> None:
    with pytest.raises(UsageError) as caught:
        site(f"programs: {{solve_it: {json.dumps(f'module {names}')}}}")
    assert "module load NAME/VERSION" in str(caught.value)


@pytest.mark.real
def test_lmod_loads_a_module(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not LMOD.exists() or subprocess.run([LMOD, "--version"], capture_output=True).returncode:
        pytest.skip("needs Lmod (apt install lmod)")
    monkeypatch.setenv("LMOD_CMD", str(LMOD))
    monkeypatch.setenv("SOLVER_BAD", "1")
    with use_site_within(site("programs: {solve_it: module load chem/solver/2023}"), None):
        _, found = found_program(tool("solve_it"))
    assert found.path == modules / "apps/solver/2023/bin/solve_it"
    assert found.version == 'Solver 2023 it\'s "here" \\ $HOME'
    assert dict(found.changes)["SOLVER_BAD"] is None
    with pytest.raises(NoModuleError) as caught:
        load_modules(["chem/solver/1999"])
    assert "chem/solver/1999" in caught.value.message
