"""The sub-blocks of a ``VirtualNode`` document's spec, one function each. Pure.

Fed by :mod:`vk_provider.settings_parse`; the values are those of :mod:`vk_provider.settings`.
"""

from __future__ import annotations

import ipaddress
import itertools
import re

from vk_provider.fields import Fields
from vk_provider.placement.budget import BudgetLimits, Caps
from vk_provider.placement.ranking import Policy
from vk_provider.pods.storm import StormLimits
from vk_provider.settings import (
    DoorSettings,
    LeaderElectionSettings,
    NodeBurstingSettings,
    PlacementSettings,
    Reach,
    ServerSettings,
    TlsSettings,
)
from vk_provider.syntax import DNS_LABEL, DNS_LABEL_WORDS, DNS_SUBDOMAIN

_CAPS = ("usdPerHour", "usdPerDay", "usdPerMonth")
_NOT_YET = "not available in this version"


def parse_placement(block: Fields) -> PlacementSettings:
    """The order in which offers are tried, and the budget."""
    policy = block.text("policy", Policy.CHEAPEST, choices=tuple(Policy))
    budget = parse_budget(block.child("budget"))
    block.done()
    return PlacementSettings(Policy(policy), budget)


def parse_budget(block: Fields) -> BudgetLimits:
    """Caps of the node and of namespaces, and what happens at them."""
    namespaces = block.child("perNamespace")
    budget = BudgetLimits(
        node=_caps(block),
        namespaces={name: _namespace_caps(namespaces, name) for name in namespaces.raw()},
        drains=block.text("onExceeded", "drain", choices=("drain", "keep")) == "drain",
        warn_share=block.number("warnAtPercent", 80.0, 1, 100) / 100,
        unpriced_usd_per_hour=block.number("unpricedUsdPerHour", 0.0, 0),
    )
    namespaces.done()
    block.done()
    return budget


def _namespace_caps(namespaces: Fields, name: str) -> Caps:
    block = namespaces.child(name)
    caps = _caps(block)
    if not re.fullmatch(DNS_LABEL, name):
        namespaces.refuse(name, f"not a namespace's name; allowed: {DNS_LABEL_WORDS}")
    elif caps == Caps():
        words = ", ".join(_CAPS)
        namespaces.refuse(name, f"no cap is given; allowed: one or more of {words}")
    block.done()
    return caps


def _caps(block: Fields) -> Caps:
    """Nothing is a valid cap: nothing that costs money is then let in."""
    return Caps(*(block.number(key, None, 0) for key in _CAPS))


def parse_server(block: Fields) -> ServerSettings:
    """Ports, address and TLS files of the kubelet server."""
    port = block.integer("port", 10250, 0, 65535)
    plain_port = block.integer("plainPort", 8080, 0, 65535)
    if port == plain_port != 0:
        block.refuse("plainPort", f"{plain_port} is the kubelet port too")
    address = block.optional_text("address")
    if address is not None and not _is_address(address):
        block.wrong("address", address, "an IP address that the API server can reach")
    tls = block.child("tls")
    files = TlsSettings(
        cert_file=tls.optional_text("certFile"),
        key_file=tls.optional_text("keyFile"),
        client_ca_file=tls.optional_text("clientCaFile"),
        csr=tls.boolean("csr", False),
    )
    if files.csr and files.cert_file:
        tls.refuse("csr", "can't be true together with certFile: it is one or the other")
    for key, other in (("certFile", "keyFile"), ("keyFile", "certFile")):
        if tls.has(other) and not tls.has(key):
            tls.refuse(key, f"missing, must be given together with {other}")
    tls.done()
    block.done()
    return ServerSettings(port, plain_port, address, files)


def _is_address(text: str) -> bool:
    try:
        return not ipaddress.ip_address(text).is_unspecified
    except ValueError:
        return False


