"""The energy that Slurm accounts, by what its commands print (Slurm 22.05; ConsumedJoules as older ones had it)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from seatrial.model.machine.power import PowerSource, Scope
from seatrial.probes.power.slurm import Gathering, read_gathering, read_steps, read_values, sensors
from seatrial.probes.power.sources import read_all

CONFIG = """Configuration data as of 2026-11-29T22:12:45
AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages
AcctGatherEnergyType    = {}
AcctGatherFilesystemType = acct_gather_filesystem/none
AcctGatherNodeFreq      = {} sec
AcctGatherProfileType   = acct_gather_profile/none
JobAcctGatherFrequency  = {}
JobAcctGatherType       = jobacct_gather/linux
"""
NODE = """NodeName=n1 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=0 CPUEfctv=2 CPUTot=2 CPULoad=4.61
   CapWatts=n/a
   {}
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s
"""
JOB = "JobId=1 JobName=sh\n   OverSubscribe={} Contiguous=0 Licenses=(null) Network=(null)\n"


class Cluster:
    def __init__(
        self,
        plugin: str = "acct_gather_energy/ipmi",
        node_s: int = 30,
        frequency: str = "energy=10,task=30",
        values: str = "CurrentWatts=344 AveWatts=340",
        shares: str = "NO",
    ) -> None:
        self.printed = {
            "config": CONFIG.format(plugin, node_s, frequency),
            "node": NODE.format(values),
            "job": JOB.format(shares),
            "-P": "0\n\n5120\n",
        }

    def ask(self, words: Sequence[str]) -> str:
        return self.printed[words[2]]

    def read(self) -> dict[str, PowerSource]:
        return {one.name: one for one in read_all(sensors(self.ask))}


@pytest.fixture(autouse=True)
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


def test_the_power_of_a_node() -> None:
    (found,) = Cluster().read().values()
    assert (found.name, found.scope, found.watts, found.usable) == ("slurm:n1/power", Scope.NODE, 344.0, True)
    assert (found.refresh_s, found.of) == (60.0, "the node, by Slurm (ipmi)")
    old = Cluster(values="CurrentWatts=344 LowestJoules=1200 ConsumedJoules=99000").read()
    assert old["slurm:n1/energy"].joules == 99000.0
    assert Cluster(node_s=120).read()["slurm:n1/power"].refresh_s == 120.0
    (rapl,) = Cluster("acct_gather_energy/rapl").read().values()
    assert (rapl.scope, rapl.of) == (Scope.PART, "packages and memory, by Slurm (rapl)")
    (both,) = Cluster("acct_gather_energy/ipmi,acct_gather_energy/gpu").read().values()
    assert both.scope is Scope.PART


def test_what_is_not_used() -> None:
    def why(cluster: Cluster) -> str:
        (found,) = cluster.read().values()
        assert not found.usable
        return found.why

    for none in ("(null)", "acct_gather_energy/none"):
        assert why(Cluster(none)) == "Slurm has no energy plugin here (AcctGatherEnergyType)"
    assert why(Cluster(node_s=0)) == "slurmd does not read it regularly (AcctGatherNodeFreq=0)"
    assert "wrap unseen" in why(Cluster("acct_gather_energy/rapl", node_s=301))
    assert why(Cluster(values="CurrentWatts=n/s AveWatts=n/s")) == "reports no value"
    assert why(Cluster(values="CurrentWatts=4294967294 AveWatts=0")) == "reports no value"
    assert why(Cluster(values="CurrentWatts=0 AveWatts=0")).startswith("reports 0 W")


def test_the_energy_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    found = Cluster().read()
    assert (found["slurm:job 17"].joules, found["slurm:job 17"].usable) == (5120.0, True)
    for shares in ("OK", "YES", "USER"):
        shared = Cluster(shares=shares).read()
        assert {one.why.partition(",")[0] for one in shared.values()} == {"the job shares its node"}
    assert "without energy=" in Cluster(frequency="task=30").read()["slurm:job 17"].why
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    assert "slurm:job 17" not in Cluster().read()


def test_texts() -> None:
    assert read_gathering("") == Gathering((), None, None)
    assert read_values("") == {}
    assert read_steps("") is read_steps("4294967294\n") is None


def test_a_machine_without_a_cluster() -> None:
    def ask(words: Sequence[str]) -> str:
        raise OSError(0, "slurm_load_ctl_conf error: Unable to contact slurm controller")

    assert sensors(ask) == []
