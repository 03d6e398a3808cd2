"""Where to run beside a device, in the words of numactl, Open MPI, Slurm and MPICH."""

from __future__ import annotations

from analysis.made_up_nodes import beside, cpu_tree, gpu, nic
from hypothesis import given
from hypothesis import strategies as st

from seatrial.analysis.rank_layout import Binding, bindings, cpu_mask, joined
from seatrial.model.machine.machine import Affinity, Device, Machine

FIRST = (0, 1, 2, 3, 8, 9, 10, 11)
"""The CPUs of node 0 of `cpu_tree()`."""


def bound(
    *devices: Device, affinity: tuple[Affinity, ...] = (), allowed: tuple[int, ...] = (), tree: bool = True
) -> tuple[Binding, ...]:
    cpus = cpu_tree() if tree else ()
    return bindings(Machine("m", (*cpus, *devices), affinity=affinity, allowed_cpus=allowed))


def test_a_whole_node_is_named_as_a_node() -> None:
    (found,) = bound(gpu("gpu-0", 0), affinity=(beside("gpu-0", FIRST, 0),))
    assert (found.device, found.cpus, found.numa) == ("gpu-0", FIRST, 0)
    assert found.numactl == "numactl --cpunodebind=0 --membind=0"
    assert found.mpirun == "mpirun --bind-to none numactl --cpunodebind=0 --membind=0"
    assert found.srun == "srun --cpu-bind=mask_cpu:0xf0f --mem-bind=local"
    assert found.mpich == "mpiexec -n 1 -bind-to user:0+1+2+3+8+9+10+11"


def test_a_part_of_a_node_is_named_by_its_cpus() -> None:
    (found,) = bound(gpu("gpu-0", 1), affinity=(beside("gpu-0", (4, 5, 6, 12), 1),))
    assert found.numactl == "numactl --physcpubind=4-6,12 --membind=1"


def test_without_a_tree_nobody_knows_that_a_list_is_a_whole_node() -> None:
    (found,) = bound(gpu("GPU0"), affinity=(beside("GPU0", FIRST, 0),), tree=False)
    assert found.numactl == "numactl --physcpubind=0-3,8-11 --membind=0"
    (found,) = bound(gpu("GPU0"), affinity=(beside("GPU0", (0, 1)),), tree=False)
    assert found.numactl == "numactl --physcpubind=0-1" and found.numa is None


def test_a_device_without_a_list_stands_beside_the_cpus_of_its_node() -> None:
    for affinity in ((), (beside("mlx5_0", None, 0),)):
        (found,) = bound(nic("mlx5_0", 0), affinity=affinity)
        assert found.cpus == FIRST and found.numactl == "numactl --cpunodebind=0 --membind=0"


def test_what_is_not_told_is_null_and_never_a_guess() -> None:
    nothing = (None, None, None, None, None)
    for device, affinity, tree in (
        (gpu("g"), (), True),
        (gpu("g"), (beside("g", (), 1),), True),  # the list is told, and empty
        (gpu("g"), (beside("g", None, 1),), False),
        (gpu("g", 7), (), True),  # a node without CPUs
    ):
        (found,) = bound(device, affinity=affinity, tree=tree)
        assert (found.cpus, found.numactl, found.mpirun, found.srun, found.mpich) == nothing


def test_only_cpus_that_may_be_used_are_named() -> None:
    (found,) = bound(gpu("g", 0), affinity=(beside("g", FIRST, 0),), allowed=(2, 3, 4, 5))
    assert found.cpus == (2, 3) and found.numactl == "numactl --physcpubind=2-3 --membind=0"
    (found,) = bound(gpu("g", 0), affinity=(beside("g", FIRST, 0),), allowed=(4, 5))
    assert found.cpus is None and found.numactl is None and found.numa == 0


def test_a_cpu_number_of_a_damaged_source_fills_no_screen() -> None:
    (found,) = bound(gpu("g"), affinity=(beside("g", (0, 1 << 40), None),), tree=False)
    assert found.srun is None and found.cpus == (0, 1 << 40)


@given(st.sets(st.integers(0, 1023), min_size=1))
def test_masks_and_lists_say_the_same_cpus(cpus: set[int]) -> None:
    mask = cpu_mask(cpus)
    assert mask is not None
    assert {bit for bit in range(1024) if int(mask, 16) >> bit & 1} == cpus
    assert {int(word) for word in joined(cpus).split("+")} == cpus
