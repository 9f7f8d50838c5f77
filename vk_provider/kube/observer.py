"""Who is told of calls to the API server, for metrics.

Fed by ``kube.client`` and ``kube.watch``; implemented by ``app``.
"""

from __future__ import annotations

from typing import Protocol

_GROUPS = {"api": 2, "apis": 3}
"""Where a path's own part begins: after ``/api/v1`` or after ``/apis/GROUP/VERSION``."""


class Observer(Protocol):
    """Told of what a client does. Answers at once and raises nothing."""

    def request(self, verb: str, resource: str, code: int) -> None:
        """An answer came; ``code`` 0: none did."""

    def watch_restarted(self, resource: str, reason: str) -> None:
        """A watch ended and will be resumed, or listed again."""


class Unobserved:
    """Tells nobody."""

    def request(self, verb: str, resource: str, code: int) -> None:
        """An answer came."""

    def watch_restarted(self, resource: str, reason: str) -> None:
        """A watch ended."""


def resource_of(target: str) -> str:
    """``pods``, ``pods/status``, ``leases`` of a path; its first part where it is about none."""
    parts = target.partition("?")[0].strip("/").split("/")
    own = parts[_GROUPS.get(parts[0], len(parts)) :]
    if own[:1] == ["namespaces"] and len(own) > 2:
        own = own[2:]
    if not own:
        return parts[0]
    return "/".join((own[0], *own[2:3]))
