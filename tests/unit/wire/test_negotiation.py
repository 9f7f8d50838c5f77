"""Negotiation: the client's first choice that is served, or the kubelet's own refusal."""

import pytest

from vk_provider.wire.negotiation import (
    SPDY_COMMAND_PROTOCOLS,
    SPDY_FORWARD_PROTOCOLS,
    TUNNEL,
    WEBSOCKET_COMMAND_PROTOCOLS,
    WEBSOCKET_FORWARD_PROTOCOLS,
    Agreed,
    HeaderLines,
    Refusal,
    is_websocket,
    negotiate_spdy,
    negotiate_websocket,
)

UPGRADE = [("Host", "10.0.0.1"), ("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")]
WEBSOCKET = [("Connection", "keep-alive, Upgrade"), ("Upgrade", "WebSocket")]


def protocols(*lines: str) -> list[tuple[str, str]]:
    return [("X-Stream-Protocol-Version", line) for line in lines]


def test_kubectls_five_lines_give_v4() -> None:
    """v5 exists for WebSocket alone; a dict of headers would have kept the weakest."""
    lines = protocols(*(f"v{n}.channel.k8s.io" for n in (5, 4, 3, 2)), "channel.k8s.io")

    agreed = negotiate_spdy([*UPGRADE, *lines], SPDY_COMMAND_PROTOCOLS)

    assert agreed == Agreed(
        "v4.channel.k8s.io",
        [
            ("Connection", "Upgrade"),
            ("Upgrade", "SPDY/3.1"),
            ("X-Stream-Protocol-Version", "v4.channel.k8s.io"),
        ],
    )


def test_one_line_with_commas_is_a_list_too() -> None:
    """The first of the client that is supported, not the first of ours."""
    request = [*UPGRADE, *protocols("v9.channel.k8s.io, v2.channel.k8s.io,v4.channel.k8s.io")]

    agreed = negotiate_spdy(request, SPDY_COMMAND_PROTOCOLS)

    assert isinstance(agreed, Agreed)
    assert agreed.protocol == "v2.channel.k8s.io"


def test_no_common_protocol_is_403_with_what_is_accepted() -> None:
    """One header line for each."""
    refusal = negotiate_spdy([*UPGRADE, *protocols("a", "b")], ["portforward.k8s.io", "x"])

    assert refusal == Refusal(
        403,
        "unable to upgrade: unable to negotiate protocol: "
        "client supports [a b], server accepts [portforward.k8s.io x]",
        [
            ("X-Accepted-Stream-Protocol-Versions", "portforward.k8s.io"),
            ("X-Accepted-Stream-Protocol-Versions", "x"),
        ],
    )


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ([], "Upgrade request required"),
        (
            [*UPGRADE, ("Accept", "a"), ("accept", "b")],
            "unable to upgrade: header X-Stream-Protocol-Version does not exist "
            "in request with 3 headers",
        ),
        (
            [*UPGRADE, *protocols(" ,", "")],
            "unable to upgrade: header X-Stream-Protocol-Version contains [ , ], "
            "but no valid protocols",
        ),
        (
            [("Connection", "upgrade"), ("Authorization", "secret"), *protocols("p")],
            "unable to upgrade: missing upgrade headers in request: "
            "[Authorization Connection X-Stream-Protocol-Version]",
        ),
    ],
)
def test_a_request_that_is_no_spdy_upgrade_is_400(request_: HeaderLines, message: str) -> None:
    """The kubelet's sentences, without the values of headers."""
    assert negotiate_spdy(request_, ["p"]) == Refusal(400, message)


def test_a_body_ends_as_gos_does() -> None:
    """http.Error writes a line."""
    assert Refusal(400, "no").body == "no\n"


@pytest.mark.parametrize(
    ("request_", "is_one"),
    [
        (WEBSOCKET, True),
        ([("upgrade", "websocket"), ("connection", "Upgrade")], True),
        ([("Upgrade", "websocket")], False),
        (UPGRADE, False),
        ([], False),
    ],
)
def test_a_websocket_request_asks_for_the_upgrade(request_: HeaderLines, is_one: bool) -> None:
    """Header names and values in any case."""
    assert is_websocket(request_) is is_one


@pytest.mark.parametrize(
    ("wanted", "supported", "chosen"),
    [
        ("v5.channel.k8s.io", WEBSOCKET_COMMAND_PROTOCOLS, "v5.channel.k8s.io"),
        ("x, base64.channel.k8s.io", WEBSOCKET_COMMAND_PROTOCOLS, "base64.channel.k8s.io"),
        (TUNNEL, WEBSOCKET_FORWARD_PROTOCOLS, TUNNEL),
    ],
)
def test_the_first_subprotocol_that_is_supported_is_taken(
    wanted: str, supported: tuple[str, ...], chosen: str
) -> None:
    """In the client's order."""
    request = [*WEBSOCKET, ("Sec-Websocket-Protocol", wanted)]

    agreed = Agreed(chosen, [("Sec-WebSocket-Protocol", chosen)])
    assert negotiate_websocket(request, supported) == agreed


def test_no_subprotocol_is_the_oldest_one() -> None:
    """And no header says so."""
    assert negotiate_websocket(WEBSOCKET, WEBSOCKET_COMMAND_PROTOCOLS) == Agreed("", [])


def test_no_common_subprotocol_is_403() -> None:
    """With both lists."""
    request = [*WEBSOCKET, ("Sec-WebSocket-Protocol", "a, b")]

    assert negotiate_websocket(request, ["p", ""]) == Refusal(
        403, "requested protocol(s) are not supported: [a b]; supports [p]"
    )


def test_port_forward_over_spdy_has_one_protocol() -> None:
    """The node offers no other."""
    assert SPDY_FORWARD_PROTOCOLS == ("portforward.k8s.io",)
