"""The configuration block of the ``kubernetes`` provider, checked field by field.

Fed by ``spec.backends[].config``; feeds the translation and the client.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vk_provider import quantities
from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.fields import Fields
from vk_provider.secrets import SecretSource
from vk_provider.syntax import DNS_LABEL, DNS_SUBDOMAIN, LABEL_VALUE, QUALIFIED_NAME
from vk_provider.taints import EFFECTS, NO_EXECUTE
from vk_provider.urls import http_url
from vk_provider_kubernetes.stamp import MAX_NAME, named

DERIVED = "derived"
CONFIGURED = "configured"
_CLAIM = re.compile(r"[^/]+/[^/]+")
_OPERATORS = ("Exists", "Equal", "Lt", "Gt")
_HTTPS = 443
MAX_NAME_SERVERS = 3
"""As many as a pod's resolver heeds."""
_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]+"
_HOW_TO_CONNECT = (
    "say where the other cluster is: kubeconfig, or server with token and certificateAuthority"
)


@dataclass(frozen=True, slots=True)
class HomeApi:
    """Where instances reach the home cluster's API server."""

    host: str
    port: int = _HTTPS


@dataclass(frozen=True, slots=True)
class HomeDns:
    """Who answers for home's names, and below which domain they are."""

    servers: tuple[str, ...]
    domain: str


@dataclass(frozen=True, slots=True)
class KubernetesConfig:
    """Another cluster as one backend, named ``backend`` on its node.

    Either ``kubeconfig`` (with ``context``), or ``server`` with ``token``. ``namespace`` is where
    instances live; ``namespaces`` maps some of home's to others. ``capacity`` is ``configured``
    (the node's own block) or ``derived`` from the other cluster's nodes. ``tokens``: pods get the
    tokens of the home cluster that they project, and find its API server at ``home_api``.
    ``home_services``: instances reach home's ClusterIPs, so they are told of its Services, and
    look names up at ``home_dns``.
    """

    namespace: str
    backend: str = ""
    namespaces: Mapping[str, str] = field(default_factory=dict)
    kubeconfig: str | None = None
    context: str | None = None
    server: str | None = None
    token: SecretSource | None = None
    certificate_authority: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    volume_claims: Mapping[str, str] = field(default_factory=dict)
    service_account_name: str | None = None
    priority_class_name: str | None = None
    scheduler_name: str | None = None
    host_access: bool = False
    tokens: bool = False
    home_api: HomeApi | None = None
    home_services: bool = False
    home_dns: HomeDns | None = None
    capacity: str = CONFIGURED
    reserve: Mapping[str, str] = field(default_factory=dict)
    request_timeout_seconds: float = 20.0
    lost_after_seconds: float = 60.0

    def namespace_of(self, home: str) -> str:
        """Where instances of pods of this home namespace live."""
        return self.namespaces.get(home, self.namespace)

    @property
    def all_namespaces(self) -> tuple[str, ...]:
        """Every namespace that may hold instances of ours."""
        return tuple(sorted({self.namespace, *self.namespaces.values()}))


def parse_config(
    config: Mapping[str, Any], path: str, node_name: str, backend: str = ""
) -> KubernetesConfig:
    """The block as a value. Raises ``ConfigError`` with every problem in it."""
    problems: list[FieldProblem] = []
    fields = Fields(config, path, problems)
    parsed = KubernetesConfig(
        namespace=_label(fields, "namespace", default_namespace(node_name)),
        backend=backend,
        namespaces=_namespaces(fields),
        **_connection(fields),
        node_selector=_selector(fields),
        tolerations=tuple(_toleration(each) for each in fields.children("tolerations")),
        volume_claims=_claims(fields),
        service_account_name=_name(fields, "serviceAccountName"),
        priority_class_name=_name(fields, "priorityClassName"),
        scheduler_name=_name(fields, "schedulerName"),
        host_access=fields.boolean("hostAccess", False),
        **_tokens(fields.child("serviceAccountTokens")),
        **_services(fields.child("homeServices")),
        capacity=fields.text("capacity", CONFIGURED, choices=(CONFIGURED, DERIVED)),
        reserve=_quantities(fields, "reserve"),
        request_timeout_seconds=fields.number("requestTimeoutSeconds", 20.0, minimum=1),
        lost_after_seconds=fields.number("lostAfterSeconds", 60.0, minimum=1),
    )
    fields.done()
    if problems:
        raise ConfigError(problems)
    return parsed


def default_namespace(node_name: str) -> str:
    """One namespace per virtual node: named after it, so that a Role in it is enough."""
    name = f"vk-{node_name.replace('.', '-')}"
    return name if len(name) <= MAX_NAME else named(name, node_name)


def _connection(fields: Fields) -> dict[str, Any]:
    kubeconfig = fields.optional_text("kubeconfig")
    server = fields.optional_text("server")
    base_url = fields.optional_text("baseUrl")
    if server and base_url:
        fields.refuse("baseUrl", "it is another name of server; give one of them")
    server = server or base_url
    found = {
        "kubeconfig": kubeconfig,
        "context": fields.optional_text("context"),
        "server": server.rstrip("/") if server else None,
        "token": fields.secret("token", required=bool(server)),
        "certificate_authority": fields.optional_text("certificateAuthority"),
    }
    _check_connection(fields, found)
    return found


