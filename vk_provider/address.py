"""The address under which the control plane reaches this process: the node's InternalIP.

Fed by the configuration, the environment (downward API) or the routing table; read by ``app``.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Mapping

from vk_provider.faults import ConfigError, FieldProblem

VARIABLES = ("POD_IP", "NODE_IP")
_ANYWHERE = ("198.51.100.1", 9)
"""An address for documentation (RFC 5737): asking for the route to it sends nothing."""


def internal_address(
    configured: str | None = None, environment: Mapping[str, str] = os.environ
) -> str:
    """``spec.server.address``, else POD_IP or NODE_IP, else the source address of the default
    route, else loopback.

    Raises:
        ConfigError: what is configured is no IP address.
    """
    given = [("spec.server.address", configured)]
    given += [(f"environment variable {name}", environment.get(name)) for name in VARIABLES]
    for where, value in given:
        if value:
            return _checked(where, value)
    return _routed()


def _checked(where: str, value: str) -> str:
    try:
        return str(ipaddress.ip_address(value))
    except ValueError as error:
        message = f'found "{value}", allowed: an IP address that the API server can reach'
        raise ConfigError([FieldProblem(where, message)]) from error


def _routed() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ANYWHERE)
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
