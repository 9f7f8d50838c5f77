"""Ports of a query, texts of errors, and the one interface of both transports."""

import pytest

from vk_provider.faults import WireError
from vk_provider.wire.portforward import (
    PortForward,
    PortQueryError,
    forward_error,
    parse_port,
    parse_ports,
)
from vk_provider.wire.portforward_spdy import SpdyPortForward
from vk_provider.wire.portforward_websocket import WebSocketPortForward
from vk_provider.wire.remote_command import PeerGone


def test_ports_may_be_repeated_and_listed() -> None:
    """In order."""
    assert parse_ports(["80,443", "8080"]) == [80, 443, 8080]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], 'query parameter "port" is required'),
        (["80", ""], 'query parameter "port" cannot be empty'),
        (["http"], 'unable to parse "http" as a port: invalid syntax'),
        (["80,"], 'unable to parse "" as a port: invalid syntax'),
        (["0"], 'port "0" must be > 0'),
    ],
)
def test_bad_ports_of_a_query_are_refused(values: list[str], message: str) -> None:
    """With the kubelet's sentences."""
    with pytest.raises(PortQueryError) as caught:
        parse_ports(values)

    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["65536", "-1", "+80", "8 0", "٨٠", "1" * 5000, ""])
def test_what_is_no_port_is_a_fault(text: str) -> None:
    """65535 is the last one."""
    with pytest.raises(WireError):
        parse_port(text)


def test_an_error_reads_as_the_kubelets() -> None:
    """kubectl prints it as it is."""
    text = forward_error(80, "web", "u-1", "connection refused")

    assert text == "error forwarding port 80 to pod web, uid u-1: connection refused"


@pytest.mark.parametrize("forward", [SpdyPortForward(), WebSocketPortForward("", [80])])
def test_both_transports_are_one_interface(forward: PortForward) -> None:
    """The server's core knows neither."""
    forward.begin()
    forward.end(0)
    forward.acknowledge(0, 1)
    forward.send(0, b"x")
    forward.close(0)
    forward.expire("1")

    assert forward.room(0) > 2**30
    assert not forward.paused
    assert forward.feed_eof() == [PeerGone()]
    assert forward.feed_eof() == []
