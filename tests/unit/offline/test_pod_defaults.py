"""Pod defaults: what the API server would have stored."""

import copy
from typing import Any

import pytest

from vk_provider.offline.pod_defaults import TOKEN_VOLUME, UNKNOWN_UID, with_defaults


def pod_of(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A Pod of one container, with defaults."""
    containers = [{"name": "a", "image": "x", **(container or {})}]
    return with_defaults({"spec": {"containers": containers, **spec}}, "ns", "n", "Pod")


def test_a_pod_gets_what_every_stored_pod_has() -> None:
    """Namespace, restart policy, grace, a serviceaccount."""
    pod = pod_of()

    assert pod["metadata"] == {"namespace": "ns", "name": "n", "uid": UNKNOWN_UID}
    assert pod["spec"]["restartPolicy"] == "Always"
    assert pod["spec"]["terminationGracePeriodSeconds"] == 30
    assert pod["spec"]["enableServiceLinks"] is True


def test_what_was_written_stays() -> None:
    """A default never wins."""
    pod = pod_of({"imagePullPolicy": "Never"}, restartPolicy="OnFailure", dnsPolicy="None")

    assert pod["spec"]["restartPolicy"] == "OnFailure"
    assert pod["spec"]["dnsPolicy"] == "None"
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == "Never"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("host:5000/busybox", "Always"),
        ("host:5000/busybox:1", "IfNotPresent"),
        ("busybox@sha256:abc", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    """A port is no tag."""
    assert pod_of({"image": image})["spec"]["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Pod", "n"),
        ("StatefulSet", "n-0"),
        ("Deployment", "n-xxxxxxxxxx-xxxxx"),
        ("Job", "n-xxxxx"),
        ("LeaderWorkerSet", "n-xxxxx"),
    ],
)
def test_a_pod_is_named_as_its_controller_would(kind: str, name: str) -> None:
    """The random part is shown as such."""
    assert with_defaults({"spec": {}}, "ns", "n", kind)["metadata"]["name"] == name


def test_limits_are_requests_where_there_are_none() -> None:
    """What is requested explicitly stays."""
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}

    stored = pod_of({"resources": resources})["spec"]["containers"][0]["resources"]

    assert stored["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_ports_probes_and_volumes_are_completed() -> None:
    """An empty volume is an emptyDir; files have a mode."""
    pod = pod_of(
        {"ports": [{"containerPort": 1}], "livenessProbe": {"exec": {}}},
        volumes=[{"name": "e"}, {"name": "c", "configMap": {"name": "x"}}],
    )
    container, volumes = pod["spec"]["containers"][0], pod["spec"]["volumes"]

    assert container["ports"] == [{"containerPort": 1, "protocol": "TCP"}]
    assert container["livenessProbe"]["periodSeconds"] == 10
    assert volumes[0] == {"name": "e", "emptyDir": {}}
    assert volumes[1]["configMap"]["defaultMode"] == 0o644


def test_admissions_token_volume_is_there_unless_declined() -> None:
    """Every real pod has it, so a translation must meet it here too."""
    with_token = pod_of()["spec"]
    without = pod_of(automountServiceAccountToken=False)["spec"]

    assert [each["name"] for each in with_token["volumes"]] == [TOKEN_VOLUME]
    assert with_token["containers"][0]["volumeMounts"][0]["name"] == TOKEN_VOLUME
    assert "volumes" not in without


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": "x", "volumes": 3},
        {"containers": [None, {"resources": {"limits": {}, "requests": []}, "env": [1]}]},
        {"containers": [{"name": 3, "image": 4, "ports": "x", "resources": None}]},
        None,
    ],
)
def test_nonsense_raises_nothing(spec: Any) -> None:
    """`explain` takes what a person typed."""
    assert with_defaults({"spec": spec}, "ns", "n", "Pod")["kind"] == "Pod"


def test_the_template_stays_as_it_is() -> None:
    """It belongs to the document."""
    template = {"metadata": {"labels": {}}, "spec": {"containers": [{"name": "a", "ports": [{}]}]}}
    before = copy.deepcopy(template)

    with_defaults(template, "ns", "n", "Pod")

    assert template == before
