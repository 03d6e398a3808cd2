"""A text of each kind of dump of a fabric, in each of its forms: "<kind> <form>" -> text. Made up for the tests."""

from __future__ import annotations

from fabric.made_up_fabrics import FatTree

TREE = FatTree(pods=2, leaves=3, nodes=3, spines=2, cores=2)
TOPOLOGY = "SwitchName=top Switches=s[0-2]\n" + "".join(f"SwitchName=s{n} Nodes=n[{n}0-{n}7]\n" for n in range(3))
YAML = (
    "- topology: a\n  tree:\n    switches:\n      - switch: top\n        children: s[0-1]\n"
    "      - switch: s0\n        nodes: n[1-4]\n      - switch: s1\n        nodes: n[5-8]\n"
    "- topology: b\n  block:\n    block_sizes: [4]\n    blocks:\n      - block: b1\n        nodes: n[1-4]\n"
)
PERFQUERY = """\
# Port extended counters: Lid 7 port 3 (CapMask: 0x5300 CapMask2: 0x0000002)
PortSelect:......................3
CounterSelect:...................0x0000
PortXmitData:....................178791657177
PortRcvData:.....................178762341961
PortXmitPkts:....................393094651
PortRcvPkts:.....................387654829
SymbolErrorCounter:..............4
LinkErrorRecoveryCounter:........0
LinkDownedCounter:...............1
PortRcvErrors:...................0
PortRcvSwitchRelayErrors:........7
PortXmitDiscards:................20
PortXmitWait:....................4186
QP1Dropped:......................0
"""
IBQUERYERRORS = """\
Errors for 0x1000 "MF0;leaf-0-0:MQM8700/U1"
   GUID 0x1000 port ALL: [SymbolErrorCounter == 250] [LinkDownedCounter == 3] [PortXmitWait == 9]
   GUID 0x1000 port 2: [SymbolErrorCounter == 250] [LinkDownedCounter == 3]
   GUID 0x1000 port 3: [PortXmitWait == 9]
Errors for "n00002 mlx5_0"
   GUID 0x100002 port 1: [LinkDownedCounter == 2]

## Summary: 16 nodes checked, 2 bad nodes found
##          226 ports checked, 3 ports have errors beyond threshold
## Thresholds:
## Suppressed:
"""
IBSWINFO = """\
=================================================
 leaf-0-0
=================================================
part number        | MQM8790-HS2F
serial number      | MT0000X00000
product name       | Jaguar Unmng IB 200
revision           | AH
ports              | 80
PSID               | MT_0000000063
GUID               | 0x0000000000001000
firmware version   | 27.2010.4102
-------------------------------------------------
uptime (d-h:m:s)   | 67d-04:19:16
-------------------------------------------------
PSU0 status        | OK
     P/N           | MTEF-PSF-AC-C
     S/N           | MT0000X00001
     DC power      | OK
     fan status    | OK
     power (W)     | 287
PSU1 status        | OK
     P/N           | MTEF-PSF-AC-C
     DC power      | ERROR
     fan status    | ERROR
-------------------------------------------------
temperature (C)    | 47
max temp (C)       | 52
warn threshold (C) | 70/105 (low/high)
-------------------------------------------------
fan status         | OK
fan#1 (rpm)        | 5959
fan#2 (rpm)        | 5293
-------------------------------------------------
"""
IBSWINFO_STATUS = """\
psu0.status        : OK
psu0.dc            : OK
psu0.fan           : OK
psu1.status        : ERROR
psu1.dc            : ERROR
psu1.fan           : ERROR
fans               : OK
"""
IBSWINFO_VITALS = """\
uptime (sec)       : 5804356
psu0.power (W)     : 72
psu1.power (W)     : 71
cur.temp (C)       : 45
max.temp (C)       : 57
fan#1.speed (rpm)  : 8493
fan#2.speed (rpm)  : 0
"""
OPAFABRICINFO = """\
Fabric 0:0 Information:
SM: n03 hfi1_0 Guid: 0x0011750101701541 State: Master
SM: n04 hfi1_0 Guid: 0x0011750101701542 State: Standby
Number of HFIs: 16
Number of Switches: 2
Number of Links: 20
Number of HFI Links: 16             (Internal: 0   External: 16)
Number of ISLs: 4                   (Internal: 0   External: 4)
Number of Degraded Links: 1         (HFI Links: 1   ISLs: 0)
Number of Omitted Links: 0          (HFI Links: 0   ISLs: 0)
-------------------------------------------------------------------------------
"""
DUMPS = {
    "ibnetdiscover": TREE.ibnetdiscover(),
    "iblinkinfo": TREE.iblinkinfo(),
    "iblinkinfo -l": TREE.iblinkinfo_lines(),
    "slurm-topology": TOPOLOGY,
    "slurm-topology yaml": YAML,
    "perfquery": PERFQUERY,
    "ibqueryerrors": IBQUERYERRORS,
    "ibswinfo": IBSWINFO,
    "ibswinfo -o status": IBSWINFO_STATUS,
    "ibswinfo -o vitals": IBSWINFO_VITALS,
    "opafabricinfo": OPAFABRICINFO,
}
