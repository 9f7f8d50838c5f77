"""Service variables, as the kubelet makes them."""

from __future__ import annotations

from typing import Any

from vk_provider.pods.services import service_environment
from vk_provider.testing.builders import make_pod


def service(
    name: str, namespace: str = "default", address: str = "10.0.0.1", *ports: dict[str, Any]
) -> dict[str, Any]:
    """A Service with port 80 unless told otherwise."""
    spec = {"clusterIP": address, "ports": list(ports) or [{"port": 80, "protocol": "TCP"}]}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def test_a_service_makes_the_variables_a_kubelet_makes() -> None:
    """Names in upper case with underscores; Docker's old link variables too."""
    ports = {"port": 80, "name": "http-web"}, {"port": 53, "protocol": "UDP", "name": "dns"}

    env = service_environment(make_pod(), [service("my-app", "default", "10.0.0.9", *ports)])

    assert env == {
        "MY_APP_SERVICE_HOST": "10.0.0.9",
        "MY_APP_SERVICE_PORT": "80",
        "MY_APP_SERVICE_PORT_HTTP_WEB": "80",
        "MY_APP_SERVICE_PORT_DNS": "53",
        "MY_APP_PORT": "tcp://10.0.0.9:80",
        "MY_APP_PORT_80_TCP": "tcp://10.0.0.9:80",
        "MY_APP_PORT_80_TCP_PROTO": "tcp",
        "MY_APP_PORT_80_TCP_PORT": "80",
        "MY_APP_PORT_80_TCP_ADDR": "10.0.0.9",
        "MY_APP_PORT_53_UDP": "udp://10.0.0.9:53",
        "MY_APP_PORT_53_UDP_PROTO": "udp",
        "MY_APP_PORT_53_UDP_PORT": "53",
        "MY_APP_PORT_53_UDP_ADDR": "10.0.0.9",
    }


def test_an_ipv6_address_stands_in_brackets_in_urls() -> None:
    """And without them everywhere else."""
    env = service_environment(make_pod(), [service("a", "default", "fd00::1")])

    assert env["A_PORT"] == "tcp://[fd00::1]:80"
    assert env["A_SERVICE_HOST"] == "fd00::1"


def test_only_the_pods_own_namespace_and_the_api_server_are_announced() -> None:
    """And nothing that has no address."""
    services = [
        service("kubernetes"),
        service("other"),
        service("mine", "team"),
        service("headless", "team", "None"),
        service("pending", "team", ""),
    ]

    env = service_environment(make_pod(namespace="team"), services)

    hosts = {name for name in env if name.endswith("_SERVICE_HOST")}
    assert hosts == {"KUBERNETES_SERVICE_HOST", "MINE_SERVICE_HOST"}


def test_without_links_the_api_server_alone_is_announced() -> None:
    """``enableServiceLinks: false`` is what large namespaces set."""
    services = [service("kubernetes"), service("mine")]

    env = service_environment(make_pod(enableServiceLinks=False), services)

    assert {name for name in env if name.endswith("_HOST")} == {"KUBERNETES_SERVICE_HOST"}


def test_a_service_of_the_namespace_hides_the_api_servers() -> None:
    """In whichever order they come."""
    services = [service("kubernetes", "team", "10.0.0.7"), service("kubernetes")]

    for order in (services, services[::-1]):
        env = service_environment(make_pod(namespace="team"), order)
        assert env["KUBERNETES_SERVICE_HOST"] == "10.0.0.7"


def test_a_service_without_ports_has_a_host_only() -> None:
    """Malformed or external: no variable is invented."""
    odd = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"clusterIP": "10.0.0.1"}}

    assert service_environment(make_pod(), [odd]) == {"A_SERVICE_HOST": "10.0.0.1"}
