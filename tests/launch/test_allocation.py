"""The allocation of a process, from the variables of batch systems, and what its nodes print of themselves."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from made_up import made_up_machine

from seatrial.errors import UsageError
from seatrial.launch.allocation import Allocated, allocated, like_nodes, named_hosts, srun_words, ssh_words
from seatrial.launch.node_probe import machines_in, node_lines
from seatrial.model.machine.machine import Allocation, Machine

SLURM = {"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": "n[08-10]"}


def test_slurm() -> None:
    found = allocated(SLURM, "n09.site.org")
    assert found is not None
    assert (found.source, found.nodes, found.starter) == ("Slurm job 12", ("n08", "n09", "n10"), "srun")
    assert found.this == "n09"


def test_slurms_name_of_the_node_comes_before_its_host_name() -> None:
    found = allocated({**SLURM, "SLURMD_NODENAME": "n10"}, "localhost")
    assert found is not None and found.this == "n10"


def test_a_login_node_is_not_in_the_allocation() -> None:
    found = allocated(SLURM, "login1")
    assert found is not None and found.this is None


def test_a_task_of_several_measures_its_own_node() -> None:
    task = {**SLURM, "SLURM_PROCID": "1"}
    assert allocated({**task, "SLURM_STEP_NUM_TASKS": "2"}, "n09") is None
    assert allocated({**task, "SLURM_STEP_NUM_TASKS": "1"}, "n09") is not None


def test_a_damaged_list_is_refused() -> None:
    with pytest.raises(UsageError, match="SLURM_JOB_NODELIST"):
        allocated({**SLURM, "SLURM_JOB_NODELIST": "n[1-"}, "n1")


@pytest.mark.parametrize(
    ("job", "file", "source"),
    [("PBS_JOBID", "PBS_NODEFILE", "PBS job 7"), ("LSB_JOBID", "LSB_DJOB_HOSTFILE", "LSF job 7")],
)
def test_a_file_with_a_line_for_each_slot(tmp_path: Path, job: str, file: str, source: str) -> None:
    (tmp_path / "nodes").write_text("a.x\na.x\nb.x\n")
    found = allocated({job: "7", file: str(tmp_path / "nodes")}, "a")
    assert found is not None
    assert (found.source, found.nodes, found.starter, found.this) == (source, ("a.x", "b.x"), "ssh", "a.x")
    with pytest.raises(UsageError, match="No such file"):
        allocated({job: "7", file: str(tmp_path / "missing")}, "a")


def test_no_allocation_and_hosts_of_the_site_file() -> None:
    assert allocated({"PATH": "/bin"}, "n1") is None
    found = named_hosts(("n1", "n2"), "partition a:b", "n2")
    assert found is not None and found.this == "n2"
    assert named_hosts((), "partition a:b", "n2") is None


def test_nodes_that_print_at_the_same_time_are_told_apart() -> None:
    machines = {name: replace(made_up_machine(cores=number), name=name) for number, name in enumerate(("n1", "n2"), 2)}
    lines = [line for name, machine in machines.items() for line in node_lines(name, machine)]
    random.Random(1).shuffle(lines)
    found = machines_in("\n".join(["Warning: unknown host key", *lines, "seatrial-node n3 0 2 eJw"]))
    assert {name: machine.allowed_cpus for name, machine in found.items()} == {
        name: machine.allowed_cpus for name, machine in machines.items()
    }


def test_a_damaged_description_is_refused() -> None:
    with pytest.raises(UsageError, match="n3 printed of itself cannot be read"):
        machines_in("seatrial-node n3 0 1 eJwxxx")


def test_the_commands_that_reach_nodes() -> None:
    words = srun_words(("n1", "n2"), ["probe", "a b"])
    assert words[:3] == ["srun", "--nodes=2", "--ntasks=2"] and words[-2:] == ["probe", "a b"]
    assert "--nodelist=n1,n2" in words and "--overlap" in words
    assert ssh_words("n1", ["probe", "a b"])[-3:] == ["--", "n1", "probe 'a b'"]


def allocation_of(
    tmp_path: Path, others: dict[str, Machine], this: Machine, last: str = "exit 0", here: str = "n1"
) -> Allocation:
    """Like nodes of an allocation of `here` (this node) and the others, of which srun prints what they are."""
    printed = "\n".join(line for name, machine in others.items() for line in node_lines(name, machine))
    (tmp_path / "printed").write_text(printed + "\n")
    (tmp_path / "srun").write_text(f"#!/bin/sh\ncat {tmp_path}/printed\n{last}\n")
    (tmp_path / "srun").chmod(0o755)
    variables = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-3]", "PATH": f"{tmp_path}:/usr/bin:/bin"}
    found = allocated(variables, here)
    assert found is not None
    return like_nodes(found, this, variables)


def asked(tmp_path: Path, others: dict[str, Machine], this: Machine, last: str = "exit 0") -> list[str]:
    allocation = allocation_of(tmp_path, others, this, last)
    return [*allocation.names, *(f"{one.name}: {one.why}" for one in allocation.left_out)]


def test_the_order_of_the_batch_system_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    this = made_up_machine(cores=4)
    allocation = allocation_of(tmp_path, {"n1": this, "n3": this}, this, here="n2")
    assert allocation.names == ("n2", "n1", "n3")
    assert [node.name for node in allocation.first(2)] == ["n1", "n2"]


def test_unlike_and_silent_nodes_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    this = made_up_machine(cores=4)
    assert asked(tmp_path, {"n2": this, "n3": this}, this) == ["n1", "n2", "n3"]
    assert asked(tmp_path, {"n2": this, "n3": made_up_machine(cores=2)}, this) == [
        *("n1", "n2"),
        "n3: 2 usable CPUs instead of 4, 2 usable cores instead of 4, 2 cores instead of 4, 2 hardware threads instead "
        "of 4",
    ]
    assert asked(tmp_path, {"n3": this}, this, "echo n2 is down >&2; exit 1") == ["n1", "n3", "n2: srun: n2 is down"]


def test_the_nodes_of_a_flux_job(tmp_path: Path) -> None:
    flux = tmp_path / "flux"

    def variables(answer: str, **more: str) -> dict[str, str]:
        flux.write_text(f'#!/bin/sh\n[ "$*" = "getattr hostlist" ] || exit 9\n{answer}\n')
        flux.chmod(0o755)
        return {"PATH": f"{tmp_path}:/usr/bin:/bin", "FLUX_ENCLOSING_ID": "f12", **more}

    found = allocated(variables("echo 'n[1-3]'"), "n2.cluster")
    assert found == Allocated("Flux job f12", ("n1", "n2", "n3"), "ssh", "n2")
    several = variables("echo n1", FLUX_TASK_RANK="0", FLUX_JOB_SIZE="4")
    assert allocated(several, "n1") is None, "each measures its own node"
    for answer, said in (("echo no broker >&2; exit 1", "no broker"), ("echo 'n[1-'", "hostlist")):
        with pytest.raises(UsageError, match=said):
            allocated(variables(answer), "n1")
