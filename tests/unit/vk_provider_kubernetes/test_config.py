"""The configuration block: every problem at once, by its path."""

from __future__ import annotations

from typing import Any

import pytest
from vk_provider_kubernetes.config import (
    DERIVED,
    HomeApi,
    HomeDns,
    KubernetesConfig,
    default_namespace,
    parse_config,
)

from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.secrets import SecretSource

TOLERATION = {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}


def parse(**block: Any) -> KubernetesConfig:
    """The block of a node called burst."""
    return parse_config(block, "config", "burst")


def problems(**block: Any) -> set[str]:
    """The paths of everything that is wrong."""
    with pytest.raises(ConfigError) as refused:
        parse(**block)
    return {each.path for each in refused.value.problems if isinstance(each, FieldProblem)}


def test_a_kubeconfig_is_enough() -> None:
    """The namespace is the node's own."""
    found = parse(kubeconfig="/etc/other")

    assert found == KubernetesConfig(namespace="vk-burst", kubeconfig="/etc/other")
    assert found.all_namespaces == ("vk-burst",)


def test_a_server_goes_with_a_token() -> None:
    """Under either of its names, without the slash at its end."""
    token = {"file": "/token"}

    found = parse(baseUrl="https://10.0.0.1:6443/", token=token, certificateAuthority="/ca")

    assert found.server == "https://10.0.0.1:6443"
    assert found.token == SecretSource(file="/token")
    assert found.certificate_authority == "/ca"
    assert parse(server="http://127.0.0.1:1", token=token).server == "http://127.0.0.1:1"


def test_everything_else_has_a_default() -> None:
    """And its own check."""
    found = parse(
        kubeconfig="k",
        context="c",
        namespaces={"team-a": "vk-team-a"},
        nodeSelector={"pool": "gpu"},
        tolerations=[TOLERATION],
        volumeClaims={"team-a/models": "models"},
        capacity="derived",
        reserve={"cpu": 2, "memory": "4Gi"},
        hostAccess=True,
    )

    assert found.all_namespaces == ("vk-burst", "vk-team-a")
    assert found.tolerations == (TOLERATION,)
    assert (found.capacity, found.host_access) == (DERIVED, True)
    assert found.reserve == {"cpu": "2", "memory": "4Gi"}


@pytest.mark.parametrize(
    ("block", "paths"),
    [
        ({}, {"config.kubeconfig"}),
        ({"kubeconfig": "k", "server": "https://x"}, {"config.kubeconfig", "config.token"}),
        ({"server": "x:6443", "token": {"env": "T"}}, {"config.server"}),
        ({"server": "https://[x", "token": {"env": "T"}}, {"config.server"}),
        ({"server": "https://me:word@x", "token": {"env": "T"}}, {"config.server"}),
        (
            {"server": "https://x", "baseUrl": "https://y", "token": {"env": "T"}},
            {"config.baseUrl"},
        ),
        ({"server": "https://x", "token": {"env": "T"}, "context": "c"}, {"config.context"}),
        ({"server": "https://x"}, {"config.token"}),
        ({"kubeconfig": "k", "token": {"env": "T"}}, {"config.token"}),
        ({"kubeconfig": "k", "certificateAuthority": "c"}, {"config.certificateAuthority"}),
        ({"kubeconfig": "k", "namespace": "Not_A_Name"}, {"config.namespace"}),
        ({"kubeconfig": "k", "namespaces": {"a": "B!"}}, {"config.namespaces"}),
        ({"kubeconfig": "k", "volumeClaims": {"models": "m"}}, {"config.volumeClaims"}),
        ({"kubeconfig": "k", "reserve": {"cpu": "lots"}}, {"config.reserve"}),
        (
            {"kubeconfig": "k", "tolerations": [{"keys": "x"}]},
            {f"config.tolerations[0].{key}" for key in ("key", "keys")},
        ),
        ({"kubeconfig": "k", "capacity": "all"}, {"config.capacity"}),
        ({"kubeconfig": "k", "kubeConfg": "x"}, {"config.kubeConfg"}),
        ({"kubeconfig": "k", "serviceAccountName": "A b"}, {"config.serviceAccountName"}),
        ({"kubeconfig": "k", "nodeSelector": {"a b": "c"}}, {"config.nodeSelector"}),
        ({"kubeconfig": "k", "tolerations": [{}]}, {"config.tolerations[0].key"}),
        (
            {"kubeconfig": "k", "tolerations": [{"operator": "Exist", "effect": "No"}]},
            {f"config.tolerations[0].{key}" for key in ("key", "operator", "effect")},
        ),
        (
            {
                "kubeconfig": "k",
                "tolerations": [{"operator": "Exists", "value": "a", "tolerationSeconds": 3}],
            },
            {f"config.tolerations[0].{key}" for key in ("value", "tolerationSeconds")},
        ),
    ],
)
def test_what_is_wrong_is_told_by_its_path(block: dict[str, Any], paths: set[str]) -> None:
    """All of it."""
    assert problems(**block) == paths


@pytest.mark.parametrize("name", ["burst", "gpu.cheap", "n" * 80])
def test_the_namespace_is_named_after_the_node(name: str) -> None:
    """As a valid one."""
    found = default_namespace(name)

    assert len(found) <= 63
    assert "." not in found
    assert found.startswith(("vk-burst", "vk-gpu-cheap", "vk-nnn"))


def test_tokens_are_handed_on_only_where_it_is_said() -> None:
    """With the place of home's API server, or without."""
    server = {"host": "10.0.0.1"}
    found = parse(kubeconfig="k", serviceAccountTokens={"enabled": True, "apiServer": server})

    assert found.tokens
    assert found.home_api == HomeApi("10.0.0.1", 443)
    assert not parse(kubeconfig="k").tokens
    assert parse(kubeconfig="k", serviceAccountTokens={"enabled": True}).home_api is None


def test_the_place_of_the_api_server_is_checked() -> None:
    """By its path."""
    server = {"host": "https://x", "port": 0, "name": "y"}

    assert problems(kubeconfig="k", serviceAccountTokens={"apiServer": server, "on": True}) == {
        "config.serviceAccountTokens.apiServer.host",
        "config.serviceAccountTokens.apiServer.port",
        "config.serviceAccountTokens.apiServer.name",
        "config.serviceAccountTokens.on",
    }


def test_home_services_are_off_unless_they_are_reached() -> None:
    """With home's DNS where names are to be looked up there."""
    dns = {"enabled": True, "clusterDNS": ["10.96.0.10"], "clusterDomain": "home.example"}

    assert not parse(kubeconfig="k").home_services
    assert parse(kubeconfig="k", homeServices={"enabled": True}).home_dns is None
    found = parse(kubeconfig="k", homeServices=dns)
    assert found.home_services
    assert found.home_dns == HomeDns(("10.96.0.10",), "home.example")


def test_home_dns_is_checked() -> None:
    """Addresses, no names, and not more than a resolver heeds."""
    names = {"enabled": True, "clusterDNS": ["dns.example"], "clusterDomain": "A b"}
    many = {"enabled": True, "clusterDNS": [f"10.0.0.{last}" for last in range(4)]}

    assert problems(kubeconfig="k", homeServices=names) == {
        "config.homeServices.clusterDNS[0]",
        "config.homeServices.clusterDomain",
    }
    assert problems(kubeconfig="k", homeServices=many) == {"config.homeServices.clusterDNS"}
