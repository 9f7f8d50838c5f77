"""The environment variables that announce services, as the kubelet makes them.

Fed by the Service objects of the home cluster; feeds :mod:`.environment`. Only of use where an
instance reaches the home cluster's ClusterIPs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vk_provider.pods.reading import mapping, mappings, number, text
from vk_provider.pods.types import Json

_MASTER = ("default", "kubernetes")


def service_environment(pod: Json, services: Sequence[Json]) -> dict[str, str]:
    """Variables of ``kubernetes`` in ``default``, and of the services of the pod's own namespace
    unless ``enableServiceLinks`` is false. Headless services have none."""
    namespace = text(mapping(pod, "metadata"), "namespace")
    linked = mapping(pod, "spec").get("enableServiceLinks") is not False
    chosen: dict[str, Json] = {}
    for service in services:
        metadata = mapping(service, "metadata")
        place, name = text(metadata, "namespace"), text(metadata, "name")
        own = linked and place == namespace
        # A service of that name in the pod's own namespace hides the API server's.
        if _address(service) and (own or ((place, name) == _MASTER and name not in chosen)):
            chosen[name] = service
    return {
        key: value
        for name in sorted(chosen)
        for key, value in _variables(_variable_name(name), chosen[name])
    }


def _variables(prefix: str, service: Json) -> Iterator[tuple[str, str]]:
    ports = [port for _, port in mappings(mapping(service, "spec"), "ports")]
    address = _address(service)
    yield f"{prefix}_SERVICE_HOST", address
    for index, port in enumerate(ports):
        shown = str(number(port, "port") or 0)
        if index == 0:
            yield f"{prefix}_SERVICE_PORT", shown
        if name := text(port, "name"):
            yield f"{prefix}_SERVICE_PORT_{_variable_name(name)}", shown
        yield from _link_variables(prefix, address, port, is_first=index == 0)


def _link_variables(
    prefix: str, address: str, port: Json, *, is_first: bool
) -> Iterator[tuple[str, str]]:
    protocol = text(port, "protocol") or "TCP"
    shown = str(number(port, "port") or 0)
    host = f"[{address}]" if ":" in address else address
    url = f"{protocol.lower()}://{host}:{shown}"
    # Docker's links gave the first port a short name of its own; images still read it.
    if is_first:
        yield f"{prefix}_PORT", url
    long = f"{prefix}_PORT_{shown}_{protocol.upper()}"
    yield long, url
    yield f"{long}_PROTO", protocol.lower()
    yield f"{long}_PORT", shown
    yield f"{long}_ADDR", address


def _address(service: Json) -> str:
    address = text(mapping(service, "spec"), "clusterIP")
    return "" if address == "None" else address


def _variable_name(name: str) -> str:
    return name.replace("-", "_").upper()
