"""The page about the kubelet API shows the routes that there are."""

from pathlib import Path

from tests.unit.server.route_table import BEGIN, END, cells, table

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