def parse_leader_election(block: Fields, node_name: str) -> LeaderElectionSettings:
    """The Lease that decides which replica is the node, and its times."""
    settings = LeaderElectionSettings(
        name=block.text("name", f"vk-provider-{node_name}", pattern=DNS_SUBDOMAIN),
        enabled=block.boolean("enabled", True),
        namespace=block.optional_text("namespace", pattern=DNS_LABEL, allowed=DNS_LABEL_WORDS),
        lease_duration_seconds=block.number("leaseDurationSeconds", 15.0, 1),
        renew_deadline_seconds=block.number("renewDeadlineSeconds", 10.0, 0.5),
        retry_period_seconds=block.number("retryPeriodSeconds", 2.0, 0.1),
    )
    # A leader must have given up before another may take over, else both write.
    _demand_order(
        block,
        "less",
        ("retryPeriodSeconds", settings.retry_period_seconds),
        ("renewDeadlineSeconds", settings.renew_deadline_seconds),
        ("leaseDurationSeconds", settings.lease_duration_seconds),
    )
    block.done()
    return settings


def parse_storm(block: Fields) -> StormLimits:
    """The token buckets that pace verdicts."""
    settings = StormLimits(
        burst=block.integer("burst", 5, 1),
        first_interval=block.number("firstIntervalSeconds", 10.0, 0.1),
        max_interval=block.number("maxIntervalSeconds", 300.0, 0.1),
        reset_after=block.number("resetAfterSeconds", 600.0, 1),
        node_burst=block.integer("nodeBurst", 50, 1),
        node_per_second=block.number("nodePerSecond", 1.0, 0.01),
    )
    _demand_order(
        block,
        "not more",
        ("firstIntervalSeconds", settings.first_interval),
        ("maxIntervalSeconds", settings.max_interval),
    )
    block.done()
    return settings


def parse_door(block: Fields) -> DoorSettings:
    """How long what was refused stays closed, and when an outage closes the door."""
    settings = DoorSettings(
        first_cooldown_seconds=block.number("firstCooldownSeconds", 30.0, 0.1),
        max_cooldown_seconds=block.number("maxCooldownSeconds", 600.0, 0.1),
        denied_cooldown_seconds=block.number("deniedCooldownSeconds", 300.0, 0.1),
        outage_after_seconds=block.number("outageAfterSeconds", 60.0, 0.1),
    )
    _demand_order(
        block,
        "not more",
        ("firstCooldownSeconds", settings.first_cooldown_seconds),
        ("maxCooldownSeconds", settings.max_cooldown_seconds),
    )
    block.done()
    return settings


def parse_reach(spec: Fields) -> Reach:
    """What podIP says; the gateway has its place in the vocabulary and is not there yet."""
    if spec.take("reach") == "gateway":
        spec.refuse("reach", f'"gateway" is {_NOT_YET}; allowed: none, direct')
        return Reach.NONE
    return Reach(spec.text("reach", Reach.NONE, choices=tuple(Reach)))


def parse_admission(block: Fields) -> bool:
    """Whether pods are admitted again on arrival."""
    enabled = block.boolean("enabled", True)
    block.done()
    return enabled


def parse_bursting(block: Fields) -> NodeBurstingSettings:
    """Whether the node takes part in bursting."""
    gate = block.child("gate")
    settings = NodeBurstingSettings(
        gate_enabled=gate.boolean("enabled", False),
        dead_after_seconds=gate.number("deadAfterSeconds", 180.0, 0.3),
    )
    gate.done()
    block.done()
    return settings


def _demand_order(block: Fields, relation: str, *named: tuple[str, float]) -> None:
    """Each duration must be ``less`` than the next one, or ``not more``."""
    for (key, seconds), (next_key, next_seconds) in itertools.pairwise(named):
        if seconds > next_seconds or (relation == "less" and seconds == next_seconds):
            block.wrong(key, seconds, f"{relation} than {next_key} ({next_seconds:g})")
