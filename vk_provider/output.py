"""Words on a terminal: what commands print, with emphasis where a person looks.

Fed by :mod:`vk_provider.cli` and :mod:`vk_provider.offline`; feeds standard output (results)
and standard error (complaints).
"""

from __future__ import annotations

import io
import os
import re
import sys
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

# Control and direction characters, but for line ends and tabs; results have emphasis of their own.
_UNTAMED = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_UNPAINTED = rf"(?!\x1b\[(?:[012]|3[12])m){_UNTAMED}"
_NARROWEST, _USUAL, _WIDEST = 60, 100, 110


@dataclass(frozen=True, slots=True)
class Style:
    """How text is emphasized; without colour everything stays as it is."""

    colour: bool = False
    width: int = _USUAL

    @classmethod
    def of(cls, stream: TextIO, environ: Mapping[str, str] | None = None) -> Style:
        """Colour for a terminal whose owner has not set ``NO_COLOR``, as wide as the terminal."""
        variables = os.environ if environ is None else environ
        if not stream.isatty():
            return cls()
        try:
            columns = os.get_terminal_size(stream.fileno()).columns
        except OSError:
            columns = _USUAL
        dumb = variables.get("TERM") == "dumb"
        is_plain = dumb or bool(variables.get("NO_COLOR"))
        return cls(not is_plain, max(_NARROWEST, min(columns, _WIDEST)))

    def strong(self, text: str) -> str:
        """A heading."""
        return self._paint("1", text)

    def good(self, text: str) -> str:
        """What works."""
        return self._paint("32", text)

    def bad(self, text: str) -> str:
        """What does not."""
        return self._paint("31", text)

    def dim(self, text: str) -> str:
        """What is only there to be found."""
        return self._paint("2", text)

    def wrapped(self, text: str, first: str = "", rest: str = "") -> str:
        """A paragraph within the width, its first line after ``first``, others after ``rest``."""
        return textwrap.fill(
            text,
            self.width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def fill_in_streams() -> None:
    """Give a process that was started with a closed stream a silent one in its place: otherwise
    the next socket gets its number, and whoever prints writes into it."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.close(number)
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal of another alphabet shows codes instead of what it lacks.
        sys.stdout.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """One piece of a command's result."""
    untamed = _UNPAINTED if Style.of(sys.stdout).colour else _UNTAMED
    sys.stdout.write(f"{_tame(text, untamed)}\n")


def complain(text: str) -> None:
    """What went wrong, if anybody can hear it."""
    with suppress(OSError):
        sys.stderr.write(f"{_tame(text, _UNTAMED)}\n")


def _tame(text: str, untamed: str) -> str:
    """What came out of a file, as it can be shown: a terminal obeys what it is sent."""
    return re.sub(untamed, lambda found: found[0].encode("unicode_escape").decode(), text)
