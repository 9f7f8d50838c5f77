"""An order of the back door as the fields of what it sets: known keys, values of their types. Pure.

Fed by ``back_door`` and a simulator's own orders with a body in camelCase; feeds them keyword
arguments. A wrong one is told at once: otherwise it would break calls that come later.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from vk_provider.fields import show

_WORDS: Mapping[Any, str] = {
    float: "a number, 0 or more",
    int: "a whole number",
    bool: "true or false",
    str: "a text",
    NoneType: "null",
}


class BadRequestError(ValueError):
    """The back door was asked for something that it doesn't know."""


def read_order(
    body: Mapping[str, Any],
    kind: type[Any],
    more: Collection[str] = (),
    hidden: Collection[str] = (),
) -> dict[str, Any]:
    """The body as arguments of a dataclass, and of ``more`` as it came; ``hidden`` fields can't be
    set. Raises BadRequestError."""
    known = sorted({*keys(kind, hidden), *more})
    if unknown := sorted(set(body) - set(known)):
        raise BadRequestError(f"unknown keys {unknown}; known: {known}")
    hints = {camel_word(name): hint for name, hint in get_type_hints(kind).items()}
    for key, value in body.items():
        if key not in more and not _fits(value, hints[key]):
            raise BadRequestError(f"{key}: found {show(value)}, allowed: {_words(hints[key])}")
    return {
        snake_word(key): tuple(value) if isinstance(value, list) else value
        for key, value in body.items()
    }


def keys(kind: type[Any], hidden: Collection[str] = ()) -> list[str]:
    """The keys that a dataclass has at the back door."""
    return [camel_word(field.name) for field in fields(kind) if field.name not in hidden]


def camel_word(word: str) -> str:
    """``hold_ms`` as ``holdMs``."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), word)


def snake_word(word: str) -> str:
    """``holdMs`` as ``hold_ms``."""
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", word)


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is UnionType:
        return any(_fits(value, each) for each in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, list) and _fit(value, get_args(hint))
    if hint is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and math.isfinite(value) and value >= 0
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def _fit(values: list[Any], hints: tuple[Any, ...]) -> bool:
    if hints[-1] is ...:
        return all(_fits(value, hints[0]) for value in values)
    pairs = zip(values, hints, strict=False)
    return len(values) == len(hints) and all(_fits(value, hint) for value, hint in pairs)


def _words(hint: Any) -> str:
    if get_origin(hint) is UnionType:
        return " or ".join(_words(each) for each in get_args(hint))
    if get_origin(hint) is not tuple:
        return _WORDS[hint]
    first, *rest = get_args(hint)
    return f"a list of {'any length' if rest[-1] is ... else len(rest) + 1}: {_words(first)} each"
