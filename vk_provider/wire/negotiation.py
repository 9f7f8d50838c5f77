"""PURE. Which streaming protocol an upgrade request gets, or the kubelet's refusal of it.

Texts, status codes and headers are those of ``k8s.io/streaming`` (``httpstream.Handshake``, the
SPDY upgrader and ``wsstream``). A request may carry its protocols in one header or in several
lines, best first: kubectl sends five ``X-Stream-Protocol-Version`` lines, so never read headers
into a dict. Fed by ``server`` (all header lines of a request); feeds the 101 or the error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

STREAM_PROTOCOL = "X-Stream-Protocol-Version"
ACCEPTED_PROTOCOLS = "X-Accepted-Stream-Protocol-Versions"
WEBSOCKET_PROTOCOL = "Sec-WebSocket-Protocol"
SPDY = "SPDY/3.1"
TUNNEL = "SPDY/3.1+portforward.k8s.io"
"""The WebSocket subprotocol whose binary messages carry the bytes of a SPDY connection."""
PORT_FORWARD = "portforward.k8s.io"

SPDY_COMMAND_PROTOCOLS = (
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
)
"""exec and attach over SPDY. v5 exists for WebSocket only: a real runtime refuses it here."""
WEBSOCKET_COMMAND_PROTOCOLS = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
    "",
)
"""exec and attach over WebSocket; no subprotocol at all is the raw v1."""
SPDY_FORWARD_PROTOCOLS = (PORT_FORWARD,)
WEBSOCKET_FORWARD_PROTOCOLS = (TUNNEL, "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "")

HeaderLines = Sequence[tuple[str, str]]
"""Every header line of a request in order, names in any case, repeated names repeated."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """The protocol both sides speak. ``headers`` belong into the 101; for a WebSocket the library
    writes its own, and is to be offered ``protocol`` alone."""

    protocol: str
    headers: HeaderLines = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer instead of the upgrade, to be sent as ``text/plain; charset=utf-8``."""

    status: int
    message: str
    headers: HeaderLines = ()

    @property
    def body(self) -> str:
        """Go's ``http.Error`` ends its text with a newline."""
        return self.message + "\n"


def is_websocket(request: HeaderLines) -> bool:
    """Whether a request asks for a WebSocket; anything else is taken for SPDY."""
    upgrade = next(iter(_values(request, "Upgrade")), "")
    return upgrade.lower() == "websocket" and _asks_for_upgrade(request)


def negotiate_spdy(request: HeaderLines, supported: Sequence[str]) -> Agreed | Refusal:
    """The first protocol of the client that is supported: 400 without any, 403 without a match."""
    if not _asks_for_upgrade(request):
        return Refusal(400, "Upgrade request required")
    lines = _values(request, STREAM_PROTOCOL)
    if not lines:
        names = {name.lower() for name, _ in request} - {"host"}
        text = f"header {STREAM_PROTOCOL} does not exist in request with {len(names)} headers"
        return Refusal(400, f"unable to upgrade: {text}")
    wanted = [name for name in _listed(lines) if name]
    if not wanted:
        text = f"header {STREAM_PROTOCOL} contains {_go_list(lines)}, but no valid protocols"
        return Refusal(400, f"unable to upgrade: {text}")
    chosen = next((name for name in wanted if name in supported), None)
    if chosen is None:
        offers = f"client supports {_go_list(wanted)}, server accepts {_go_list(supported)}"
        accepted = [(ACCEPTED_PROTOCOLS, name) for name in supported]
        text = f"unable to upgrade: unable to negotiate protocol: {offers}"
        return Refusal(403, text, accepted)
    if SPDY.lower() not in next(iter(_values(request, "Upgrade")), "").lower():
        # The kubelet prints all headers here, credentials too.
        names = {name for name, _ in request}
        text = f"missing upgrade headers in request: {_go_list(sorted(names))}"
        return Refusal(400, f"unable to upgrade: {text}")
    upgrade = [("Connection", "Upgrade"), ("Upgrade", SPDY), (STREAM_PROTOCOL, chosen)]
    return Agreed(chosen, upgrade)


def negotiate_websocket(request: HeaderLines, supported: Sequence[str]) -> Agreed | Refusal:
    """The first subprotocol of the client that is supported, "" where it names none; else 403.
    (x/net/websocket answers its 403 with an empty body; a text helps and breaks nothing.)"""
    wanted = [name for name in _listed(_values(request, WEBSOCKET_PROTOCOL)) if name]
    chosen = next((name for name in wanted or [""] if name in supported), None)
    if chosen is None:
        text = f"requested protocol(s) are not supported: {_go_list(wanted)}; supports"
        return Refusal(403, f"{text} {_go_list([name for name in supported if name])}")
    return Agreed(chosen, [(WEBSOCKET_PROTOCOL, chosen)] if chosen else [])


def _asks_for_upgrade(request: HeaderLines) -> bool:
    return any("upgrade" in value.lower() for value in _values(request, "Connection"))


def _values(request: HeaderLines, name: str) -> list[str]:
    return [value for key, value in request if key.lower() == name.lower()]


def _listed(lines: Iterable[str]) -> list[str]:
    return [name.strip() for line in lines for name in line.split(",")]


def _go_list(names: Sequence[str]) -> str:
    return f"[{' '.join(names)}]"
