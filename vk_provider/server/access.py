"""Who asks, and what the API server is asked about them: a kubelet's table, as pure functions.

Fed by the request line and the verified client certificate; feeds ``auth``.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

AUTHENTICATED = "system:authenticated"
_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_STREAMS = ("/exec", "/attach", "/portForward", "/run")
_SUBRESOURCES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("/stats", ("stats",)),
    ("/metrics", ("metrics",)),
    ("/logs", ("log",)),
    ("/checkpoint", ("checkpoint",)),
    ("/statusz", ("statusz",)),
    ("/pods", ("pods", "proxy")),
    ("/runningpods", ("pods", "proxy")),
    ("/healthz", ("healthz", "proxy")),
    ("/configz", ("configz", "proxy")),
    ("/flagz", ("configz",)),
)


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller as the API server knows them."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class AccessAttributes:
    """One question of authorization: may this caller do that to ``nodes/<subresource>``?"""

    identity: Identity
    verb: str
    node_name: str
    subresource: str


class Reviewer(Protocol):
    """The API server as the judge of callers. Raises ``KubeError`` when it can't judge."""

    async def token_review(self, token: str) -> Identity | None:
        """Whose token it is; None if it is nobody's."""

    async def access_review(self, attributes: AccessAttributes) -> bool:
        """Whether the caller may."""


def verb_and_subresources(method: str, path: str) -> tuple[str, tuple[str, ...]]:
    """What a request needs: a verb, and subresources of which one must be allowed, in order.

    Streams need ``create`` whatever the method: over WebSocket they arrive as GET, and whoever may
    only read must not be able to run a command.
    """
    if any(_is_below(path, stream) for stream in _STREAMS):
        return "create", ("proxy",)
    verb = _VERBS.get(method, method.lower())
    for prefix, subresources in _SUBRESOURCES:
        if _is_below(path, prefix):
            return verb, subresources
    return verb, ("proxy",)


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix + "/")


def certificate_identity(certificate: Mapping[str, Any] | None, now: float) -> Identity | None:
    """The caller of a **verified** client certificate as ``ssl`` shows it: CN is the user, each O
    a group. None without a certificate, without a CN, or once it has expired."""
    if not certificate:
        return None
    subject = [pair for rdn in certificate.get("subject", ()) for pair in rdn]
    names = [value for key, value in subject if key == "commonName"]
    if not names or not names[-1] or now > ssl.cert_time_to_seconds(certificate["notAfter"]):
        return None
    groups = [value for key, value in subject if key == "organizationName"]
    return Identity(user=names[-1], groups=with_authenticated(groups))


def with_authenticated(groups: Sequence[str]) -> tuple[str, ...]:
    """The groups, with the one that everybody is in who has shown who they are."""
    return (*groups, *(() if AUTHENTICATED in groups else (AUTHENTICATED,)))


def forbidden_text(identity: Identity, verb: str, subresources: Sequence[str]) -> str:
    """The body of a 403, in a kubelet's words."""
    names = ", ".join(subresources)
    return f"Forbidden (user={identity.user}, verb={verb}, resource=nodes, subresource(s)={names})"
