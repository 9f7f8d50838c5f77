"""What a newer Kubernetes brings is refused, and the table is that of the Pod API."""

from __future__ import annotations

from vk_provider.pods.known_fields import KNOWN, unknown_fields
from vk_provider.testing.field_samples import SCHEMA


def test_the_table_is_the_pod_api() -> None:
    """A new field has to be thought about: it would be refused where it could be honoured."""
    known = {name: {w.partition(":")[0] for w in words.split()} for name, words in KNOWN.items()}

    assert known == {name: set(SCHEMA[name]) for name in KNOWN}


def test_what_is_inside_is_of_the_apis_type() -> None:
    """Else its fields would be judged by another type's."""
    pairs = [
        (name, *word.split(":")) for name in KNOWN for word in KNOWN[name].split() if ":" in word
    ]

    assert all(SCHEMA[name][field] == inside for name, field, inside in pairs)
    assert {inside for _, _, inside in pairs} | {"PodSpec"} == set(KNOWN)


def test_an_unknown_field_is_refused_by_its_path() -> None:
    """At any depth, in lists too; one that says nothing is none."""
    spec = {
        "newField": "x",
        "emptyField": {},
        "containers": [
            {"name": "a", "securityContext": {"capabilities": {"add": [], "borrow": ["b"]}}},
            {"name": "b", "env": [{"name": "E", "valueFrom": {"oracle": {"name": "o"}}}]},
        ],
        "volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "as": "z"}]}}],
    }

    assert [each.path for each in unknown_fields(spec)] == [
        "spec.newField",
        "spec.containers[0].securityContext.capabilities.borrow",
        "spec.containers[1].env[0].valueFrom.oracle",
        "spec.volumes[0].configMap.items[0].as",
    ]
