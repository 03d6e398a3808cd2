"""Rules about what connects GPUs: peer access, direct links (NVLink, XGMI) that are missing, boards whose pairs differ
by design."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from seatrial.analysis.device_places import by_model
from seatrial.analysis.direct_links import DirectLinks, LinkFault, Missing, Pair, direct_links, link_faults
from seatrial.analysis.rules.devices import gpus, of_pairs, spans
from seatrial.analysis.rules.finding import Case, Subject, finding, listed, note, rule, warning
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.machine import Machine
from seatrial.model.spelling import count

_NO_ACCESS = {
    "CNS": (
        "the chipset does not support it",
        "GPUs below one PCIe switch may have it; in a virtual machine, its host decides",
    ),
    "GNS": ("these GPUs do not support it", "no setting changes this: it depends on the product"),
    "TNS": ("the topology does not support it", "place GPUs that exchange data below one switch or on one socket"),
    "NS": ("it is not supported here", "check the driver version and the data sheet of the product"),
    "DR": ("it is disabled by a driver registry key", "remove the key from the options of the nvidia module"),
}
"""Status -> (meaning, remedy). Legend of `nvidia-smi topo -p2p`; OK and U (unknown) are not problems."""
_OF_AMD = {
    "NS": (
        "amd-smi lists it as disabled, and does not say why",
        "look for the cause in the log of the kernel (`dmesg`)",
    )
}
_NUMBERED = re.compile(r"(?:GPU|gpu-?)([0-9]{1,4})\Z")
_MOST_EVIDENCE = 16
_TOTALS = (("nvlink_links", "NVLink"), ("xgmi_links", "XGMI link"))
"""Facts about all direct links of a GPU, wherever they lead."""
_LEAST = 3
"""Of two GPUs, neither is the usual one."""


@rule(Subject.GPU_LINKS)
def no_peer_access(case: Case) -> Iterator[Finding]:
    """Fires if the driver reports that GPUs cannot read or write each other's memory; all pairs are one finding."""
    pairs = case.machine.p2p
    refused = [
        (pair, status)
        for pair in pairs
        if (status := next((s for s in (pair.read, pair.write) if s in _NO_ACCESS), None)) is not None
    ]
    if not refused:
        return
    statuses = Counter(status for _, status in refused if status is not None)
    words = {**_NO_ACCESS, **_OF_AMD} if _is_of_amd(case.machine) else _NO_ACCESS
    means = "; ".join(f"{status}: {words[status][0]}" for status in statuses)
    todo = "; ".join(f"{status}: {words[status][1]}" for status in statuses)
    counts = listed(f"{status}: {number}" for status, number in statuses.items())
    one_way = [pair for pair, _ in refused if "OK" in (pair.read, pair.write)]
    yield warning(
        "gpus-without-peer-access",
        devices=(end for pair, _ in refused for end in (pair.a, pair.b)),
        observation=f"{of_pairs(len(refused), len(pairs))} {'has' if len(refused) == 1 else 'have'} no peer access "
        f"({counts})." + (f" {count(len(one_way), 'pair')} can only read or only write." if one_way else ""),
        diagnosis=f"{means}. Copies between these GPUs go through host memory: two crossings of PCIe instead of one, "
        "and CPU memory bandwidth as well. Collectives fall back to shared memory.",
        remedy=f"{todo}. See all pairs with {_commands(case.machine)}",
        evidence=listed(f"{p.a} - {p.b}: read {p.read or 'unknown'}, write {p.write or 'unknown'}" for p, _ in refused),
    )


def _is_of_amd(machine: Machine) -> bool:
    """Whether all GPUs are of AMD."""
    return all(gpu.facts.text("vendor_id") == "1002" for gpu in gpus(machine))


def _commands(machine: Machine) -> str:
    """The commands that list peer access."""
    if _is_of_amd(machine):
        return "`amd-smi topology --access`"
    return "`nvidia-smi topo -p2p r` and `nvidia-smi topo -p2p w`"


@rule(Subject.GPU_LINKS)
def links_missing(case: Case) -> Iterator[Finding]:
    """Fires if GPUs, or pairs of them, have fewer direct links than the rest of their board; all are one finding.

    An error if no hidden GPU and no known board explains it, else a warning.
    """
    links = direct_links(case.machine)
    faults = link_faults(links)
    if not faults:
        return
    certain = any(fault.is_certain for fault in faults)
    causes = [_cause(links, fault) for fault in faults]
    yield finding(
        "gpu-link-missing",
        severity=Severity.ERROR if certain else Severity.WARNING,
        devices=(gpu for gpu in links.gpus if any(gpu in fault.gpus for fault in faults)),
        observation=" ".join(observed(links, fault) for fault in faults),
        diagnosis=" ".join(dict.fromkeys(causes)),
        remedy=_remedy(links, faults),
        evidence=listed(_evidence(links, faults), most=_MOST_EVIDENCE),
    )


