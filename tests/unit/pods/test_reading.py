"""Reading malformed JSON never raises."""

from __future__ import annotations

from vk_provider.pods.reading import mapping, mappings, number, strings, text, texts


def test_wrong_types_read_as_empty() -> None:
    """A part of another type is as good as absent."""
    odd = {"x": 7}

    assert mapping(odd, "x") == {}
    assert mappings(odd, "x") == []
    assert text(odd, "x") == ""
    assert texts(odd, "x") is None
    assert strings(odd, "x") == {}
    assert number({"x": True}, "x") is None


def test_right_types_read_as_they_are() -> None:
    """Well-formed parts come through, list items with their own index."""
    good = {"m": {"a": "b", "c": 1}, "l": [None, {"a": 1}], "t": "s", "w": ["a", 1], "n": 3}

    assert mapping(good, "m") == {"a": "b", "c": 1}
    assert mappings(good, "l") == [(1, {"a": 1})]
    assert text(good, "t") == "s"
    assert texts(good, "w") == ("a", "1")
    assert strings(good, "m") == {"a": "b"}
    assert number(good, "n") == 3
