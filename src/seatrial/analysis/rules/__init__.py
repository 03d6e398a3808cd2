"""Rules: pure functions from a machine and its figures to findings. `findings` applies all of them.

To add one, write a function `(Case) -> Iterable[Finding]` in the file of its concept and name it in `RULES`. A rule
reports nothing if a fact is missing: an unknown setting is not a wrong one. A problem that repeats (on eight GPUs) is
one finding with eight devices.

Severity:

* error: a part of the machine is not in use, or a figure is missing or cannot be true. Nothing should be published
  before it is explained: an experiment without a valid result, a memory module that the kernel does not see, a GPU
  without the direct links of its peers, a link measured above its capability.
* warning: it costs performance or hides hardware errors, and can be fixed or planned around.
* note (`info`): affects how to read figures or place ranks, and is normal on many machines (SMT, a link that may only
  be idle, GPUs on two sockets, a virtual machine).
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.link_rates import with_link_rates
from seatrial.analysis.rules.adapters import adapter_far, adapter_without_gpu
from seatrial.analysis.rules.blas import blas_kernels_older
from seatrial.analysis.rules.case import Case, Rule, Seen
from seatrial.analysis.rules.container import (
    container,
    cpu_quota,
    emulated_processors,
    few_cpus_allowed,
    hypervisor,
    memory_limit,
    topology_hidden,
)
from seatrial.analysis.rules.contradictions import paths_contradict_nodes
from seatrial.analysis.rules.copies import copies_slow_each_other
from seatrial.analysis.rules.cpu import boost_off, smt_on, unmitigated
from seatrial.analysis.rules.ecc import ecc_off, rows_remapped
from seatrial.analysis.rules.gpu_links import links_fewer, links_missing, links_uneven
from seatrial.analysis.rules.idle import deep_idle, deep_idle_off
from seatrial.analysis.rules.late_memory import memory_not_managed
from seatrial.analysis.rules.limits import above_ceiling, below_limit, far_below_limit
from seatrial.analysis.rules.link_counters import links_had_errors, links_were_congested
from seatrial.analysis.rules.links import link_below_capability, slot_below_card
from seatrial.analysis.rules.measured_links import link_measured
from seatrial.analysis.rules.memory import modules_unbalanced, modules_unknown, sizes_disagree, sockets_differ
from seatrial.analysis.rules.memory_kinds import fast_memory_in_nodes, memory_side_cache
from seatrial.analysis.rules.memory_slots import ecc_missing, modules_differ
from seatrial.analysis.rules.memory_speed import modules_below_rating
from seatrial.analysis.rules.misplaced import device_out_of_place, gpu_missing
from seatrial.analysis.rules.outcomes import no_figures
from seatrial.analysis.rules.pcie_settings import (
    iommu_translates,
    payload_above_port,
    payload_low,
    read_request_small,
    relaxed_ordering_off,
)
from seatrial.analysis.rules.peers import gpus_across_nodes, no_peer_access
from seatrial.analysis.rules.places import affinity_cut, node_without_devices
from seatrial.analysis.rules.ports import pcie_below_port, port_below_siblings, port_narrow
from seatrial.analysis.rules.settings import clock_source, governor, huge_pages_never, numa_balancing
from seatrial.analysis.rules.siblings import link_unlike_siblings, uplink_unlike_siblings
from seatrial.analysis.rules.sockets import sockets_divided, sockets_joined
from seatrial.analysis.rules.steadiness import two_levels, wide_spread
from seatrial.analysis.rules.uplinks import acs_redirects, shared_uplink
from seatrial.analysis.rules.waiting import waiting
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import Machine

RULES: tuple[Rule, ...] = (
    no_figures,
    blas_kernels_older,
    below_limit,
    far_below_limit,
    above_ceiling,
    wide_spread,
    two_levels,
    waiting,
    links_had_errors,
    links_were_congested,
    governor,
    boost_off,
    smt_on,
    huge_pages_never,
    numa_balancing,
    clock_source,
    deep_idle,
    deep_idle_off,
    unmitigated,
    sizes_disagree,
    memory_not_managed,
    modules_unbalanced,
    sockets_differ,
    modules_differ,
    modules_below_rating,
    modules_unknown,
    fast_memory_in_nodes,
    memory_side_cache,
    ecc_off,
    ecc_missing,
    rows_remapped,
    link_measured,
    link_below_capability,
    slot_below_card,
    link_unlike_siblings,
    uplink_unlike_siblings,
    shared_uplink,
    copies_slow_each_other,
    acs_redirects,
    iommu_translates,
    payload_low,
    payload_above_port,
    read_request_small,
    relaxed_ordering_off,
    no_peer_access,
    links_missing,
    links_fewer,
    links_uneven,
    gpu_missing,
    device_out_of_place,
    gpus_across_nodes,
    adapter_far,
    adapter_without_gpu,
    port_narrow,
    port_below_siblings,
    pcie_below_port,
    sockets_joined,
    sockets_divided,
    node_without_devices,
    paths_contradict_nodes,
    affinity_cut,
    cpu_quota,
    memory_limit,
    few_cpus_allowed,
    topology_hidden,
    emulated_processors,
    container,
    hypervisor,
)

_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


def findings(machine: Machine, results: Sequence[ExperimentResult], seen: Seen | None = None) -> tuple[Finding, ...]:
    """All findings, sorted by loss (largest first, unknown last), then by severity, then in the order of RULES.

    `seen` is what probes recorded during each repeat (see `Trial.seen`): evidence, and which GPU a figure belongs to.
    In `Case.machine`, links have the rates that copies reached over them.
    """
    seen = seen or {}
    case = Case(with_link_rates(machine, results, seen), tuple(results), seen)
    found = [finding for rule in RULES for finding in rule(case)]
    return tuple(
        sorted(_without_estimates(found), key=lambda finding: (-(finding.loss or 0.0), _RANK[finding.severity]))
    )


def _without_estimates(found: Sequence[Finding]) -> list[Finding]:
    """Without the estimated loss of GPUs that share an uplink if another finding has measured it."""
    measured = {device for finding in found if finding.rule == "copies-share-uplink" for device in finding.devices}
    return [f for f in found if f.rule != "gpus-share-uplink" or not set(f.devices) <= measured]