def _tokens(block: Fields) -> dict[str, Any]:
    """``enabled``, and ``apiServer`` where instances do not reach home's own Service address."""
    found: dict[str, Any] = {"tokens": block.boolean("enabled", False)}
    if block.has("apiServer"):
        server = block.child("apiServer")
        host = server.text("host", pattern=_HOST, allowed="a host name or an address, no URL")
        found["home_api"] = HomeApi(host, server.integer("port", _HTTPS, 1, 65535))
        server.done()
    block.take("apiServer")
    block.done()
    return found


def _services(block: Fields) -> dict[str, Any]:
    """``enabled``, and ``clusterDNS`` with ``clusterDomain`` as in a kubelet's configuration."""
    found: dict[str, Any] = {"home_services": block.boolean("enabled", False)}
    domain = block.text(
        "clusterDomain", "cluster.local", pattern=DNS_SUBDOMAIN, allowed="a DNS domain"
    )
    servers = block.texts("clusterDNS")
    for index, server in enumerate(servers):
        if not _is_address(server):
            block.wrong(f"clusterDNS[{index}]", server, "an IP address such as 10.96.0.10")
    if len(servers) > MAX_NAME_SERVERS:
        block.wrong("clusterDNS", str(len(servers)), f"at most {MAX_NAME_SERVERS} addresses")
    if servers:
        found["home_dns"] = HomeDns(tuple(servers), domain)
    block.done()
    return found


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_connection(fields: Fields, found: Mapping[str, Any]) -> None:
    if bool(found["kubeconfig"]) == bool(found["server"]):
        fields.refuse("kubeconfig", _HOW_TO_CONNECT)
    server = http_url(found["server"] or "")
    if found["server"] and server is None:
        fields.wrong("server", found["server"], 'a URL such as "https://10.0.0.1:6443"')
    elif server is not None and (server.username or server.password):
        fields.refuse("server", "a password can't stand in the URL; use token")
    if found["server"] and found["context"]:
        fields.refuse("context", "it names a context of a kubeconfig, and server takes none")
    if found["kubeconfig"]:
        for key, name in (("token", "token"), ("certificateAuthority", "certificate_authority")):
            if found[name]:
                fields.refuse(key, "a kubeconfig holds its own; it goes with server")


def _label(fields: Fields, key: str, default: str) -> str:
    found = fields.text(key, default)
    if not re.fullmatch(DNS_LABEL, found):
        fields.wrong(key, found, "the name of a namespace")
    return found


def _namespaces(fields: Fields) -> Mapping[str, str]:
    found = fields.mapping("namespaces")
    for home, remote in found.items():
        if not re.fullmatch(DNS_LABEL, remote):
            fields.wrong("namespaces", remote, f"the name of a namespace for {home}")
    return found


def _claims(fields: Fields) -> Mapping[str, str]:
    found = fields.mapping("volumeClaims")
    for home in found:
        if not _CLAIM.fullmatch(home):
            fields.wrong("volumeClaims", home, "keys such as default/models (namespace/claim)")
    return found


def _name(fields: Fields, key: str) -> str | None:
    return fields.optional_text(key, pattern=DNS_SUBDOMAIN, allowed="the name of an object")


def _selector(fields: Fields) -> Mapping[str, str]:
    found = fields.mapping("nodeSelector")
    for label, value in found.items():
        if not (re.fullmatch(QUALIFIED_NAME, label) and re.fullmatch(LABEL_VALUE, value)):
            fields.wrong("nodeSelector", f"{label}: {value}", "labels of nodes, with their values")
    return found


def _toleration(block: Fields) -> Mapping[str, Any]:
    """What the other API server would refuse of every instance is refused here, once."""
    found: dict[str, Any] = {
        "key": block.optional_text("key", pattern=QUALIFIED_NAME, allowed="a taint's key"),
        "operator": block.optional_text("operator", choices=_OPERATORS),
        "value": block.optional_text("value"),
        "effect": block.optional_text("effect", choices=EFFECTS),
    }
    if block.take("tolerationSeconds") is not None:
        found["tolerationSeconds"] = block.integer("tolerationSeconds", 0)
        if found["effect"] != NO_EXECUTE:
            block.refuse("tolerationSeconds", f"goes with effect {NO_EXECUTE} alone")
    if found["key"] is None and found["operator"] != "Exists" and not block.has("key"):
        block.refuse("key", "missing; without a key the operator must be Exists")
    if found["value"] is not None and found["operator"] == "Exists":
        block.refuse("value", "the operator Exists takes none")
    block.done()
    return {key: value for key, value in found.items() if value is not None}


def _quantities(fields: Fields, key: str) -> Mapping[str, str]:
    found = fields.mapping(key, numbers=True)
    for name, amount in found.items():
        try:
            quantities.parse(amount)
        except ValueError:
            fields.wrong(key, amount, f"a quantity for {name} such as 500m or 2Gi")
    return found
