"""MPI settings as variables of each library, from made-up control variables and from installed libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.environments import mpi_settings
from seatrial.environments.mpi import find_mpis
from seatrial.environments.mpi_settings import (
    ControlVariable,
    ControlVariables,
    NoSettingError,
    control_variables,
    portable,
    setting_variables,
)
from seatrial.errors import BuildError
from seatrial.model.environment.mpi import Mpi, MpiFamily

GLUED = (
    "Variable to select allreduce algorithmauto - Internal algorithm selection (can be overridden with "
    "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE)nb                       - Force nonblocking algorithmsmp"
    "                      - Force smp algorithmrecursive_doubling       - Force recursive doubling algorithm"
    "reduce_scatter_allgather - Force reduce scatter allgather algorithm"
)
"""As MPICH 4.0 prints it: the line ends are lost."""
LINES = "Variable to select bcast algorithm\nauto - by itself\nbinomial      - Force Binomial Tree\nnew_one - newer"
STRICT = ("MPIR_CVAR_COLLECTIVE_FALLBACK", "MPIR_CVAR_DEVICE_COLLECTIVES", "MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE")
Answer = Callable[[ControlVariables], None]


def mpi(family: str, version: str = "4.1.4", library: str = "/lib/libmpi.so") -> Mpi:
    return Mpi(family, MpiFamily(family), version, Path(library), "id", (), (), None)


def told(
    variables: Mapping[str, Sequence[str]], texts: Mapping[str, str] | None = None, version: str = ""
) -> ControlVariables:
    """Enumerations by the names of their items, counted from 0, and help texts."""
    known = {name: ControlVariable(tuple(enumerate(items)), "") for name, items in variables.items()}
    return ControlVariables(version, {**known, **{n: ControlVariable((), text) for n, text in (texts or {}).items()}})


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    return lambda variables: monkeypatch.setattr(mpi_settings, "control_variables", lambda mpi: variables)


OPENMPI = told(
    {
        "coll_tuned_allreduce_algorithm": ("ignore", "basic_linear", "recursive_doubling", "ring", "rabenseifner"),
        "coll_tuned_alltoall_algorithm": ("ignore", "linear", "pairwise", "modified_bruck"),
        "coll_libnbc_iallreduce_algorithm": ("ignore", "ring"),
        "btl_tcp_links": (),
        "btl_vader_free_list_num": (),
        "btl_sm_free_list_num": (),
        "pml_ucx_tls": (),
        "pml_ucx_devices": (),
    }
)
MPICH = told(
    dict.fromkeys((*STRICT, "MPIR_CVAR_NOLOCAL"), ()),
    {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": GLUED, "MPIR_CVAR_BCAST_INTRA_ALGORITHM": LINES},
    "MPICH Version:\t4.0.2\nMPICH Device:\tch4:ucx\nMPICH configure:\t--with-device=ch4:ucx",
)


def chosen(library: Mpi, name: str, value: str) -> dict[str, str]:
    return dict(setting_variables(library, [(name, value)]))


def test_open_mpi_gets_the_number_and_the_component_that_obeys(answer: Answer) -> None:
    answer(OPENMPI)
    assert chosen(mpi("openmpi"), "collective_algorithm", "allreduce:ring") == {
        "OMPI_MCA_coll_tuned_allreduce_algorithm": "3",
        "OMPI_MCA_coll_tuned_priority": "100",
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    }
    assert chosen(mpi("openmpi"), "collective_algorithm", "iallreduce:ring") == {
        "OMPI_MCA_coll_libnbc_iallreduce_algorithm": "1",
        "OMPI_MCA_coll_libnbc_priority": "100",
    }
    both = chosen(mpi("openmpi"), "collective_algorithm", "alltoall:bruck+allreduce:linear")
    assert both["OMPI_MCA_coll_tuned_alltoall_algorithm"] == "3"
    assert both["OMPI_MCA_coll_tuned_allreduce_algorithm"] == "1"


def test_mpich_gets_the_name_and_must_not_use_another_algorithm(answer: Answer) -> None:
    answer(MPICH)
    assert chosen(mpi("mpich"), "collective_algorithm", "allreduce:rabenseifner") == {
        "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "reduce_scatter_allgather",
        "MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE": "0",
        "MPIR_CVAR_COLLECTIVE_FALLBACK": "error",
        "MPIR_CVAR_DEVICE_COLLECTIVES": "percoll",
    }
    newer = chosen(mpi("mpich"), "collective_algorithm", "bcast:new-one")
    assert newer["MPIR_CVAR_BCAST_INTRA_ALGORITHM"] == "new_one" and "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE" not in newer


@pytest.mark.parametrize(
    ("library", "value", "words"),
    [
        (mpi("openmpi"), "allreduce:recursive-dubling", ("did you mean recursive-doubling", "linear, rabenseifner")),
        (mpi("openmpi"), "allreduce:ignore", ("no algorithm ignore",)),
        (mpi("openmpi"), "gatherv:linear", ("has no setting for the algorithm of gatherv", "auto")),
        (
            mpi("mpich"),
            "allreduce:ring",
            ("MPICH 4.1.4 has no algorithm ring", "nb, rabenseifner, recursive-doubling, smp"),
        ),
        (mpi("mpich"), "allreduce:auto", ("no algorithm auto",)),
        (mpi("mpich"), "allreduce:doubling", ("no algorithm doubling",)),
        (mpi("intel"), "allreduce:ring", ("numbers, not names", "I_MPI_ADJUST_ALLREDUCE")),
    ],
)
def test_an_unavailable_setting_is_an_error_that_lists_the_available_ones(
    answer: Answer, library: Mpi, value: str, words: Sequence[str]
) -> None:
    answer(OPENMPI if library.family is MpiFamily.OPENMPI else MPICH)
    with pytest.raises(NoSettingError) as caught:
        setting_variables(library, [("collective_algorithm", value)])
    assert all(word in str(caught.value) for word in words), caught.value


def test_transports_of_open_mpi(answer: Answer) -> None:
    answer(OPENMPI)
    assert chosen(mpi("openmpi"), "transport", "shm") == {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader"}
    assert chosen(mpi("openmpi", "5.0.11"), "transport", "shm")["OMPI_MCA_btl"] == "self,sm"
    assert chosen(mpi("openmpi"), "transport", "tcp") == {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp"}
    ucx = {"OMPI_MCA_pml": "ucx", "OMPI_MCA_pml_ucx_tls": "any", "OMPI_MCA_pml_ucx_devices": "any"}
    assert chosen(mpi("openmpi"), "transport", "ucx") == ucx
    with pytest.raises(NoSettingError, match="no transport ofi\n  it has shm, tcp, ucx"):
        chosen(mpi("openmpi"), "transport", "ofi")


def test_transports_of_mpich_are_those_of_its_device(answer: Answer) -> None:
    answer(MPICH)
    assert chosen(mpi("mpich"), "transport", "shm") == {"MPIR_CVAR_NOLOCAL": "0"}
    assert chosen(mpi("mpich"), "transport", "ucx") == {"MPIR_CVAR_NOLOCAL": "1"}
    assert chosen(mpi("mpich"), "transport", "tcp") == {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}
    with pytest.raises(NoSettingError, match="no transport ofi\n  it has ucx, tcp, shm"):
        chosen(mpi("mpich"), "transport", "ofi")
    answer(told({"MPIR_CVAR_NOLOCAL": ()}, version="MPICH Device:       ch4:ucx ofi"))
    assert chosen(mpi("mpich"), "transport", "ofi") == {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi"}
    assert chosen(mpi("mpich"), "transport", "tcp")["FI_PROVIDER"] == "tcp"
    answer(told({"MPIR_CVAR_NOLOCAL": ()}, version="MPICH Device: ch3:nemesis"))
    with pytest.raises(NoSettingError, match="it has shm"):
        chosen(mpi("mpich"), "transport", "tcp")


def test_intel_mpi_needs_no_control_variables() -> None:
    assert chosen(mpi("intel"), "transport", "shm") == {"I_MPI_FABRICS": "shm"}
    assert chosen(mpi("intel"), "collective_algorithm", "allreduce:8") == {"I_MPI_ADJUST_ALLREDUCE": "8"}


def test_binding_needs_no_variables_and_other_settings_are_errors(answer: Answer) -> None:
    answer(OPENMPI)
    assert setting_variables(mpi("openmpi"), [("binding", "none")]) == ()
    with pytest.raises(NoSettingError):
        setting_variables(mpi("openmpi"), [("eagerness", "7")])


@given(st.text(alphabet="abc_-09 \n", max_size=300))
def test_any_help_text_is_accepted(text: str) -> None:
    assert all(name for name in mpi_settings._named_in_help(text))


def test_names() -> None:
    own = ("recursive_doubling", "basic_linear", "modified_bruck", "reduce_scatter_allgather", "sched_ring", "tsp_ring")
    assert [portable(name) for name in own] == [
        "recursive-doubling",
        "linear",
        "bruck",
        "rabenseifner",
        "ring",
        "tsp-ring",
    ]


def test_a_library_without_control_variables_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "libmpi.so").write_bytes(b"no library")
    with pytest.raises(BuildError):
        control_variables(mpi("openmpi", library=str(tmp_path / "libmpi.so")))


@pytest.mark.real
@pytest.mark.parametrize("family", ["openmpi", "mpich"])
def test_the_libraries_of_this_machine_list_their_settings(family: str) -> None:
    library = next((found for found in find_mpis() if found.family == family), None)
    if library is None:
        pytest.skip(f"needs {family}")
    variables = control_variables(library)
    assert len(variables.variables) > 100 and variables.version
    found = chosen(library, "collective_algorithm", "allreduce:recursive-doubling+bcast:binomial")
    assert sum(name.lower().endswith("algorithm") for name in found) == 2
    assert all(name.removeprefix("OMPI_MCA_") in variables for name in found)
    assert chosen(library, "transport", "tcp") != chosen(library, "transport", "shm")
