"""Hides the values of Secrets in what is shown to people.

Fed by providers' ``explain``: a value that came from a Secret may stand anywhere in a request, also
within an argument that ``$(VAR)`` was expanded in. And by ``loops``: a backend that refuses a
request may quote it, in any spelling, and its words go into Events and statuses.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

MASK = "***"

_SHORTEST_PART = 4
_SHORTEST_LINE = 16
"""From so long on a line of a secret (a key, a credentials file) is hidden by itself."""
_MOST_LINES_OF = 2**16
LONGEST_WORDS = 300


def masked(document: Mapping[str, Any], secret_values: Collection[str]) -> dict[str, Any]:
    """A copy of ``document`` with every secret value in it replaced by :data:`MASK`.

    Also where it is part of a longer text, plain or as JSON within JSON; a value shorter than four
    characters is replaced only where it is the whole text, or every text would be stars.
    """
    longest_first = sorted({value for value in secret_values if value}, key=len, reverse=True)
    return {key: _masked(value, longest_first) for key, value in document.items()}


def mask_text(text: str, secret_values: Collection[str]) -> str:
    """``text`` with every secret value in it replaced by :data:`MASK`."""
    return _masked_text(text, sorted(secret_values, key=len, reverse=True))


def words(text: str, secret_values: Iterable[str]) -> str:
    """What a backend says, as one line of prose that is cut, every secret value in it masked."""
    line = " ".join(mask_text(text, [*secret_values]).split())
    return line if len(line) <= LONGEST_WORDS else f"{line[: LONGEST_WORDS - 1]}…"


class Veiled:
    """A block whose faults are told without the secrets of the request that it is about: whoever
    wrote their words, and those of the faults that they came of, since a traceback shows all."""

    def __init__(self, secret_values: Collection[str]) -> None:
        self._secrets = secret_values

    def __enter__(self) -> None:
        """Nothing is said yet."""

    def __exit__(self, _: object, fault: BaseException | None, __: object) -> None:
        """Take them out of the words of whatever ends the block."""
        seen: set[int] = set()
        while fault is not None and id(fault) not in seen:
            seen.add(id(fault))
            fault.args = tuple(map(self._hidden, fault.args))
            fault = fault.__cause__ or fault.__context__

    def _hidden(self, words: object) -> object:
        return mask_text(words, self._secrets) if isinstance(words, str) else words


def _masked(value: Any, secrets: Collection[str]) -> Any:
    if isinstance(value, str):
        return _masked_text(value, secrets)
    if isinstance(value, Mapping):
        return {key: _masked(each, secrets) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(each, secrets) for each in value]
    return value


def _masked_text(text: str, secrets: Collection[str]) -> str:
    if text and text in secrets:
        return MASK
    for secret in secrets:
        if len(secret) >= _SHORTEST_PART:
            for written in _spellings(secret):
                text = text.replace(written, MASK)
    return text


def _spellings(secret: str) -> Iterator[str]:
    """As it is, in base64 (a file on its way), as it stands within JSON that is itself a text, as
    Python shows it, in one line, and line for line."""
    yield secret
    yield base64.b64encode(secret.encode(errors="replace")).decode()
    if secret.isascii() and secret.isprintable() and not set(secret) & _QUOTED:
        return
    quoted = json.dumps(secret)[1:-1]
    yield from (json.dumps(quoted)[1:-1], quoted, json.dumps(secret, ensure_ascii=False)[1:-1])
    yield from (repr(secret)[1:-1], " ".join(secret.split()))
    if len(secret) <= _MOST_LINES_OF:
        lines = (line.strip() for line in secret.splitlines())
        yield from (line for line in lines if len(line) >= _SHORTEST_LINE)


_QUOTED = frozenset("\"'\\")