@rule(Subject.GPU_LINKS)
def links_fewer(case: Case) -> Iterator[Finding]:
    """Fires if a GPU states fewer direct links than all others of its model, where the source does not show their ends
    (the switches of a virtual machine): `links_missing` judges those with known ends."""
    if link_faults(direct_links(case.machine)):
        return
    for group in by_model(gpus(case.machine)):
        for name, noun in _TOTALS:
            counts = {gpu.id: number for gpu in group if (number := gpu.facts.integer(name)) is not None}
            usual, times = Counter(counts.values()).most_common(1)[0] if counts else (0, 0)
            few = {gpu: number for gpu, number in counts.items() if number < usual}
            if not few or len(counts) < _LEAST or times + len(few) < len(counts) or len(few) > len(counts) // _LEAST:
                continue
            numbers = sorted(set(few.values()))
            yield warning(
                "gpu-links-fewer",
                devices=few,
                observation=f"{spans(few)} {'has' if len(few) == 1 else 'have'} "
                f"{count(numbers[-1], noun) if len(numbers) == 1 else f'{numbers[0]} to {count(numbers[-1], noun)}'}; "
                f"the other {times} GPUs of this model have {usual} each.",
                diagnosis="Copies and collectives that include them use fewer links, and every rank waits for the "
                "slowest. The numbers of links do not show the cause.",
                remedy="List the state of each link with `nvidia-smi nvlink -s` (AMD: `rocm-smi --showxgmierr`), and "
                "search the kernel's messages (`dmesg`) for errors of links; then reset the GPUs, or have the board "
                "checked",
                evidence=listed((f"{gpu}: {number}" for gpu, number in counts.items()), most=_MOST_EVIDENCE),
            )


@rule(Subject.GPU_LINKS)
def links_uneven(case: Case) -> Iterator[Finding]:
    """Fires if pairs of GPUs have different numbers of links by design (DGX-1: a hybrid cube mesh)."""
    links = direct_links(case.machine)
    if len(links.linked) < 2 or links.is_switched:  # through switches any GPU reaches any other at its own total
        return
    if any(fault.is_certain for fault in link_faults(links)):
        return
    numbers = {pair: links.between(*pair) for pair in combinations(links.gpus, 2)}
    counts = Counter(number for number in numbers.values() if number is not None)
    if len(counts) < 2:
        return
    unlinked = [gpu for gpu in links.gpus if gpu not in links.totals]
    counted = listed(f"{number} with {_links(links, each)}" for each, number in sorted(counts.items(), reverse=True))
    best = max(links.pairs, key=lambda pair: links.pairs[pair] or 1)
    yield note(
        "gpu-links-uneven",
        devices=links.gpus,
        observation=f"GPU pairs have different numbers of direct links: of {count(sum(counts.values()), 'pair')}, "
        f"{counted}."
        + (f" {spans(unlinked)} {'has' if len(unlinked) == 1 else 'have'} no direct link." if unlinked else ""),
        diagnosis="The rate between two GPUs depends on the pair; pairs without a direct link communicate over PCIe, "
        "or through a third GPU if the links can forward (XGMI). "
        "This is normal for boards without a switch between the GPUs.",
        remedy=f"Choose GPUs by their links: for two, {best[0]} and {best[1]}; "
        "place ranks that communicate most on linked GPUs (see `--ranks`), and view the matrix with "
        "`nvidia-smi topo -m` or `rocm-smi --showtopo`",
        evidence=listed((f"{a} - {b}: {_links(links, each or 1)}" for (a, b), each in links.pairs.items()), most=12),
    )


def observed(links: DirectLinks, fault: LinkFault) -> str:
    """What is missing, and what the other GPUs have, as sentences."""
    if fault.missing is Missing.BETWEEN_GROUPS:
        groups = "; ".join(spans(group) for group in links.groups() if len(group) > 1)
        return f"The GPUs form {fault.usual} groups without {_noun(links)}s between them: {groups}."
    if fault.missing is Missing.PAIRS:
        rest = f"the other pairs of these GPUs' board have {_number(links, fault.usual)}"
        if len(fault.pairs) == 1:
            ((a, b),) = fault.pairs
            return f"{a} and {b} have {_none_or(links, fault.pairs[a, b])} between them; {rest}."
        ends = listed(f"{a} - {b}: {_links(links, number)}" for (a, b), number in fault.pairs.items())
        return f"{len(fault.pairs)} GPU pairs have fewer {_noun(links)}s ({ends}); {rest}."
    verb = "has" if len(fault.gpus) == 1 else "have"
    others = [gpu for gpu in links.gpus if gpu not in fault.gpus]
    each = " each" if len(others) > 1 else ""
    usual = f"; {spans(others)} have {_number(links, fault.usual)}{each}" if others else ""
    if fault.missing is Missing.ALL:
        pairs = len(links.gpus) * (len(links.gpus) - 1) // 2
        of_all = f"{len(fault.pairs)} of {count(pairs, 'GPU pair')}"
        return f"{spans(fault.gpus)} {verb} no {_noun(links)}{usual}. {of_all} have none."
    few = sorted(set(fault.gpus.values()))
    if not links.is_counted:
        return f"{spans(fault.gpus)} {verb} links to fewer GPUs than the others ({fault.usual})."
    number = _number(links, few[0]) if len(few) == 1 else f"{few[0]} to {_number(links, few[-1])}"
    each = " each" if len(fault.gpus) > 1 and len(few) == 1 else ""
    return f"{spans(fault.gpus)} {verb} {number}{each}; the other GPUs have {fault.usual}."


