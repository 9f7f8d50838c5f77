"""Variables: references to copies stay references, home's facts become text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vk_provider_kubernetes.copies import Copies
from vk_provider_kubernetes.environment import environment, want
from vk_provider_kubernetes.rules import HOME_SERVICES
from vk_provider_kubernetes.walk import Findings

from vk_provider.pods.references import CONFIG_MAP, SECRET
from vk_provider.testing.builders import make_container, make_resolved_pod


def translated(objects: Mapping[Any, Any], **container: Any) -> tuple[dict[str, Any], Copies]:
    """The variables of a pod's only container."""
    metadata = {"annotations": {"price": "5 $ or $(MODE)"}}
    pod = make_resolved_pod(
        objects=objects, containers=[make_container(**container)], metadata=metadata
    )
    copies, findings = Copies(pod.stamp, pod.objects), Findings()
    want(pod.containers[0].spec, copies)
    found = environment(pod.containers[0], copies, findings)
    assert findings.problems == []
    return found, copies


def test_literal_variables_go_along() -> None:
    """Unexpanded: the other kubelet expands them."""
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"}, {"name": "C"}]

    assert translated({}, env=env)[0] == {"env": env}


def test_keys_of_objects_become_keys_of_copies(objects: Mapping[Any, Any]) -> None:
    """No value of a Secret stands in the pod."""
    secret = {"name": "login", "key": "password", "optional": False}
    env = [
        {"name": "P", "valueFrom": {"secretKeyRef": secret}},
        {"name": "M", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "mode"}}},
    ]

    found, copies = translated(objects, env=env)

    password, mode = (each["valueFrom"] for each in found["env"])
    assert password["secretKeyRef"] == {**secret, "name": copies.name_of(SECRET, "login")}
    assert mode["configMapKeyRef"]["name"] == copies.name_of(CONFIG_MAP, "conf")
    assert {copy.kind for copy in copies.all()} == {CONFIG_MAP, SECRET}
    assert "secret-word" not in repr(found)


def test_whole_objects_become_whole_copies(objects: Mapping[Any, Any]) -> None:
    """With their prefix."""
    sources = [{"prefix": "X_", "configMapRef": {"name": "conf"}}, {"secretRef": {"name": "login"}}]

    found, copies = translated(objects, envFrom=sources)

    assert found["envFrom"] == [
        {"prefix": "X_", "configMapRef": {"name": copies.name_of(CONFIG_MAP, "conf")}},
        {"secretRef": {"name": copies.name_of(SECRET, "login")}},
    ]


def test_home_facts_are_text_that_nobody_expands() -> None:
    """A dollar in an annotation is a dollar."""
    source = {"fieldRef": {"fieldPath": "metadata.annotations['price']"}}

    found, _ = translated({}, env=[{"name": "PRICE", "valueFrom": source}])

    assert found["env"] == [{"name": "PRICE", "value": "5 $$ or $$(MODE)"}]


def test_addresses_and_resources_are_the_other_kubelets() -> None:
    """It knows them, home does not."""
    resource = {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}
    file = {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}
    env = [
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CPU", "valueFrom": resource},
        {"name": "FILE", "valueFrom": file},
    ]

    assert translated({}, env=env)[0] == {"env": env}


def test_no_variables_make_no_fields() -> None:
    """An absent field stays absent."""
    assert translated({})[0] == {}


def test_services_of_home_come_first_where_they_are_reached() -> None:
    """Other variables may refer to them; one that the pod sets itself stands."""
    spec = make_container(env=[{"name": "URL", "value": "$(DB_SERVICE_HOST)"}])
    told = {"DB_SERVICE_HOST": "10.0.0.7", "URL": "x"}
    pod = make_resolved_pod(containers=[spec])
    container = replace(pod.containers[0], service_env=told)
    copies = Copies(pod.stamp, {})

    reached = environment(container, copies, Findings(frozenset({HOME_SERVICES})))

    assert reached["env"] == [
        {"name": "DB_SERVICE_HOST", "value": "10.0.0.7"},
        {"name": "URL", "value": "$(DB_SERVICE_HOST)"},
    ]
    assert environment(container, copies, Findings())["env"] == reached["env"][1:]
