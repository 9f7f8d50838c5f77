"""A pod looks up home's names where home's Services can be reached."""

from __future__ import annotations

from typing import Any

import pytest
from vk_provider_kubernetes.config import HomeDns
from vk_provider_kubernetes.resolver import asks_cluster, resolver

DNS = HomeDns(("10.0.0.10",), "cluster.local")


@pytest.mark.parametrize(
    ("spec", "asks"),
    [
        ({}, True),
        ({"dnsPolicy": "ClusterFirst"}, True),
        ({"dnsPolicy": "ClusterFirst", "hostNetwork": True}, False),
        ({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}, True),
        ({"dnsPolicy": "Default"}, False),
        ({"dnsPolicy": "None"}, False),
    ],
)
def test_the_policy_says_whose_names_are_meant(spec: dict[str, Any], asks: bool) -> None:
    """As a kubelet reads it."""
    assert asks_cluster(spec) is asks


def test_short_names_are_of_the_home_namespace() -> None:
    """Whatever the namespace of the instance is called."""
    assert resolver({}, "team-a", DNS) == {
        "dnsPolicy": "None",
        "dnsConfig": {
            "nameservers": ["10.0.0.10"],
            "searches": ["team-a.svc.cluster.local", "svc.cluster.local", "cluster.local"],
            "options": [{"name": "ndots", "value": "5"}],
        },
    }


def test_the_pods_own_settings_come_on_top() -> None:
    """In the order of a kubelet, each once, no more than the API takes."""
    own = {
        "nameservers": ["10.0.0.10", "1.1.1.1", "2.2.2.2", "3.3.3.3"],
        "searches": ["example.org", "cluster.local"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
    }

    config = resolver({"dnsConfig": own}, "a", DNS)["dnsConfig"]

    assert config["nameservers"] == ["10.0.0.10", "1.1.1.1", "2.2.2.2"]
    assert config["searches"][2:] == ["cluster.local", "example.org"]
    assert config["options"] == own["options"]
