"""A container's final environment."""

from __future__ import annotations

from typing import Any

from vk_provider.pods.downward import PodFields
from vk_provider.pods.environment import Environment
from vk_provider.pods.lookup import Lookup
from vk_provider.pods.references import CONFIG_MAP, SECRET, ObjectKey
from vk_provider.testing.builders import NODE_NAME, make_container, make_pod

PATH = "spec.containers[0]"
OBJECTS = {
    ObjectKey(CONFIG_MAP, "default", "settings"): {"data": {"MODE": "a", "odd.key": "b"}},
    ObjectKey(CONFIG_MAP, "default", "more"): {"data": {"MODE": "c"}},
    ObjectKey(SECRET, "default", "login"): {"stringData": {"PASSWORD": "s"}},
}


def environment(services: dict[str, str] | None = None) -> Environment:
    """What the containers of a plain pod share."""
    lookup = Lookup("default", OBJECTS)
    fields = PodFields(make_pod(), NODE_NAME, None, {}, lookup)
    return Environment(lookup, fields, services or {})


def variable(name: str, **value_from: Any) -> dict[str, Any]:
    """A variable with a source."""
    return {"name": name, "valueFrom": value_from}


def test_later_sources_win() -> None:
    """Services, then envFrom in its order, then env."""
    container = make_container(
        envFrom=[{"configMapRef": {"name": "settings"}}, {"configMapRef": {"name": "more"}}],
        env=[{"name": "OWN", "value": "1"}, {"name": "OWN", "value": "2"}],
    )

    env = environment({"MODE": "service", "X_PORT": "80", "OWN": "0"}).of(container, PATH)

    assert env == {"MODE": "c", "X_PORT": "80", "OWN": "2", "odd.key": "b"}


def test_a_prefix_stands_before_every_name() -> None:
    """For ConfigMaps and Secrets alike."""
    sources = [
        {"prefix": "A_", "configMapRef": {"name": "settings"}},
        {"prefix": "B_", "secretRef": {"name": "login"}},
    ]

    env = environment().of(make_container(envFrom=sources), PATH)

    assert env == {"A_MODE": "a", "A_odd.key": "b", "B_PASSWORD": "s"}


def test_only_earlier_names_expand() -> None:
    """Whatever source they come from, service variables included."""
    container = make_container(
        envFrom=[{"secretRef": {"name": "login"}}],
        env=[
            {"name": "EARLY", "value": "$(LATE)-$(PASSWORD)-$(X_PORT)"},
            variable("LATE", configMapKeyRef={"name": "settings", "key": "MODE"}),
            {"name": "URL", "value": "$(EARLY)/$(LATE)/$$(LATE)"},
        ],
    )

    env = environment({"X_PORT": "80"}).of(container, PATH)

    assert env["EARLY"] == "$(LATE)-s-80"
    assert env["URL"] == "$(LATE)-s-80/a/$(LATE)"


def test_values_of_references_do_not_expand() -> None:
    """A password may hold a dollar sign."""
    key = ObjectKey(SECRET, "default", "x")
    shared = environment()
    shared = Environment(
        Lookup("default", {key: {"stringData": {"k": "$(A)"}}}), shared.fields, {"A": "1"}
    )
    container = make_container(env=[variable("B", secretKeyRef={"name": "x", "key": "k"})])

    assert shared.of(container, PATH)["B"] == "$(A)"


def test_optional_references_that_are_absent_leave_no_variable() -> None:
    """Not even an empty one."""
    missing: dict[str, Any] = {"name": "nope", "optional": True}
    container = make_container(
        envFrom=[{"configMapRef": missing}],
        env=[
            variable("A", secretKeyRef={**missing, "key": "k"}),
            variable("B", secretKeyRef={"name": "login", "key": "k", "optional": True}),
        ],
    )
    shared = environment()

    assert shared.of(container, PATH) == {}
    assert len(shared.lookup.skipped) == 3
    assert not shared.lookup.missing


def test_mandatory_references_are_missed_all_at_once() -> None:
    """Each with the path of the field that wants it."""
    container = make_container(
        envFrom=[{"secretRef": {"name": "nope"}}],
        env=[variable("A", configMapKeyRef={"name": "settings", "key": "k"})],
    )
    shared = environment()

    shared.of(container, PATH)

    assert [each.path for each in shared.lookup.missing] == [
        "spec.containers[0].envFrom[0].secretRef",
        "spec.containers[0].env[0].valueFrom.configMapKeyRef",
    ]


def test_keys_that_are_no_text_make_no_variable() -> None:
    """The others of the object do."""
    key = ObjectKey(SECRET, "default", "x")
    shared = Environment(
        Lookup("default", {key: {"data": {"a": "//8="}, "stringData": {"b": "1"}}}),
        environment().fields,
        {},
    )

    env = shared.of(make_container(envFrom=[{"secretRef": {"name": "x"}}]), PATH)

    assert env == {"b": "1"}
    assert shared.lookup.unresolvable


def test_fields_and_empty_values() -> None:
    """A variable without a value is empty; a field that isn't known leaves none."""
    container = make_container(
        env=[
            {"name": "EMPTY"},
            variable("NODE", fieldRef={"fieldPath": "spec.nodeName"}),
            variable("IP", fieldRef={"fieldPath": "status.podIP"}),
        ]
    )

    assert environment().of(container, PATH) == {"EMPTY": "", "NODE": NODE_NAME}
