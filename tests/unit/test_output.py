"""Output: colour for a person, plain text for everything else."""

import io
import os
from contextlib import redirect_stdout

import pytest

from vk_provider.output import Style, complain, say


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def __init__(self, descriptor: int = 0) -> None:
        super().__init__()
        self.descriptor = descriptor

    def isatty(self) -> bool:
        """Yes."""
        return True

    def fileno(self) -> int:
        """One that is no terminal, so that its width can't be asked for."""
        return self.descriptor


def test_a_file_gets_no_colour() -> None:
    """Nobody wants escape codes in a log."""
    style = Style.of(io.StringIO(), {})

    assert style == Style(colour=False, width=100)
    assert style.bad("x") == "x"


@pytest.mark.parametrize(
    ("environ", "colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_gets_colour_unless_its_owner_says_no(
    environ: dict[str, str], colour: bool
) -> None:
    """By the common convention; a width that can't be found is the usual one."""
    reading, writing = os.pipe()
    try:
        style = Style.of(Terminal(writing), environ)
    finally:
        os.close(reading)
        os.close(writing)

    assert style == Style(colour, 100)


def test_every_emphasis_ends() -> None:
    """And an empty text stays empty."""
    style = Style(colour=True)

    for paint in (style.strong, style.good, style.bad, style.dim):
        assert paint("x").endswith("x\x1b[0m")
        assert paint("") == ""


def test_paragraphs_are_wrapped_between_words_only() -> None:
    """A path stays in one piece, to be copied."""
    path = "spec.containers[0].securityContext.privileged-and-much-longer"

    assert Style(width=60).wrapped(f"a {path} b", "- ", "  ") == f"- a\n  {path}\n  b"


def test_results_and_complaints_have_their_streams(capsys: pytest.CaptureFixture[str]) -> None:
    """So that one can be piped on without the other."""
    say("result")
    complain("trouble")

    assert capsys.readouterr() == ("result\n", "trouble\n")


def test_a_terminal_is_not_told_what_a_file_wants(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Escape codes and turned directions are shown; our own emphasis is not touched."""
    painted = Style(colour=True).bad("a\x1b[2J\u202eb\r\ud800\té")
    say(painted)
    complain("\x1b]0;title\x07\x1b[31m")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with redirect_stdout(Terminal(-1)) as terminal:
        say(painted)

    out, err = capsys.readouterr()
    tamed = "a\\x1b[2J\\u202eb\\r\\ud800\té"
    assert out == f"\\x1b[31m{tamed}\\x1b[0m\n"
    assert err == "\\x1b]0;title\\x07\\x1b[31m\n"
    assert terminal.getvalue() == f"\x1b[31m{tamed}\x1b[0m\n"
