"""Types of command-line flags: text in, a checked value out, or argparse's own complaint. Pure.

Fed by a person through argparse; used by the ``add_arguments`` of simulators and checkups, so
that each refuses the same nonsense in the same words before it opens a port or asks a cluster.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable

from vk_provider.syntax import DNS_LABEL, DNS_LABEL_WORDS, DNS_SUBDOMAIN

_HIGHEST_PORT = 65_535
_LONGEST_NAME = 253


def port(text: str) -> int:
    """A port to listen on; 0 takes a free one. Raises argparse.ArgumentTypeError."""
    number = _integer(text, f"a port, 0 to {_HIGHEST_PORT}")
    if not 0 <= number <= _HIGHEST_PORT:
        raise _wrong(text, f"a port, 0 to {_HIGHEST_PORT}")
    return number


def count(least: int) -> Callable[[str], int]:
    """A whole number of at least ``least``. The type raises argparse.ArgumentTypeError."""
    allowed = f"a whole number of at least {least}"

    def parse(text: str) -> int:
        number = _integer(text, allowed)
        if number < least:
            raise _wrong(text, allowed)
        return number

    return parse


def quantity(text: str) -> float:
    """A finite number that is not negative. Raises argparse.ArgumentTypeError."""
    return _number(text, text, "a number, 0 or more")


def span(text: str) -> tuple[float, float]:
    """One number, or the ends of a range: ``200``, ``50-500``. Raises ArgumentTypeError."""
    allowed = "one number or a range from low to high, such as 200 or 50-500"
    low, dash, high = text.partition("-")
    ends = _number(low, text, allowed), _number(high if dash else low, text, allowed)
    if ends[0] > ends[1]:
        raise _wrong(text, allowed)
    return ends


def namespace_name(text: str) -> str:
    """The name of a namespace. Raises argparse.ArgumentTypeError."""
    if not re.fullmatch(DNS_LABEL, text):
        raise _wrong(text, f"a namespace, {DNS_LABEL_WORDS}")
    return text


def pod_name(text: str) -> tuple[str, str]:
    """Namespace (``default`` where none is given) and name of a pod, as ``NAMESPACE/NAME``.

    Raises argparse.ArgumentTypeError."""
    space, slash, name = text.rpartition("/")
    is_named = len(name) <= _LONGEST_NAME and re.fullmatch(DNS_SUBDOMAIN, name)
    if not is_named or (slash and not re.fullmatch(DNS_LABEL, space)):
        raise _wrong(text, f"a pod as NAMESPACE/NAME, each {DNS_LABEL_WORDS}")
    return space or "default", name


def _integer(text: str, allowed: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _wrong(text, allowed) from None


def _number(part: str, text: str, allowed: str) -> float:
    try:
        number = float(part)
    except ValueError:
        raise _wrong(text, allowed) from None
    if not math.isfinite(number) or number < 0:
        raise _wrong(text, allowed)
    return number


def _wrong(text: str, allowed: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"found {text!r}, allowed: {allowed}")
