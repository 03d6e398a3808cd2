"""Machines for the rules about the state of GPUs, and about counters of saved outputs: name of a finding -> a machine
that has it, and some that do not."""

from __future__ import annotations

import pytest
from analysis.made_up_nodes import gpu, nic

from seatrial.analysis.rules import findings
from seatrial.model.machine.fact import FactValue
from seatrial.model.machine.machine import Machine


def of_gpu(**facts: FactValue) -> Machine:
    return Machine("m", (gpu("gpu-0", **facts), gpu("gpu-1")))


def of_nic(**facts: FactValue) -> Machine:
    return Machine("m", (nic("eth0", **facts),))


CASES = {
    "gpu-lost": (of_gpu(is_lost=True), [of_gpu(is_lost=False)]),
    "gpu-reset-required": (of_gpu(reset_required=True), [of_gpu(reset_required=False, recovery_action="none")]),
    "gpu-slowed-down": (
        of_gpu(slowed_by_heat=True, slowed_by_hardware=True, temperature_C=90),
        [of_gpu(slowed_by_heat=False), of_gpu(clocks_idle=True)],
    ),
    "gpu-was-slowed": (of_gpu(slowed_by_heat_time=3.5), [of_gpu(slowed_by_heat_time=0.0)]),
    "gpu-hot": (
        of_gpu(temperature_C=92, temperature_slowdown_C=91),
        [
            of_gpu(temperature_C=80, temperature_slowdown_C=91),
            of_gpu(temperature_C=0, temperature_slowdown_C=0),
            of_gpu(temperature_C=60, temperature_margin_C=26),
        ],
    ),
    "gpu-power-limit": (
        of_gpu(power_limit=500.0, power_limit_default=700.0),
        [of_gpu(power_limit=700.0, power_limit_default=700.0), of_gpu(power_limit=700.0)],
    ),
    "gpu-power-capped": (
        of_gpu(power_capped=True, power_draw=699.0, power_limit=700.0),
        [of_gpu(power_capped=True, power_draw=12.0, power_limit=175.0)],  # of an idle card
    ),
    "gpu-memory-errors": (
        of_gpu(ecc_uncorrectable_volatile=1),
        [of_gpu(ecc_uncorrectable_volatile=0, ecc_uncorrectable_aggregate=0, ecc_correctable_volatile=177)],
    ),
    "gpu-memory-pages": (of_gpu(retired_pages_uncorrectable=12), [of_gpu(retired_pages_uncorrectable=0)]),
    "gpu-fabric-not-ready": (
        of_gpu(fabric_state="in progress"),
        [of_gpu(fabric_state="completed", fabric_status="success"), of_gpu(fabric_state="n/a", fabric_status="n/a")],
    ),
    "gpu-persistence-off": (of_gpu(persistence_mode=False), [of_gpu(persistence_mode=True)]),
    "gpu-mode-pending": (
        of_gpu(mig_mode="disabled", mig_mode_pending="enabled"),
        [of_gpu(mig_mode="disabled", mig_mode_pending="disabled"), of_gpu(mig_mode="disabled")],
    ),
    "link-errors-counted": (of_nic(rx_crc_errors=7), [of_nic(rx_crc_errors=0), of_nic(rx_bytes=7)]),
    "link-events-counted": (of_nic(link_downed=1), [of_nic(link_downed=0)]),
    "link-discards-counted": (
        of_nic(rx_discards_phy=10, packets_received=1000),
        [of_nic(rx_discards_phy=0, packets_received=1000), of_nic(rx_dropped=10)],
    ),
    "link-pauses-counted": (of_nic(tx_pause_ctrl_phy=10), [of_nic(tx_pause_ctrl_phy=0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_fires_only_where_it_should(name: str) -> None:
    fires, quiet = CASES[name]
    assert name in {finding.rule for finding in findings(fires, ())}
    for machine in quiet:
        assert name not in {finding.rule for finding in findings(machine, ())}
