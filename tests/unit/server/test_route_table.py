"""The page about the kubelet API shows the routes that there are."""

from pathlib import Path

from tests.unit.server.route_table import BEGIN, END, cells, table
from vk_provider.server.limits import Limits
from vk_provider.server.remote_command import StreamTimes
from vk_provider.server.wires import MESSAGE_BYTES
from vk_provider.wire.remote_command_spdy import EXEC_LIMITS
from vk_provider.wire.spdy_session import DEFAULT_LIMITS

PAGE = Path(__file__).parents[3] / "docs" / "kubelet-api.md"


def test_the_page_shows_every_route_with_its_right() -> None:
    """Copy the table of ``python -m tests.unit.server.route_table`` when it changes."""
    lines = PAGE.read_text().splitlines()

    assert lines[lines.index(BEGIN) : lines.index(END) + 1] == table()


def test_every_stream_needs_create() -> None:
    """And nothing that only reads does."""
    for method, path, verb, _ in cells():
        is_stream = path.split("/")[1] in ("exec", "attach", "portForward", "run")
        assert verb == "create" if is_stream else verb != "create" or method == "POST"


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    """Each row that names a default."""
    page, limits, times = PAGE.read_text(), Limits(), StreamTimes()
    rows = {
        "connections of a node's port": f"{limits.connections}",
        "requests at a time, streams included": f"{limits.requests}",
        "request line": f"{limits.request_line_bytes >> 10} KiB",
        "one header line; header lines": f"{limits.header_line_bytes >> 10} KiB; {limits.headers}",
        "request body": f"{limits.body_bytes >> 10} KiB",
        "TLS handshake; first request": (
            f"{limits.handshake_seconds:g} s; {limits.first_request_seconds:g} s"
        ),
        "idle connection between requests": f"{limits.idle_seconds:g} s",
        "streams that a client announced but did not open": f"{times.creation_seconds:g} s",
        "a stream without a byte in either direction": f"{times.idle_seconds / 3600:g} h",
        "a WebSocket message": f"{MESSAGE_BYTES >> 20} MiB",
        "streams of a SPDY connection": (
            f"{EXEC_LIMITS.streams} for exec and attach, {DEFAULT_LIMITS.streams} for port-forward"
        ),
    }

    assert [name for name, value in rows.items() if f"| {name} | {value} |" not in page] == []
