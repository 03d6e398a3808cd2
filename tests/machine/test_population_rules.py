"""Population rules on servers written by hand: the verdict that knowledge of each platform demands, and its numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machine.dmi_dumps import (
    BROADWELL,
    EMPTY,
    GENOA,
    ICE_LAKE,
    MILAN,
    ROME,
    SAPPHIRE,
    SKYLAKE,
    Server,
    Slot,
    channels,
    dell,
    hpe,
    lenovo,
)

from seatrial.machine.cpu_tree import build_cpu_tree
from seatrial.machine.memory_population import judge_memory
from seatrial.machine.processor_table import processors
from seatrial.machine.processors import with_asserted_facts
from seatrial.machine.readers.dmidecode import read_dmidecode
from seatrial.machine.survey import Survey
from seatrial.model.machine.machine import Memory, Population

BALANCED, NEAR, UNBALANCED, UNKNOWN = (
    Population.BALANCED,
    Population.NEAR_BALANCED,
    Population.UNBALANCED,
    Population.UNKNOWN,
)
FIRST_12 = (1, 3, 5, 8, 10, 12)
FIRST_16 = (1, 3, 5, 7, 10, 12, 14, 16)


def judge(survey: Survey) -> Memory:
    """The memory of a dump alone, as `assemble` judges it."""
    cpus = tuple(with_asserted_facts(device) for device in build_cpu_tree([survey]))
    return judge_memory(
        survey.modules,
        survey.memory_slots,
        cpus,
        is_virtual="hypervisor" in survey.facts,
        product=survey.facts.text("product"),
    )


def _judge(server: Server) -> Memory:
    return judge(read_dmidecode(server.data()))


def _numbers(memory: Memory) -> list[tuple[int | None, int | None, int]]:
    return [(socket.channels, socket.populated_channels, socket.dimms) for socket in memory.sockets]


_CASES = [
    ("R640, six", "Dell Inc.|PowerEdge R640", [SKYLAKE] * 2, dell(12, range(1, 7)), BALANCED, (6, 6, 6)),
    ("R640, four", "Dell Inc.|PowerEdge R640", [SKYLAKE] * 2, dell(12, range(1, 5)), UNBALANCED, (6, 4, 4)),
    (
        "R640, optimizer",
        "Dell Inc.|PowerEdge R640",
        [SKYLAKE] * 2,
        dell(12, (1, 2, 4, 5, 7, 8, 10, 11)),
        UNBALANCED,
        (6, 4, 8),
    ),
    ("R640, ten", "Dell Inc.|PowerEdge R640", [SKYLAKE] * 2, dell(12, range(1, 11)), UNBALANCED, (6, 6, 10)),
    (
        "C6420, eight of eight",
        "Dell Inc.|PowerEdge C6420",
        [SKYLAKE] * 2,
        dell(8, range(1, 9)),
        UNBALANCED,
        (6, None, 8),
    ),
    ("C6420, six", "Dell Inc.|PowerEdge C6420", [SKYLAKE] * 2, dell(8, range(1, 7)), BALANCED, (6, 6, 6)),
    ("R730, eight", "Dell Inc.|PowerEdge R730", [BROADWELL] * 2, dell(12, range(1, 9)), BALANCED, (4, 4, 8)),
    ("R730, two", "Dell Inc.|PowerEdge R730", [BROADWELL] * 2, dell(12, (1, 2)), UNKNOWN, (4, 2, 2)),
    ("R6525, Rome, six", "Dell Inc.|PowerEdge R6525", [ROME] * 2, dell(16, range(1, 7)), UNBALANCED, (8, 6, 6)),
    ("R6525, Milan, six", "Dell Inc.|PowerEdge R6525", [MILAN] * 2, dell(16, range(1, 7)), NEAR, (8, 6, 6)),
    ("R6525, Rome, twelve", "Dell Inc.|PowerEdge R6525", [ROME] * 2, dell(16, range(1, 13)), NEAR, (8, 8, 12)),
    ("R6525, Rome, two", "Dell Inc.|PowerEdge R6525", [ROME] * 2, dell(16, (1, 2)), UNBALANCED, (8, 2, 2)),
    ("R750, twelve", "Dell Inc.|PowerEdge R750", [ICE_LAKE] * 2, dell(16, range(1, 13)), UNBALANCED, (8, 8, 12)),
    ("R750, four", "Dell Inc.|PowerEdge R750", [ICE_LAKE] * 2, dell(16, range(1, 5)), NEAR, (8, 4, 4)),
    (
        "R750, two a channel on four",
        "Dell Inc.|PowerEdge R750",
        [ICE_LAKE] * 2,
        dell(16, (1, 2, 3, 4, 9, 10, 11, 12)),
        NEAR,
        (8, 4, 8),
    ),
    (
        "R760, sixteen",
        "Dell Inc.|PowerEdge R760",
        [SAPPHIRE] * 2,
        dell(16, range(1, 17), type="DDR5"),
        BALANCED,
        (8, 8, 16),
    ),
    (
        "R7625, twelve",
        "Dell Inc.|PowerEdge R7625",
        [GENOA] * 2,
        dell(12, range(1, 13), type="DDR5"),
        BALANCED,
        (12, 12, 12),
    ),
    ("R7625, eight", "Dell Inc.|PowerEdge R7625", [GENOA] * 2, dell(12, range(1, 9), type="DDR5"), NEAR, (12, 8, 8)),
    (
        "R7625, seven",
        "Dell Inc.|PowerEdge R7625",
        [GENOA] * 2,
        dell(12, range(1, 8), type="DDR5"),
        UNBALANCED,
        (12, 7, 7),
    ),
    ("DL360 Gen10, six", "HPE|ProLiant DL360 Gen10", [SKYLAKE] * 2, hpe(12, FIRST_12), BALANCED, (6, 6, 6)),
    ("DL360 Gen10, pairs", "HPE|ProLiant DL360 Gen10", [SKYLAKE] * 2, hpe(12, range(1, 7)), UNBALANCED, (6, 3, 6)),
    ("DL360 Gen9, four", "HP|ProLiant DL360 Gen9", [BROADWELL] * 2, hpe(12, (1, 4, 9, 12)), BALANCED, (4, 4, 4)),
    (
        "BL460c Gen10, six of eight",
        "HPE|ProLiant BL460c Gen10",
        [SKYLAKE] * 2,
        hpe(8, range(1, 7)),
        UNKNOWN,
        (6, None, 6),
    ),
    ("BL460c Gen10, three", "HPE|ProLiant BL460c Gen10", [SKYLAKE] * 2, hpe(8, (1, 2, 3)), UNBALANCED, (6, None, 3)),
    (
        "DL360 Gen11, eight",
        "HPE|ProLiant DL360 Gen11",
        [SAPPHIRE] * 2,
        hpe(16, FIRST_16, type="DDR5"),
        BALANCED,
        (8, 8, 8),
    ),
    (
        "DL385 Gen11, twelve",
        "HPE|ProLiant DL385 Gen11",
        [GENOA] * 2,
        hpe(12, range(1, 13), type="DDR5"),
        BALANCED,
        (12, 12, 12),
    ),
    ("SR630, six", "Lenovo|ThinkSystem SR630", [SKYLAKE] * 2, lenovo(12, FIRST_12), BALANCED, (6, 6, 6)),
    ("SR630, three", "Lenovo|ThinkSystem SR630", [SKYLAKE] * 2, lenovo(12, (1, 3, 5)), UNBALANCED, (6, 3, 3)),
    ("SR590, six", "Lenovo|ThinkSystem SR590", [SKYLAKE] * 2, lenovo(8, (1, 2, 3, 6, 7, 8)), BALANCED, (6, 6, 6)),
    (
        "SR590, not the six",
        "Lenovo|ThinkSystem SR590",
        [SKYLAKE] * 2,
        lenovo(8, (1, 2, 3, 4, 5, 6)),
        UNBALANCED,
        (6, 4, 6),
    ),
    ("SR665, sixteen", "Lenovo|ThinkSystem SR665", [MILAN] * 2, lenovo(16, range(1, 17)), BALANCED, (8, 8, 16)),
    ("SR645, eight", "Lenovo|ThinkSystem SR645", [ROME] * 2, lenovo(16, FIRST_16), BALANCED, (8, 8, 8)),
    ("H12SSL, six of eight", "Supermicro|Super Server", [ROME], channels("ABCDEFGH", "BCDFGH"), UNBALANCED, (8, 6, 6)),
    ("one module", "Dell Inc.|PowerEdge R440", [SKYLAKE], dell(10, (1,), sockets="A"), UNBALANCED, (6, 1, 1)),
]


@pytest.mark.parametrize(
    ("product", "processors", "slots", "verdict", "numbers"),
    [case[1:] for case in _CASES],
    ids=[case[0] for case in _CASES],
)
def test_populations(
    product: str,
    processors: list[tuple[str, str, str]],
    slots: list[Slot],
    verdict: Population,
    numbers: tuple[int, int | None, int],
) -> None:
    memory = _judge(Server(product, processors, slots))
    assert memory.verdict is verdict, memory.why
    assert _numbers(memory) == [numbers] * len(processors)
    populated = numbers[1]
    assert memory.peak.value == (None if populated is None else len(processors) * populated * 8 * 2933e6)


def test_one_processor_of_two_is_judged_alone() -> None:
    memory = _judge(
        Server(
            "Dell Inc.|PowerEdge R740",
            [SKYLAKE, None],
            [*dell(12, range(1, 7), sockets="A"), *dell(12, (), sockets="B")],
        )
    )
    assert memory.verdict is BALANCED
    assert _numbers(memory) == [(6, 6, 6)]


def test_a_processor_without_modules_is_unbalanced() -> None:
    slots = [*dell(12, range(1, 7), sockets="A"), *dell(12, (), sockets="B")]
    memory = _judge(Server("Dell Inc.|PowerEdge R740", [SKYLAKE, SKYLAKE], slots))
    assert memory.verdict is UNBALANCED
    assert _numbers(memory) == [(6, 6, 6), (6, 0, 0)]
    assert "socket 2 has no module" in memory.why
    assert memory.peak.value == 6 * 8 * 2933e6


def test_unequal_sockets_are_unbalanced() -> None:
    slots = [*dell(12, range(1, 7), sockets="A"), *dell(12, range(1, 5), sockets="B")]
    memory = _judge(Server("Dell Inc.|PowerEdge R740", [SKYLAKE] * 2, slots))
    assert memory.verdict is UNBALANCED
    assert "unequal" in memory.why
    same_count = [*dell(12, range(1, 7), sockets="A"), *dell(12, (1, 2, 3, 7, 8, 9), sockets="B")]
    memory = _judge(Server("Dell Inc.|PowerEdge R740", [SKYLAKE] * 2, same_count))
    assert memory.verdict is UNBALANCED
    assert _numbers(memory) == [(6, 6, 6), (6, 3, 6)]


def _mixed(**second: str) -> list[Slot]:
    """Twelve slots of one socket: the first six as they are, the second six otherwise."""
    slots = dell(12, range(1, 13), sockets="A")
    return [*slots[:6], *(replace(slot, **second) for slot in slots[6:])]


@pytest.mark.parametrize(
    ("slots", "verdict", "word"),
    [
        (_mixed(size="16 GB"), NEAR, "two capacities"),
        (_mixed(size="64 GB"), UNBALANCED, "the larger of two capacities belongs in the first slot"),
        (_mixed(rank="1"), NEAR, "1 and 2 ranks"),
        (_mixed(speed="2933 MT/s"), NEAR, "2933 and 3200 MT/s rated"),
        (_mixed(configured="2666 MT/s"), UNBALANCED, "different speeds"),
        (_mixed(detail="Synchronous LRDIMM"), UNBALANCED, "LRDIMM and RDIMM must not be mixed"),
        (_mixed(rank="Unknown"), BALANCED, "every channel alike"),
    ],
)
def test_mixed_modules(slots: list[Slot], verdict: Population, word: str) -> None:
    memory = _judge(Server("Dell Inc.|PowerEdge R740", [SKYLAKE, None], [*slots, *dell(12, (), sockets="B")]))
    assert memory.verdict is verdict, memory.why
    assert word in memory.why


def test_at_most_two_capacities_and_no_mix_of_large_lrdimms() -> None:
    slots = dell(12, range(1, 13), sockets="A")
    three = [replace(slot, size=f"{(16, 32, 64)[n % 3]} GB") for n, slot in enumerate(slots)]
    assert "3 capacities" in _judge(Server("Dell Inc.|PowerEdge R740", [SKYLAKE], three)).why
    large = [replace(s, size="128 GB" if n < 6 else "64 GB", detail="Synchronous LRDIMM") for n, s in enumerate(slots)]
    memory = _judge(Server("Dell Inc.|PowerEdge R740", [SKYLAKE], large))
    assert memory.verdict is UNBALANCED
    assert "64 GB and 128 GB LRDIMMs" in memory.why


def test_two_capacities_one_to_a_channel_split_memory_into_regions() -> None:
    slots = channels("ABCDEFGH", "ABCDEFGH")
    memory = _judge(Server("ASRockRack|ROMED8-2T", [ROME], [replace(slots[0], size="16 GB"), *slots[1:]]))
    assert memory.verdict is UNBALANCED
    assert "several regions" in memory.why


def test_persistent_memory_is_no_dram() -> None:
    slots = dell(12, range(1, 13), sockets="A")
    optane = {"size": "126 GB", "type": "Logical non-volatile device", "detail": "Synchronous Non-Volatile LRDIMM"}
    mixed = [*slots[:6], *(replace(slot, **optane) for slot in slots[6:])]
    survey = read_dmidecode(Server("Dell Inc.|PowerEdge R740", [SKYLAKE], mixed).data())
    memory = judge(survey)
    assert memory.verdict is BALANCED
    assert _numbers(memory) == [(6, 6, 6)]
    assert memory.sockets[0].capacity_bytes == 6 * 32 << 30
    assert survey.facts.integer("memory_total") == 6 * 32 << 30
    assert survey.facts.integer("persistent_memory_total") == 6 * 126 << 30
    ddr_t = [*slots[:6], *(replace(slot, technology="Intel Optane DC persistent memory") for slot in slots[6:])]
    assert _numbers(_judge(Server("Dell Inc.|PowerEdge R740", [SKYLAKE], ddr_t))) == [(6, 6, 6)]


def test_letters_that_run_on_over_the_sockets() -> None:
    """ASUS: A to F at the first processor, G to M (without I) at the second."""
    slots = [
        Slot(f"DIMM_{letter}{n}", "32 GB" if n == 1 else EMPTY, "NODE 1" if letter < "G" else "NODE 2")
        for letter in "ABCDEFGHJKLM"
        for n in (1, 2)
    ]
    memory = _judge(Server("ASUSTeK COMPUTER INC.|RS720-E9-RS8-G", [SKYLAKE] * 2, slots))
    assert memory.verdict is BALANCED
    assert _numbers(memory) == [(6, 6, 6)] * 2


def test_bank_locators_that_leave_empty_slots_out() -> None:
    """Supermicro counts sockets from 0 in the bank locator and from 1 in the locator; empty slots have "NO DIMM"."""
    names = ("A1", "A2", "B1", "C1", "D1", "D2", "E1", "F1")
    slots = [
        Slot(
            f"P{cpu}-DIMM{name}",
            "32 GB" if name[1] == "1" else EMPTY,
            f"P{cpu - 1}_Node0_Channel0_Dimm0" if name == "A1" else "NO DIMM",
        )
        for cpu in (1, 2)
        for name in names
    ]
    memory = _judge(Server("Supermicro|X11DPi-N", [SKYLAKE] * 2, slots))
    assert memory.verdict is BALANCED
    assert _numbers(memory) == [(6, 6, 6)] * 2


def test_one_bank_locator_for_all_is_not_believed() -> None:
    slots = [Slot(f"Slot {n}", "32 GB", "P0_Node0_Channel0_Dimm0") for n in range(6)]
    memory = _judge(Server("ACME|X", [SKYLAKE], [*slots, Slot("Slot 6")]))
    assert memory.verdict is UNKNOWN
    assert _numbers(memory) == [(6, None, 6)]


@pytest.mark.parametrize("product", ["Dell Inc.|PowerEdge R740", "ACME|Unheard of"])
def test_a_table_is_that_vendors_alone(product: str) -> None:
    memory = _judge(Server(product, [SKYLAKE], dell(12, range(1, 7), sockets="A")))
    assert memory.verdict is (BALANCED if "Dell" in product else UNKNOWN)


def test_without_processors_little_is_known() -> None:
    """`dmidecode -t memory`: how many channels there are is not reported."""
    server = Server("Dell Inc.|PowerEdge R740", [SKYLAKE] * 2, dell(12, range(1, 7)), types=frozenset({16, 17}))
    memory = _judge(server)
    assert memory.verdict is UNKNOWN
    assert memory.peak.value is None
    assert _numbers(memory) == [(None, None, 6)] * 2
    full = _judge(replace(server, slots=dell(16, range(1, 17))))
    assert full.verdict is BALANCED, "every slot is filled alike"
    assert full.peak.value is None
    eight = _judge(replace(server, slots=dell(8, range(1, 9))))
    assert eight.verdict is UNKNOWN, "with six channels, eight slots are two channels of two and four of one"
    lone = _judge(replace(server, slots=[*dell(12, range(1, 13), sockets="A"), *dell(12, (), sockets="B")]))
    assert lone.verdict is UNKNOWN, "the second socket may have a processor"


def test_processors_by_name_alone() -> None:
    """Without a signature, the model name tells the platform."""
    for (maker, _, version), count in (
        (SKYLAKE, 6),
        (ICE_LAKE, 8),
        (SAPPHIRE, 8),
        (ROME, 8),
        (GENOA, 12),
        (BROADWELL, 4),
    ):
        memory = _judge(Server("ACME|X", [(maker, "", version)], dell(12, (1,), sockets="A")))
        assert memory.sockets[0].channels == count, version
    for name, channels_of in (
        ("Intel(R) Core(TM) i7-9700K CPU @ 3.60GHz", 2),
        ("Intel(R) Core(TM) i9-7900X CPU @ 3.30GHz", None),
        ("AMD Ryzen 9 5950X 16-Core Processor", 2),
        ("AMD Ryzen Threadripper PRO 5995WX 64-Cores", 8),
        ("AMD EPYC 8324P 32-Core Processor", 6),
    ):
        memory = _judge(Server("ACME|X", [("ACME", "", name)], dell(12, (1,), sockets="A")))
        assert memory.sockets[0].channels == channels_of, name


def test_each_verdict_states_modules_rule_and_loss() -> None:
    why = _judge(Server("Dell Inc.|PowerEdge R740", [SKYLAKE] * 2, dell(12, range(1, 5)))).why
    for part in ("4 of 6 channels", "4 x 32 GiB", "6 or 12 modules", "Lenovo Press", "35 to 65 %", "67%", "R740xd"):
        assert part in why
    rules = [row.interleaving for row in processors() if row.interleaving is not None]
    assert all(rule.source and rule.channels * 2 in rule.balanced for rule in rules)


def test_a_virtual_machine_has_no_real_slots() -> None:
    server = Server("QEMU|Standard PC (Q35 + ICH9, 2009)", [SKYLAKE], [Slot("DIMM 0", "16 GB")])
    memory = _judge(server)
    assert memory.verdict is UNKNOWN
    assert "virtual" in memory.why
    marked = replace(server, product="ACME|X", extra="\t\tSystem is a virtual machine\n")
    assert "virtual" in _judge(marked).why
