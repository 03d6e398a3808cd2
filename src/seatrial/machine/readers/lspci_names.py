"""Names that lspci prints instead of numbers: PCI classes, vendors, and devices whose name shows their kind.

lspci takes its names from the PCI ID database (https://pci-ids.ucw.cz, the file pci.ids); classes are those of the PCI
Code and ID Assignment Specification. A name missing here stays unknown: nothing is guessed from similar names.
"""

from __future__ import annotations

import re

from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import DeviceKind

UNKNOWN_CLASS = "0000"
"""Stands for the class of a function if the text does not state it (see `PciPart`)."""

_CLASS_NAMES = """
0000 Non-VGA unclassified device|0001 VGA compatible unclassified device|0005 Image coprocessor
0100 SCSI storage controller
0101 IDE interface|0102 Floppy disk controller|0103 IPI bus controller|0104 RAID bus controller|0105 ATA controller
0106 SATA controller|0107 Serial Attached SCSI controller|0108 Non-Volatile memory controller
0109 Universal Flash Storage controller|0180 Mass storage controller|0200 Ethernet controller
0201 Token ring network controller|0202 FDDI network controller|0203 ATM network controller|0204 ISDN controller
0205 WorldFip controller|0206 PICMG controller|0207 Infiniband controller|0208 Fabric controller|0280 Network controller
0300 VGA compatible controller|0301 XGA compatible controller|0302 3D controller|0380 Display controller
0400 Multimedia video controller|0401 Multimedia audio controller|0402 Computer telephony device|0403 Audio device
0480 Multimedia controller|0500 RAM memory|0501 FLASH memory|0502 CXL|0580 Memory controller|0600 Host bridge
0601 ISA bridge|0602 EISA bridge|0603 MicroChannel bridge|0604 PCI bridge|0605 PCMCIA bridge|0606 NuBus bridge
0607 CardBus bridge|0608 RACEway bridge|0609 Semi-transparent PCI-to-PCI bridge|060a InfiniBand to PCI host bridge
0680 Bridge|0700 Serial controller|0701 Parallel controller|0702 Multiport serial controller|0703 Modem
0704 GPIB controller|0705 Smard Card controller|0705 Smart Card controller|0780 Communication controller|0800 PIC
0801 DMA controller|0802 Timer|0803 RTC|0804 PCI Hot-plug controller|0805 SD Host controller|0806 IOMMU
0880 System peripheral|0899 Timing Card|0900 Keyboard controller|0901 Digitizer Pen|0902 Mouse controller
0903 Scanner controller|0904 Gameport controller|0980 Input device controller|0a00 Generic Docking Station
0a80 Docking Station|0b00 386|0b01 486|0b02 Pentium|0b10 Alpha|0b20 Power PC|0b30 MIPS|0b40 Co-processor
0c00 FireWire (IEEE 1394)|0c01 ACCESS Bus|0c02 SSA|0c03 USB controller|0c04 Fibre Channel|0c05 SMBus|0c06 InfiniBand
0c07 IPMI Interface|0c07 IPMI SMIC interface|0c08 SERCOS interface|0c09 CANBUS|0c80 Serial bus controller
0d00 IRDA controller|0d01 Consumer IR controller|0d10 RF controller|0d11 Bluetooth|0d12 Broadband|0d20 802.1a controller
0d21 802.1b controller|0d80 Wireless controller|0e00 I2O|0f01 Satellite TV controller
0f02 Satellite audio communication controller|0f03 Satellite voice communication controller
0f04 Satellite data communication controller|1000 Network and computing encryption device
1010 Entertainment encryption device|1080 Encryption controller|1100 DPIO module|1101 Performance counters
1110 Communication synchronizer|1120 Signal processing management|1180 Signal processing controller
1200 Processing accelerators|1201 SNIA Smart Data Accelerator Interface (SDXI) controller
1300 Non-Essential Instrumentation|4000 Coprocessor|ff00 Unassigned class
"""

CLASS_BY_NAME = {
    entry[5:].casefold(): entry[:4] for line in _CLASS_NAMES.split("\n") for entry in line.split("|") if entry
}
"""Class name as lspci prints it, case-folded (older databases write "USB Controller") -> base class and subclass."""

