"""Finding objects, and remembering what was missed."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.pods.lookup import Entries, Lookup, MissingReference, Reference
from vk_provider.pods.references import CONFIG_MAP, SECRET, ObjectKey


def lookup(kind: str = SECRET, **fields: Mapping[str, Any]) -> tuple[Lookup, Reference]:
    """A lookup that knows one object ``x`` of this kind, and a reference to it."""
    return Lookup("ns", {ObjectKey(kind, "ns", "x"): fields}), Reference(kind, "x", "spec.here")


def entries(found: Lookup, reference: Reference) -> Entries:
    """The entries of an object that must be there."""
    read = found.entries(reference)
    assert read is not None
    return read


def test_a_reference_is_read_with_its_flag() -> None:
    """Optional only if it says so."""
    assert Reference.read(SECRET, {"name": "x", "optional": True}, "p").optional
    assert not Reference.read(SECRET, {"name": "x", "optional": "yes"}, "p").optional
    assert Reference.read(SECRET, {"secretName": "y"}, "p", "secretName").name == "y"


def test_an_absent_object_is_remembered_as_it_was_wanted() -> None:
    """Known to be absent, and not known at all, are the same; optional ones apart."""
    found = Lookup("ns", {ObjectKey(SECRET, "ns", "gone"): None})

    assert found.entries(Reference(SECRET, "gone", "spec.a")) is None
    assert found.find(Reference(CONFIG_MAP, "never", "spec.b", optional=True)) is None

    assert found.missing == [MissingReference(SECRET, "ns", "gone", "spec.a")]
    assert found.skipped == [MissingReference(CONFIG_MAP, "ns", "never", "spec.b")]


def test_misses_speak_the_kubelets_words() -> None:
    """People search for them."""
    whole = MissingReference(CONFIG_MAP, "ns", "x", "spec.here")
    key = MissingReference(SECRET, "ns", "x", "spec.here", key="k")

    assert str(whole) == 'configmap "x" not found (spec.here)'
    assert (whole.reason, key.reason) == ("ConfigMapNotFound", "SecretKeyNotFound")
    assert key.message == "couldn't find key k in Secret ns/x"


def test_secrets_are_decoded_and_remembered_as_secret() -> None:
    """Also those a person typed as ``stringData``."""
    data = {"a": base64.b64encode(b"one").decode()}
    found, reference = lookup(data=data, stringData={"b": "two"})
    read = entries(found, reference)

    assert read.names() == ["a", "b"]
    assert [found.value(read.without_binary(), key) for key in read.names()] == ["one", "two"]
    assert found.secret_values == {"one", "two"}


def test_config_maps_are_no_secrets_and_their_bytes_no_variables() -> None:
    """``binaryData`` makes files only."""
    binary = {"b": base64.b64encode(b"\xff").decode()}
    found, reference = lookup(CONFIG_MAP, data={"a": "1"}, binaryData=binary)
    read = entries(found, reference)

    assert found.content(read, "b") == b"\xff"
    assert found.value(read.without_binary(), "b") is None
    assert [each.key for each in found.missing] == ["b"]
    assert found.secret_values == set()


def test_what_is_no_base64_or_no_text_is_refused_without_showing_it() -> None:
    """The message names the key, never the value."""
    found, reference = lookup(data={"a": "%%%", "b": base64.b64encode(b"\xff\xfe").decode()})
    read = entries(found, reference)

    assert found.value(read, "a") is None
    assert found.value(read, "b") is None

    assert found.unresolvable == [
        FieldProblem("spec.here", "key a of Secret ns/x is not base64"),
        FieldProblem("spec.here", "key b of Secret ns/x is no text, so it can't be a variable"),
    ]


def test_a_lookup_shows_no_secret() -> None:
    """Its repr may end up in a log."""
    found, reference = lookup(stringData={"a": "hunter22"})
    read = entries(found, reference)
    found.content(read, "a")

    assert "hunter22" not in repr((found, read))


def test_the_same_content_is_held_once() -> None:
    """A pod of a few lines may want the same megabyte a thousand times."""
    found, reference = lookup(data={"a": base64.b64encode(b"secret").decode()})
    read = entries(found, reference)

    assert found.value(read, "a") is found.value(read, "a") == "secret"
    assert found.content(read, "a") is found.content(read, "a")
    assert found.secret_values == {"secret"}
