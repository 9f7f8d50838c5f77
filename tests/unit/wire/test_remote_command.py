"""The query of exec and attach, and the one interface of both transports."""

from collections.abc import Callable

import pytest

from vk_provider.wire.channels import WebSocketRemoteCommand
from vk_provider.wire.outcome import SUCCESS
from vk_provider.wire.remote_command import (
    Output,
    PeerGone,
    RemoteCommand,
    StreamOptions,
    StreamQueryError,
    parse_stream_options,
)
from vk_provider.wire.remote_command_spdy import SpdyRemoteCommand


def test_the_flags_are_the_number_one() -> None:
    """As the API server sends them to a kubelet; `true` is the API's own spelling."""
    query = {"input": "1", "output": "1", "error": "true", "command": "ls"}

    assert parse_stream_options(query) == StreamOptions(stdin=True, stdout=True)


def test_a_tty_has_no_stderr() -> None:
    """It is part of the terminal."""
    query = {"output": "1", "error": "1", "tty": "1"}

    assert parse_stream_options(query) == StreamOptions(stdout=True, tty=True)


@pytest.mark.parametrize("query", [{}, {"tty": "1"}, {"tty": "1", "error": "1"}])
def test_no_stream_at_all_is_refused(query: dict[str, str]) -> None:
    """With the kubelet's sentence."""
    sentence = "you must specify at least 1 of stdin, stdout, stderr"

    with pytest.raises(StreamQueryError, match=sentence):
        parse_stream_options(query)


@pytest.mark.parametrize("transport", [SpdyRemoteCommand, WebSocketRemoteCommand])
def test_both_transports_are_one_interface(
    transport: Callable[[str, StreamOptions], RemoteCommand],
) -> None:
    """The exec core knows neither."""
    command = transport("v4.channel.k8s.io", StreamOptions(stdout=True))

    command.begin()
    command.send(Output.STDOUT, b"x")
    command.acknowledge(1)
    command.finish(SUCCESS)

    assert command.room(Output.STDOUT) > 2**30
    assert not command.paused
    assert command.feed_eof() == [PeerGone()]
    assert command.feed_eof() == []