_VENDOR_NAMES = """
1000 Broadcom / LSI|1000 LSI Logic / Symbios Logic|1002 Advanced Micro Devices, Inc. [AMD/ATI]
1002 Advanced Micro Devices [AMD] nee ATI|1002 ATI Technologies Inc|1013 Cirrus Logic|1014 IBM
1022 Advanced Micro Devices, Inc. [AMD]|1022 Advanced Micro Devices [AMD]|102b Matrox Electronics Systems Ltd.
102b Matrox Graphics, Inc.|104c Texas Instruments|1077 QLogic Corp.|108e Oracle/SUN|10b5 PLX Technology, Inc.
10de NVIDIA Corporation|10df Emulex Corporation|10ec Realtek Semiconductor Co., Ltd.|10ee Xilinx Corporation
1137 Cisco Systems Inc|1172 Altera Corporation|126f Silicon Motion, Inc.|1344 Micron Technology Inc
1414 Microsoft Corporation|1425 Chelsio Communications Inc|144d Samsung Electronics Co Ltd
14e4 Broadcom Inc. and subsidiaries|14e4 Broadcom Limited|14e4 Broadcom Corporation|15ad VMware
15b3 Mellanox Technologies|15b7 Sandisk Corp|15b7 SanDisk Corp|177d Cavium, Inc.|17cb Qualcomm Technologies, Inc
18ca XGI Technology Inc. (eXtreme Graphics Innovation)|1924 Solarflare Communications
1987 Phison Electronics Corporation
19e5 Huawei Technologies Co., Ltd.|1a03 ASPEED Technology, Inc.|1ae0 Google, Inc.|1b21 ASMedia Technology Inc.
1bb1 Seagate Technology PLC|1c5c SK hynix|1cc1 ADATA Technology Co., Ltd.|1d0f Amazon.com, Inc.|1da3 Habana Labs Ltd.
1e0f KIOXIA Corporation|2646 Kingston Technology Company, Inc.|80ee InnoTek Systemberatung GmbH|8086 Intel Corporation
9005 Adaptec|c0a9 Micron/Crucial Technology|1af4 Red Hat, Inc.
"""

_VENDORS = tuple(
    sorted(
        ((entry[5:], entry[:4]) for line in _VENDOR_NAMES.split("\n") for entry in line.split("|") if entry),
        key=lambda pair: -len(pair[0]),
    )
)
_RED_HAT_QEMU = re.compile(r"QEMU|QXL")  # Red Hat has two vendor ids; QEMU's own devices use 1b36

_IDS = re.compile(r"(?:(.*) )?\[?\b([0-9a-f]{4}):([0-9a-f]{4})\]?\Z", re.DOTALL)
_UNNAMED = re.compile(r"(.*?) ?\bDevice(?: ([0-9a-f]{4}))?\Z", re.DOTALL)


class PciIdentity(Frozen):
    """Vendor and name of a function, as far as stated; ids have four hex digits."""

    vendor_id: str | None = None
    device_id: str | None = None
    vendor: str | None = None
    name: str | None = None


def read_identity(text: str) -> PciIdentity:
    """Parse lspci's text for vendor and device: names, numbers (-n), or both (-nn).

    "NVIDIA Corporation GA102GL [RTX A6000] [10de:2230]", "10de:2230", "Intel Corporation Device 0998", "Device
    1234:1111". A known vendor name gives the vendor id; with an unknown one, vendor and device cannot be separated and
    `name` is the whole text.
    """
    vendor_id = device_id = None
    ids = _IDS.match(text)
    if ids is not None:
        text, vendor_id, device_id = ids[1] or "", ids[2], ids[3]
    vendor, known_id, name = _split_vendor(text)
    unnamed = _UNNAMED.match(name)
    if unnamed is not None and (not unnamed[1] or (vendor is None and unnamed[2])):
        device_id = device_id or unnamed[2]
        vendor, name = vendor or unnamed[1] or None, ""
    return PciIdentity(vendor_id or known_id, device_id, vendor, name or None)


def _split_vendor(text: str) -> tuple[str | None, str | None, str]:
    for vendor, vendor_id in _VENDORS:
        if text[: len(vendor)].casefold() == vendor.casefold() and text[len(vendor) : len(vendor) + 1] in ("", " "):
            name = text[len(vendor) + 1 :]
            return text[: len(vendor)], "1b36" if vendor_id == "1af4" and _RED_HAT_QEMU.match(name) else vendor_id, name
    return None, None, text


