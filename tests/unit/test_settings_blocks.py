"""The sub-blocks of a VirtualNode's spec: defaults, bounds, and what must fit together."""

from collections.abc import Callable
from typing import Any

import pytest

from vk_provider.fields import Fields
from vk_provider.placement.budget import BudgetLimits, Caps
from vk_provider.placement.ranking import Policy
from vk_provider.pods.storm import StormLimits
from vk_provider.settings import (
    DoorSettings,
    LeaderElectionSettings,
    PlacementSettings,
    Reach,
    ServerSettings,
    TlsSettings,
)
from vk_provider.settings_blocks import (
    parse_admission,
    parse_bursting,
    parse_door,
    parse_leader_election,
    parse_placement,
    parse_reach,
    parse_server,
    parse_storm,
)


def block(value: object = None) -> Fields:
    """A block at ``b``."""
    return Fields(value, "b", [])


def said(fields: Fields) -> list[str]:
    """The problems as text."""
    return [str(problem) for problem in fields.problems]


def test_empty_blocks_are_the_defaults() -> None:
    """The parser and the dataclasses agree on every default."""
    assert parse_placement(block()) == PlacementSettings()
    assert parse_server(block()) == ServerSettings()
    assert parse_storm(block()) == StormLimits()
    assert parse_door(block()) == DoorSettings()
    assert parse_leader_election(block(), "n") == LeaderElectionSettings("vk-provider-n")
    assert parse_reach(block()) is Reach.NONE
    assert parse_admission(block()) is True


def test_a_full_server_block_is_read() -> None:
    """Ports, address and the three files."""
    tls = {"certFile": "/c", "keyFile": "/k", "clientCaFile": "/ca"}
    fields = block({"port": 1, "plainPort": 2, "address": "10.0.0.1", "tls": tls})

    assert parse_server(fields) == ServerSettings(1, 2, "10.0.0.1", TlsSettings("/c", "/k", "/ca"))
    assert said(fields) == []


def test_the_cluster_may_be_asked_for_a_certificate() -> None:
    """Only where none is given."""
    fields = block({"tls": {"csr": True}})

    assert parse_server(fields).tls == TlsSettings(csr=True)
    assert said(fields) == []


def test_both_ports_may_be_free_ones() -> None:
    """Zero and zero are two ports."""
    fields = block({"port": 0, "plainPort": 0})

    parse_server(fields)

    assert said(fields) == []


def test_a_full_leader_election_block_is_read() -> None:
    """Name, namespace and the three times."""
    fields = block(
        {
            "enabled": False,
            "name": "lease",
            "namespace": "ns",
            "leaseDurationSeconds": 3,
            "renewDeadlineSeconds": 2,
            "retryPeriodSeconds": 1,
        }
    )

    expected = LeaderElectionSettings("lease", False, "ns", 3, 2, 1)
    assert parse_leader_election(fields, "n") == expected
    assert said(fields) == []


def test_a_full_placement_block_is_read() -> None:
    """Caps of the node and of a namespace; a cap of nothing is one."""
    fields = block(
        {
            "policy": "fastest-start",
            "budget": {
                "usdPerHour": 1,
                "usdPerDay": 2,
                "usdPerMonth": 3,
                "perNamespace": {"team": {"usdPerDay": 0}},
                "onExceeded": "keep",
                "warnAtPercent": 50,
                "unpricedUsdPerHour": 0.5,
            },
        }
    )

    namespaces = {"team": Caps(None, 0.0)}
    budget = BudgetLimits(Caps(1.0, 2.0, 3.0), namespaces, False, 0.5, 0.5)
    assert parse_placement(fields) == PlacementSettings(Policy.FASTEST_START, budget)
    assert said(fields) == []


def test_direct_reach_is_read() -> None:
    """The other value that works."""
    assert parse_reach(block({"reach": "direct"})) is Reach.DIRECT


@pytest.mark.parametrize(
    ("parse", "value", "problem"),
    [
        (
            parse_placement,
            {"policy": "cheap"},
            'policy: found "cheap", allowed: cheapest, priority, spread, fastest-start',
        ),
        (
            parse_placement,
            {"budget": {"perNamespace": {"team": {}}}},
            "budget.perNamespace.team: no cap is given; allowed: one or more of usdPerHour, "
            "usdPerDay, usdPerMonth",
        ),
        (
            parse_placement,
            {"budget": {"perNamespace": {"Team": {"usdPerDay": 1}}}},
            "budget.perNamespace.Team: not a namespace's name; allowed: at most 63 lower-case "
            "letters, digits and -",
        ),
        (
            parse_placement,
            {"budget": {"onExceeded": "stop"}},
            'budget.onExceeded: found "stop", allowed: drain, keep',
        ),
        (
            parse_placement,
            {"budget": {"warnAtPercent": 120}},
            "budget.warnAtPercent: found 120, allowed: a number from 1 to 100",
        ),
        (
            parse_placement,
            {"budget": {"usdPerHour": -1}},
            "budget.usdPerHour: found -1, allowed: a number of at least 0",
        ),
        (
            parse_server,
            {"port": 70000},
            "port: found 70000, allowed: a whole number from 0 to 65535",
        ),
        (parse_server, {"port": 8080}, "plainPort: 8080 is the kubelet port too"),
        (
            parse_server,
            {"address": "host"},
            'address: found "host", allowed: an IP address that the API server can reach',
        ),
        (
            parse_server,
            {"address": "0.0.0.0"},
            'address: found "0.0.0.0", allowed: an IP address that the API server can reach',
        ),
        (
            parse_server,
            {"tls": {"keyFile": "/k"}},
            "tls.certFile: missing, must be given together with keyFile",
        ),
        (
            parse_server,
            {"tls": {"csr": True, "certFile": "/c", "keyFile": "/k"}},
            "tls.csr: can't be true together with certFile: it is one or the other",
        ),
        (
            lambda fields: parse_leader_election(fields, "n"),
            {"renewDeadlineSeconds": 15},
            "renewDeadlineSeconds: found 15, allowed: less than leaseDurationSeconds (15)",
        ),
        (
            parse_storm,
            {"maxIntervalSeconds": 5},
            "firstIntervalSeconds: found 10, allowed: not more than maxIntervalSeconds (5)",
        ),
        (
            parse_door,
            {"firstCooldownSeconds": 900},
            "firstCooldownSeconds: found 900, allowed: not more than maxCooldownSeconds (600)",
        ),
        (
            parse_reach,
            {"reach": "gateway"},
            'reach: "gateway" is not available in this version; allowed: none, direct',
        ),
        (parse_reach, {"reach": "far"}, 'reach: found "far", allowed: none, direct'),
        (parse_admission, {"on": True}, "on: unknown key; valid: enabled"),
        (
            parse_bursting,
            {"gate": {"enabled": "yes"}},
            'gate.enabled: found "yes", allowed: true, false',
        ),
    ],
)
def test_a_wrong_block_is_one_problem(
    parse: Callable[[Fields], Any], value: object, problem: str
) -> None:
    """With its path, what was found, what is allowed."""
    fields = block(value)

    parse(fields)

    assert said(fields) == [f"b.{problem}"]
