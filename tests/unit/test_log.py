"""Logs for people and machines, and no secret in either."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from vk_provider import log


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Always."""
        return True


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_json_without_a_terminal() -> None:
    """One object per line, with extra fields."""
    stream = io.StringIO()
    log.set_up(stream=stream)

    logging.getLogger("vk_provider.loops.relist").warning("gone %d", 3, extra={"uid": "u-1"})

    line = json.loads(stream.getvalue())
    assert (line["level"], line["msg"], line["uid"]) == ("warning", "gone 3", "u-1")
    assert line["logger"] == "vk_provider.loops.relist"
    assert line["ts"].endswith("Z")


def test_colour_on_a_terminal() -> None:
    """Short and aligned."""
    stream = Terminal()
    log.set_up(stream=stream)

    logging.getLogger("vk_provider.app").info("up", extra={"port": 1})

    assert "\x1b[32mINF" in stream.getvalue()
    assert "port=1" in stream.getvalue()


def test_human_style_in_a_file_has_no_colour() -> None:
    """Escape codes do not belong into files."""
    stream = io.StringIO()
    log.set_up(style="human", stream=stream)
    logging.getLogger("x").log(25, "odd level")
    assert "\x1b" not in stream.getvalue()
    assert "odd level" in stream.getvalue()


def test_foreign_text_can_not_pose_as_ours() -> None:
    """No escape sequence reaches the terminal, no forged line stands at its beginning."""
    stream = io.StringIO()
    log.set_up(style="human", stream=stream)
    forged = ValueError("a\x1b[2J\n12:00:00 ERR forged")
    logging.getLogger("x").info("%s", forged, extra={"why": "b\x07"}, exc_info=forged)
    assert stream.getvalue().count("a?[2J\n    12:00:00 ERR forged") == 2
    assert "why=b?" in stream.getvalue()


def test_libraries_that_tell_headers_do_not_at_debug() -> None:
    """They would show keys, and what a pod's Secrets hold."""
    stream = io.StringIO()
    log.set_up(level="debug", stream=stream)
    logging.getLogger("hpack.hpack").debug("Encoding (b'authorization', b'x')")
    logging.getLogger("vk_provider.x").debug("ours")
    assert stream.getvalue().count("\n") == 1


def test_the_level_is_respected() -> None:
    """Debug only when asked for."""
    stream = io.StringIO()
    log.set_up(level="warning", stream=stream)
    logging.getLogger("x").info("quiet")
    assert not stream.getvalue()


@pytest.mark.parametrize("style", ["human", "json"])
def test_a_traceback_is_shown_and_scrubbed(style: str) -> None:
    """A secret in an exception is the one nobody thought of."""
    log.redact("s3cr3t-api-key")
    stream = io.StringIO()
    log.set_up(style=style, stream=stream)

    try:
        raise ValueError("refused s3cr3t-api-key")
    except ValueError:
        logging.getLogger("x").exception("broke")

    assert "Traceback" in stream.getvalue()
    assert "s3cr3t" not in stream.getvalue()


def test_a_registered_secret_with_quotes_is_scrubbed_from_json() -> None:
    """Encoding must not hide it from the search."""
    log.redact('pass"word')
    stream = io.StringIO()
    log.set_up(style="json", stream=stream)
    logging.getLogger("x").info("is pass%sword", '"', extra={"key": 'pass"word', "number": 7})
    assert "word" not in stream.getvalue()
    assert json.loads(stream.getvalue())["number"] == 7


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("Authorization: Bearer abcdef123456", "abcdef123456"),
        ("token eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJl.c2ln", "eyJ"),
        ("https://user:hunter22@example.test/x", "hunter22"),
        ("GET /v2?api_key=abcdef&x=1", "abcdef"),
        ("-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----", "MHcC"),
    ],
)
def test_known_shapes_of_secrets_are_scrubbed(text: str, hidden: str) -> None:
    """Also those nobody registered."""
    assert hidden not in log.scrub(text)
    assert log.REDACTED in log.scrub(text)


def test_short_values_are_not_registered() -> None:
    """Otherwise ordinary words would be cut to pieces."""
    log.redact("web")
    assert log.scrub("web is up") == "web is up"


def test_ordinary_text_stays() -> None:
    """Scrubbing must not eat messages."""
    text = 'secret "db" not found; the token of namespace x has expired'
    assert log.scrub(text) == text