_NVIDIA_SWITCHES = frozenset({"1af1", "22a3"})  # on A100 and H100 boards
_NVIDIA_GPUS = frozenset(
    {
        "1db1", "1db2", "1db3", "1db4", "1db5", "1db6", "1db7", "1db8", "1df5", "1df6", "1eb8", "20b0", "20b1", "20b2",
        "20b3", "20b5", "20b7", "20f1", "20f3", "20f5", "20f6", "2235", "2236", "2237", "25b6", "26b5", "26b9", "27b8",
        "2322", "2324", "2330", "2331", "2336", "2339",
    }
)  # fmt: skip
"""Data centre GPUs, V100 to H100: with an ID database older than the device, lspci prints only its number."""

_AMD_GPUS = frozenset({"66a0", "66a1", "738c", "738e", "7408", "740c", "740f", "74a0", "74a1"})  # Instinct
_MELLANOX_NICS = frozenset(
    {
        "1003", "1004", "1007", "1013", "1014", "1015", "1016", "1017", "1018", "1019", "101a", "101b", "101c", "101d",
        "101e", "101f", "1021", "1023", "a2d2", "a2d6", "a2dc",
    }
)  # fmt: skip

_NVIDIA_GPU = re.compile(
    r"\w{2,8} ?\[(?:GeForce|Quadro|Tesla|RTX|TITAN|GRID|NVS\b|CMP|[ABHLT]\d{1,4}\w?\b|G[BH]\d{3}\b)[^\[\]]*\]\Z"
)
_AMD_GPU = re.compile(r"[^\[\]]*\[[^\[\]]*\b(?:Radeon|Instinct|FirePro)\b[^\[\]]*\]\Z")
_INTEL_GPU = re.compile(r"[^\[\]]*\[Data Center GPU [^\[\]]*\]\Z")
_NO_GPU = re.compile(r"Audio|HDMI|USB|Bridge|Switch|Controller|Port\b|Function", re.IGNORECASE)

_MELLANOX_NIC = re.compile(r"\[ConnectX|\bintegrated\b.*\bnetwork controller\b")
_NO_NIC = re.compile(r"Recovery|Bridge|Management|Switch|Auxiliary|Programmable|Audio|USB|SATA|RAID", re.IGNORECASE)
_NIC = re.compile(
    r"\bEthernet (?:Controller|Connection|(?:Network |Server |Converged Network )?Adapter|Virtual Function)\b"
    r"|\bGigabit Network Connection\b|\bElastic Network Adapter\b|\bOmni-Path HFI\b"
    r"|\bVirtio (?:1\.0 )?network device\b",
    re.IGNORECASE,
)
_NVME = re.compile(r"\bNVMe (?:SSD|EBS)\b|\bNVMe Datacenter SSD\b|\bPCIe Data Center SSD\b|\bNVM Express Controller\b")
_NO_NVME = re.compile(r"RAID|Bridge|Switch|Virtual Function", re.IGNORECASE)


def kind_by_name(identity: PciIdentity) -> DeviceKind | None:
    """The kind of a function, if its ids or name determine it without the class; else None."""
    vendor, device, name = identity.vendor_id, identity.device_id, identity.name or ""
    if vendor == "10de":
        if device in _NVIDIA_SWITCHES or name.endswith("NVSwitch]"):
            return DeviceKind.SWITCH
        if device in _NVIDIA_GPUS or _NVIDIA_GPU.match(name):
            return DeviceKind.GPU
    if vendor == "1002" and (device in _AMD_GPUS or (_AMD_GPU.match(name) and not _NO_GPU.search(name))):
        return DeviceKind.GPU
    if vendor == "8086" and _INTEL_GPU.match(name):
        return DeviceKind.GPU
    is_mellanox = vendor == "15b3" and (device in _MELLANOX_NICS or _MELLANOX_NIC.search(name))
    if (is_mellanox or _NIC.search(name)) and not _NO_NIC.search(name):
        return DeviceKind.NIC
    if _NVME.search(name) and not _NO_NVME.search(name):
        return DeviceKind.NVME
    return None
