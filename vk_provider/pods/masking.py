"""Hides the values of Secrets in what is shown to people.

Fed by providers' ``explain``: a value that came from a Secret may stand anywhere in a request, also
within an argument that ``$(VAR)`` was expanded in.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

MASK = "***"

_SHORTEST_PART = 4


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


def _spellings(secret: str) -> tuple[str, ...]:
    """As it is, and as it stands within JSON that is itself a text."""
    return (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