def _cause(links: DirectLinks, fault: LinkFault) -> str:
    slow = "Copies and collectives that include them use PCIe or fewer links, and every rank waits for the slowest."
    unknown = "The numbers of links do not show the cause."
    if fault.missing is Missing.BETWEEN_GROUPS:
        return (
            f"Copies between the groups use PCIe. {unknown} It is intended where the fabric was divided into "
            "partitions, one for each virtual machine or user; else links between boards may be down."
        )
    if fault.missing is Missing.ALL and links.name == "NVLink":
        may = (
            "A fabric manager that is not running or failed, a fabric partition without these GPUs, MIG mode, or "
            "links that failed to train would each look like this."
            if links.is_switched
            else "Links that failed to train or are disabled, MIG mode, or a bridge that is missing or not seated "
            "would each look like this."
        )
    else:
        may = "A link may be down, disabled or failed to train, or a bridge may not be seated."
    if fault.is_certain:
        return f"{slow} {unknown} {may}"
    hidden = (
        "It is not a fault where these GPUs are another product (a display card) or a bridge was never installed."
        if fault.missing is Missing.ALL
        else "It is not a fault if the GPU at the other end is hidden from this process (a container, a batch system)."
    )
    return f"{slow} {unknown} {may} {hidden}"


def _remedy(links: DirectLinks, faults: Iterable[LinkFault]) -> str:
    affected = [gpu for gpu in links.gpus if any(gpu in fault.gpus for fault in faults)]
    if links.name != "NVLink":
        return (
            "See all links with `rocm-smi --showtopo` and their errors with `rocm-smi --showxgmierr`, and search the "
            "kernel's messages (`dmesg | grep -i xgmi`); then reset the GPUs or check the bridge"
        )
    numbers = [match[1] for gpu in affected if (match := _NUMBERED.match(gpu)) is not None]
    one = f" -i {','.join(numbers)}" if 0 < len(numbers) == len(affected) <= 4 and affected != list(links.gpus) else ""
    steps = [f"List the state of each link with `nvidia-smi nvlink -s{one}` and its errors with `nvidia-smi nvlink -e`"]
    if links.is_switched:
        steps.append(
            f"the fabric's state with `nvidia-smi -q{one}` (Fabric, and MIG Mode), and the fabric manager with "
            "`systemctl status nvidia-fabricmanager`"
        )
    elif any(fault.missing is Missing.ALL for fault in faults):
        steps.append(f"MIG Mode with `nvidia-smi -q{one}`, and the products with `nvidia-smi -L`")
    steps.append("Xid 74 (NVLink error) in `dmesg`")
    return ", ".join(steps[:-1]) + f", and {steps[-1]}; then reset the GPUs, or have the board checked"


def _evidence(links: DirectLinks, faults: Iterable[LinkFault]) -> Iterator[str]:
    pairs: dict[Pair, int] = {}
    for fault in faults:
        if fault.missing is Missing.PAIRS:
            pairs |= fault.pairs
    yield from (f"{a} - {b}: {_links(links, number)}" for (a, b), number in pairs.items())
    totals: Mapping[str, int] = links.totals
    for gpu in links.gpus:
        if links.is_counted or gpu not in totals:
            yield f"{gpu}: {_links(links, totals.get(gpu, 0))}"
        else:
            yield f"{gpu}: linked to {count(sum(gpu in pair for pair in links.pairs), 'GPU')}"


def _number(links: DirectLinks, number: int) -> str:
    """As "18 NVLinks", "4 XGMI links"; without a number if it is unknown."""
    return count(number, _noun(links)) if links.is_counted else f"{_noun(links)}s"


def _none_or(links: DirectLinks, number: int) -> str:
    return f"no {_noun(links)}" if number == 0 else _number(links, number)


def _noun(links: DirectLinks) -> str:
    return links.name if links.name.endswith("Link") else f"{links.name} link"


def _links(links: DirectLinks, number: int) -> str:
    if number == 0:
        return "none"
    return count(number, "direct link") if links.is_counted else "direct links"
