"""Flags of the command line: what is taken, and what is said of nonsense."""

import argparse
from collections.abc import Callable
from typing import Any

import pytest

from vk_provider.arguments import count, namespace_name, pod_name, port, quantity, span


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (port, "0", 0),
        (port, "65535", 65_535),
        (count(1), "1", 1),
        (count(0), "0", 0),
        (quantity, "0", 0.0),
        (quantity, "2.5", 2.5),
        (span, "200", (200.0, 200.0)),
        (span, "50-500", (50.0, 500.0)),
        (namespace_name, "kube-system", "kube-system"),
        (pod_name, "web/chat-0.a", ("web", "chat-0.a")),
        (pod_name, "chat", ("default", "chat")),
    ],
)
def test_a_sensible_flag_is_taken(parse: Callable[[str], Any], text: str, value: Any) -> None:
    """The limits themselves are allowed."""
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "allowed"),
    [
        (port, "80000", "a port, 0 to 65535"),
        (port, "-1", "a port, 0 to 65535"),
        (port, "http", "a port, 0 to 65535"),
        (count(1), "0", "at least 1"),
        (count(1), "1.5", "at least 1"),
        (quantity, "-1", "0 or more"),
        (quantity, "nan", "0 or more"),
        (quantity, "soon", "0 or more"),
        (span, "foo", "such as 200 or 50-500"),
        (span, "500-50", "such as 200 or 50-500"),
        (span, "-5", "such as 200 or 50-500"),
        (span, "5-", "such as 200 or 50-500"),
        (namespace_name, "", "a namespace, at most"),
        (namespace_name, "a/b", "a namespace, at most"),
        (namespace_name, "A", "a namespace, at most"),
        (pod_name, "", "as NAMESPACE/NAME"),
        (pod_name, "/chat", "as NAMESPACE/NAME"),
        (pod_name, "web/", "as NAMESPACE/NAME"),
        (pod_name, "web/../chat", "as NAMESPACE/NAME"),
        (pod_name, "pod/web/chat", "as NAMESPACE/NAME"),
        (pod_name, "web/" + "a." * 126 + "aa", "as NAMESPACE/NAME"),
    ],
)
def test_nonsense_is_named_with_what_is_allowed(
    parse: Callable[[str], Any], text: str, allowed: str
) -> None:
    """Whoever mistyped a flag sees what was found and what would do."""
    with pytest.raises(argparse.ArgumentTypeError) as error:
        parse(text)
    assert f"found {text!r}" in str(error.value)
    assert allowed in str(error.value)
