"""What the state of ports, switches and subnet managers calls for, where a tool states it: counters of errors
(`machine.counters`), power supplies, fans and temperatures of switches, and links that the fabric manager counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from seatrial.machine.counters import counter_findings
from seatrial.model.machine.fabric import Fabric
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.spelling import count

_ERROR = "ERROR"
_THRESHOLD = re.compile(r"-?\d{1,3}/(?P<high>\d{1,3})\b", re.ASCII)
_WHOLE = re.compile(r"\d{1,7}\Z", re.ASCII)


def health_findings(fabric: Fabric) -> Iterator[Finding]:
    """Findings about the counters of ports, the hardware of switches, and the counts of a fabric manager."""
    source = ", ".join(fabric.sources)
    readings = {fabric.port_name(one.device, one.port): one.counters for one in fabric.port_counters}
    yield from counter_findings(readings, source, "`perfquery LID PORT`")
    yield from _supplies(fabric, source)
    yield from _fans(fabric, source)
    yield from _temperatures(fabric, source)
    if "degraded links" in fabric.facts:
        yield from _counted(fabric, source)


def _switch_facts(fabric: Fabric) -> Iterator[tuple[str, Mapping[str, str]]]:
    return ((switch.name, switch.facts) for switch in fabric.switches if switch.facts)


def _supplies(fabric: Fabric, source: str) -> Iterator[Finding]:
    found = {
        switch: bad
        for switch, facts in _switch_facts(fabric)
        if (bad := [name for name, value in facts.items() if name.startswith("PSU") and value == _ERROR])
    }
    if found:
        yield Finding(
            rule="switch-power-supply",
            severity=Severity.WARNING,
            devices=tuple(found),
            observation="; ".join(f"{switch}: {', '.join(bad)} ERROR" for switch, bad in found.items()) + ".",
            diagnosis="A power supply that is missing, without input or broken. A switch with only one that works "
            "stops when that one fails. ibswinfo takes the state from bits whose meaning it partly guesses.",
            remedy="Look at the LEDs and the cord of that power supply; exchange it if it has input but no output",
            evidence=source,
        )


def _fans(fabric: Fabric, source: str) -> Iterator[Finding]:
    for switch, facts in _switch_facts(fabric):
        stopped = [name for name, value in facts.items() if name.endswith("(rpm)") and value == "0"]
        if facts.get("fans") == _ERROR or stopped:
            speeds = [
                f"{name.removesuffix(' (rpm)')} {value}" for name, value in facts.items() if name.endswith("(rpm)")
            ]
            which = f"; stopped: {', '.join(stopped)}" if stopped else "; it does not say which"
            yield Finding(
                rule="switch-fan",
                severity=Severity.WARNING,
                devices=(switch,),
                observation=f"{switch} reports fans outside of their limits{which}.",
                diagnosis="With less air the switch and its cables become hot; hot optics make errors. ERROR is "
                "stated for fans that are too slow and for those that are too fast.",
                remedy="Compare the speeds of the fans, and exchange the module of the one that differs",
                evidence=f"{source}; rpm: {', '.join(speeds) or 'not stated'}",
            )


def _temperatures(fabric: Fabric, source: str) -> Iterator[Finding]:
    for switch, facts in _switch_facts(fabric):
        limit = _THRESHOLD.match(facts.get("warning threshold (C)", ""))
        now, highest = (_whole(facts.get(name)) for name in ("temperature (C)", "highest temperature (C)"))
        if limit is None or max(now or 0, highest or 0) < int(limit["high"]):
            continue
        is_now = (now or 0) >= int(limit["high"])
        yield Finding(
            rule="switch-hot",
            severity=Severity.WARNING if is_now else Severity.INFO,
            devices=(switch,),
            observation=f"{switch} is at {now} C; its threshold is {limit['high']} C."
            if is_now
            else f"{switch} was at {highest} C at an unknown moment, now {now} C; its threshold is {limit['high']} C.",
            diagnosis="A switch that becomes too hot switches itself off. The cause of the heat is not in the text.",
            remedy="Check the air that it takes in, its fans, and that air flows in the direction of the others in "
            "the rack",
            evidence=source,
        )


def _counted(fabric: Fabric, source: str) -> Iterator[Finding]:
    facts = fabric.facts
    for name, means, remedy in (
        (
            "degraded links",
            "Links with fewer lanes or a lower speed than is enabled. Which ones is not in the text.",
            "`opaextractbadlinks` or `opareport -o slowlinks` lists them; reseat or exchange their cables",
        ),
        (
            "omitted links",
            "Links that the fabric manager leaves out of the fabric, so that nothing is sent over them. Which ones "
            "is not in the text.",
            "`opareport -o quarantinednodes` and the log of the fabric manager say why",
        ),
    ):
        if _whole(facts.get(name)):
            yield Finding(
                rule=name.replace(" ", "-"),
                severity=Severity.WARNING,
                devices=(),
                observation=f"{count(int(facts[name]), name[:-1])} of {facts['links']}.",
                diagnosis=means,
                remedy=remedy,
                evidence=source,
            )
    masters = facts.get("subnet managers", "").count("(Master)")
    if masters != 1:
        yield Finding(
            rule="subnet-manager",
            severity=Severity.WARNING,
            devices=(),
            observation=f"{masters} subnet managers are master: {facts.get('subnet managers') or 'none is listed'}."
            if masters
            else f"No subnet manager is master: {facts.get('subnet managers') or 'none is listed'}.",
            diagnosis="One master brings links into service and routes; without one, changes of the fabric have no "
            "effect, and several mean that the fabric is in parts.",
            remedy="Check the service of the fabric manager on its nodes (`systemctl status opafm`) and its log",
            evidence=source,
        )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and _WHOLE.match(text) else None
