"""How the power of nodes is read, and what nodes and energy cost: the keys of `power:` and `tariff:` in a site file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from seatrial.model.environment.site import IpmiAccess, PduAccess, PowerAccess, RedfishAccess, Tariff
from seatrial.plan.file_model import Model, Spot, listed, model, named, optional, required, scalar, text, whole
from seatrial.plan.file_values import PATH, seconds

_NODE = "{node}"
_HOST = re.compile(r"[A-Za-z0-9\[{][A-Za-z0-9_.:{}\[\]-]{0,253}")
_LEAST_REFRESH_S = 0.001
_USER = text(most=200).only(
    lambda value: value.isprintable() and not value.startswith("-"), "not a valid user", "write its name"
)
_OUTLETS = listed(text(most=200).accepting("an outlet"), 1, 16)
_COMMAND = listed(text(most=4096).accepting("a word of the command"), 1, 100)


def _url(spot: Spot, value: str) -> str:
    """A URL without user and password: they would be in what is shown of it."""
    try:
        found = urlsplit(value.replace(_NODE, "node"))
        has_host, _ = bool(found.hostname), found.port
    except ValueError:
        raise spot.cannot_be() from None
    if found.scheme not in ("https", "http") or not has_host or found.query or found.fragment:
        raise spot.cannot_be()
    if found.username is not None or found.password is not None:
        raise spot.refuse("the URL has a user", "write user: and password_file: beside it")
    if found.scheme == "http" and found.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise spot.refuse("http shows the password to everybody on the way", "write https://...")
    return value.removesuffix("/").removesuffix("/redfish/v1").removesuffix("/")


class _Access(Model):
    """What the access to a BMC has in common."""

    user = optional("the user of the BMC; one that may only read is enough", _USER, "")
    password_file = optional("a file with the password, that only you can read: begins with / or ~/", PATH)
    password_command = optional("a program that prints the password, as a list of words", _COMMAND, ())
    refresh = optional("how often its values change, such as 1s (default: found by looking)", seconds(_LEAST_REFRESH_S))

    def check(self) -> None:
        """Raise PlaceError for a password that is given twice."""
        if self.password_file is not None and self.password_command:
            raise self.refuse((), "password_file and password_command are both given", "remove one of the two")


class RedfishModel(_Access):
    """A Redfish service."""

    url = required(
        "the URL of the service, such as https://{node}-bmc ({node}: the name of the node)", text().then(_url)
    )
    ca_file = optional("a file with certificates that are trusted as well: begins with / or ~/", PATH)
    chassis = optional("the Id of the chassis that is the node, if there are several", text(most=200))

    def access(self) -> RedfishAccess:
        """What the file states."""
        self.check()
        given = (self.url, self.user, self.password_file, self.password_command)
        return RedfishAccess(*given, self.ca_file, self.chassis, self.refresh)


class PduModel(_Access):
    """A power distribution unit with a Redfish service."""

    url = required("the URL of the service, such as https://pdu-r07", text().then(_url))
    outlets = required("the outlets that feed the node, by Id or as PDU/OUTLET: [A4, B4]", _OUTLETS)
    ca_file = optional("a file with certificates that are trusted as well: begins with / or ~/", PATH)

    def access(self) -> PduAccess:
        """What the file states."""
        self.check()
        given = (self.url, self.user, self.password_file, self.password_command, self.ca_file)
        return PduAccess(*given, refresh_s=self.refresh, outlets=self.outlets)


class IpmiModel(_Access):
    """A BMC that answers IPMI over the network."""

    host = required(
        "the BMC's host name or address, such as {node}-bmc",
        text().only(_HOST.fullmatch, "not a valid host name", "write it as n001-bmc or {node}-bmc"),
    )
    port = optional("its UDP port (default: 623)", whole(1, 65535), 623)

    def access(self) -> IpmiAccess:
        """What the file states."""
        self.check()
        given = (self.host, self.port, self.user, self.password_file, self.password_command)
        return IpmiAccess(*given, self.refresh)


class PowerModel(Model):
    """How power is read, besides what a node itself shows."""

    redfish = optional("a mapping with url, user, password_file", model(RedfishModel))
    ipmi = optional("a mapping with host, user, password_file", model(IpmiModel))
    pdu = optional("a mapping with url, outlets, user, password_file", model(PduModel))

    def access(self) -> PowerAccess:
        """What the file states."""
        return PowerAccess(
            None if self.redfish is None else self.redfish.access(),
            None if self.ipmi is None else self.ipmi.access(),
            None if self.pdu is None else self.pdu.access(),
        )


def _check_host(spot: Spot, name: str) -> None:
    if not _HOST.fullmatch(name):
        raise spot.refuse(f"{name[:60]!r} is not a valid host name", "write it as n001", spot.node.key_lines[name])


class PartitionPowerModel(PowerModel):
    """The same for the nodes of a partition."""

    nodes: Any = optional(
        "a mapping of nodes to how their power is read, if it is not read as that of the others",
        named(model(PowerModel), _check_host, 0, 100_000),
    )

    def of_nodes(self) -> Mapping[str, PowerAccess]:
        """By name of the node."""
        return {name: one.access() for name, one in (self.nodes or {}).items()}


def _amount(spot: Spot, value: float) -> float:
    if not 0 <= value < float("inf"):
        raise spot.cannot_be()
    return float(value)


class TariffModel(Model):
    """What nodes and energy cost."""

    currency = required("the currency, such as EUR", text(pattern="[A-Za-z]{1,12}"))
    node_hour = optional("the price of an hour of a node: a number from 0", scalar(float).then(_amount))
    kWh = optional("the price of a kWh: a number from 0", scalar(float).then(_amount))

    def tariff(self) -> Tariff:
        """What the file states."""
        return Tariff(self.currency, self.node_hour, self.kWh)
