"""Everything a kubelet resolves before it starts a pod."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from vk_provider.pods.references import CONFIG_MAP, SECRET, ObjectKey, referenced
from vk_provider.pods.resolve import Missing, ResolveInput, resolve
from vk_provider.pods.tokens import TokenWish
from vk_provider.pods.types import Json, PlacementHints, ResolvedPod
from vk_provider.testing.builders import (
    CLUSTER_ID,
    NODE_NAME,
    make_container,
    make_pod,
    make_stamp,
)

SETTINGS = ObjectKey(CONFIG_MAP, "default", "settings")
LOGIN = ObjectKey(SECRET, "default", "login")
PULL = ObjectKey(SECRET, "default", "pull")
AUTHS = {"auths": {"registry.example": {"username": "me", "password": "pull-pw"}}}
OBJECTS: dict[ObjectKey, Json | None] = {
    SETTINGS: {"data": {"MODE": "fast"}},
    LOGIN: {"stringData": {"password": "hunter22"}},
    PULL: {"stringData": {".dockerconfigjson": json.dumps(AUTHS)}},
}
GIVEN = ResolveInput(CLUSTER_ID, NODE_NAME)
TOKEN = {
    "name": "kube-api-access-abcde",
    "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
}
AUTHORITIES = {"configMap": {"name": "kube-root-ca.crt"}}


def full_pod() -> dict[str, Any]:
    """A pod with a reference of every kind."""
    password = {"secretKeyRef": {"name": "login", "key": "password"}}
    main = make_container(
        command=["run", "--mode=$(MODE)"],
        args=["$(PASSWORD)", "$$(MODE)", "$(NOPE)"],
        envFrom=[{"configMapRef": {"name": "settings"}}],
        env=[{"name": "PASSWORD", "valueFrom": password}],
        volumeMounts=[
            {"name": "kube-api-access-abcde", "mountPath": "/var/run/secrets"},
            {"name": "files", "mountPath": "/etc/app"},
        ],
    )
    init = make_container("prepare", env=[{"name": "PASSWORD", "valueFrom": password}])
    files = {"name": "files", "configMap": {"name": "settings"}}
    return make_pod(
        containers=[main],
        initContainers=[init],
        volumes=[TOKEN, files],
        imagePullSecrets=[{"name": "pull"}],
    )


def resolved(
    pod: Json, objects: Mapping[ObjectKey, Json | None] = OBJECTS, given: ResolveInput = GIVEN
) -> ResolvedPod:
    """A pod that must resolve."""
    outcome = resolve(pod, objects, given)
    assert isinstance(outcome, ResolvedPod)
    return outcome


def missing(pod: Json, objects: Mapping[ObjectKey, Json | None]) -> Missing:
    """A pod that must not resolve."""
    outcome = resolve(pod, objects, GIVEN)
    assert isinstance(outcome, Missing)
    return outcome


def test_every_reference_becomes_its_value() -> None:
    """In containers and init containers, in env, files, commands and logins."""
    pod = resolved(full_pod())

    (main,), (init,) = pod.containers, pod.init_containers
    assert (main.name, main.image, main.field_path) == (
        "main",
        "registry.example/app:1",
        "spec.containers[0]",
    )
    assert main.env == {"MODE": "fast", "PASSWORD": "hunter22"}
    assert main.command == ("run", "--mode=fast")
    assert main.args == ("hunter22", "$(MODE)", "$(NOPE)")
    assert [file.path for file in main.files] == ["/etc/app/MODE"]
    assert init.env == {"PASSWORD": "hunter22"}
    assert init.field_path == "spec.initContainers[0]"
    assert [each.username for each in pod.pull_credentials] == ["me"]


def test_what_is_given_is_handed_on() -> None:
    """Stamp, hints, and the pod as the API server has it."""
    hints = PlacementHints(gpu_types=("L40S",))
    container = make_container(resources={"limits": {"nvidia.com/gpu": "2"}})
    pod = make_pod(containers=[container])

    outcome = resolved(pod, {}, ResolveInput(CLUSTER_ID, NODE_NAME, hints=hints))

    assert outcome.stamp == make_stamp()
    assert outcome.pod is pod
    assert outcome.hints == hints
    assert (outcome.gpu_count, outcome.gpu_resource) == (2, "nvidia.com/gpu")


def test_without_command_and_args_the_images_own_apply() -> None:
    """Which is not the same as empty ones."""
    (container,) = resolved(make_pod()).containers

    assert (container.command, container.args) == (None, None)


def test_the_token_volume_of_admission_is_dropped() -> None:
    """From the container's own JSON as well, so that no provider trips over its mount."""
    outcome = resolved(full_pod())

    assert outcome.unresolvable == ()
    assert [m["name"] for m in outcome.containers[0].spec["volumeMounts"]] == ["files"]
    assert outcome.init_containers[0].spec is outcome.pod["spec"]["initContainers"][0]


def test_tokens_are_handed_on_with_the_authorities_beside_them() -> None:
    """Those are published a moment after their namespace: until then the pod waits."""
    wish = TokenWish("default", "default", "", 3600)
    given = replace(GIVEN, tokens={wish: "hush-token"})
    token = {"serviceAccountToken": {"path": "token"}}
    volume = {**TOKEN, "projected": {"sources": [token, AUTHORITIES]}}
    pod = make_pod(volumes=[{"name": "e", "emptyDir": {}}, volume])
    key = ObjectKey(CONFIG_MAP, "default", "kube-root-ca.crt")

    waits = resolve(pod, {}, given)
    ready = resolve(pod, {key: {"data": {"ca.crt": "pem"}}}, given)

    assert isinstance(waits, Missing)
    assert waits.message == 'configmap "kube-root-ca.crt" not found'
    assert isinstance(ready, ResolvedPod)
    assert ready.tokens == {wish: "hush-token"}
    assert "hush-token" in ready.secret_values
    assert "hush" not in repr(ready)


def test_a_debugger_holds_nobody_up() -> None:
    """It is resolved as far as that goes; its secrets are known."""
    password = {"secretKeyRef": {"name": "login", "key": "password"}}
    env = [{"name": "P", "valueFrom": password}]
    sources = [{"configMapRef": {"name": "nowhere"}}]
    debugger = make_container("debugger", env=env, envFrom=sources, targetContainerName="main")

    outcome = resolved(make_pod(ephemeralContainers=[debugger]))

    (found,) = outcome.ephemeral_containers
    assert found.field_path == "spec.ephemeralContainers[0]"
    assert found.env == {"P": "hunter22"}
    assert "hunter22" in outcome.secret_values


def test_service_variables_come_only_where_services_are_reached() -> None:
    """Elsewhere they would name addresses that lead nowhere."""
    spec = {"clusterIP": "10.0.0.1", "ports": [{"port": 443}]}
    service = {"metadata": {"name": "kubernetes", "namespace": "default"}, "spec": spec}
    given = ResolveInput(CLUSTER_ID, NODE_NAME, services=[service])

    assert resolved(make_pod(), {}).containers[0].env == {}
    env = resolved(make_pod(), {}, given).containers[0].env
    assert env["KUBERNETES_SERVICE_HOST"] == "10.0.0.1"


def test_variables_of_services_are_told_apart_from_the_pods_own() -> None:
    """One that the pod sets itself is not the service's any more."""
    spec = {"clusterIP": "10.0.0.1", "ports": [{"port": 443}]}
    service = {"metadata": {"name": "kubernetes", "namespace": "default"}, "spec": spec}
    given = ResolveInput(CLUSTER_ID, NODE_NAME, services=[service])
    own = make_container(env=[{"name": "KUBERNETES_SERVICE_HOST", "value": "mine"}])

    told = resolved(make_pod(containers=[own]), {}, given).containers[0].service_env

    assert "KUBERNETES_SERVICE_HOST" not in told
    assert told["KUBERNETES_SERVICE_PORT"] == "443"


def test_all_that_is_missing_is_told_at_once() -> None:
    """In the waiting message once, in one Event each, with the paths of the fields."""
    outcome = missing(full_pod(), {})

    assert outcome.reason == "CreateContainerConfigError"
    assert outcome.message == 'secret "login" not found; configmap "settings" not found'
    assert [(each.kind, each.path) for each in outcome.references] == [
        (SECRET, "spec.initContainers[0].env[0].valueFrom.secretKeyRef"),
        (CONFIG_MAP, "spec.containers[0].envFrom[0].configMapRef"),
        (SECRET, "spec.containers[0].env[0].valueFrom.secretKeyRef"),
        (CONFIG_MAP, "spec.volumes[1].configMap"),
    ]
    assert [event.reason for event in outcome.events] == [
        "MandatorySecretNotFound",
        "MandatoryConfigMapNotFound",
        "FailedToRetrieveImagePullSecret",
    ]


def test_a_missing_key_is_told_with_its_object() -> None:
    """In the kubelet's words."""
    outcome = missing(full_pod(), {**OBJECTS, LOGIN: {"data": {}}})

    assert outcome.message == "couldn't find key password in Secret default/login"
    assert [each.reason for each in outcome.events] == ["MandatorySecretKeyNotFound"]


def test_optional_references_are_skipped_with_an_event() -> None:
    """The pod starts without them."""
    sources = [{"configMapRef": {"name": "nope", "optional": True}}]
    pod = make_pod(containers=[make_container(envFrom=sources)])

    outcome = resolved(pod, {})

    (event,) = outcome.events
    assert (event.type, event.reason) == ("Warning", "OptionalConfigMapNotFound")
    assert 'configmap "nope" not found (spec.containers[0].envFrom[0]' in event.message


def test_what_only_the_place_can_fill_in_is_handed_to_the_provider() -> None:
    """Once, with its path; the pod resolves all the same."""
    source = {"fieldRef": {"fieldPath": "status.podIP"}}
    pod = make_pod(containers=[make_container(env=[{"name": "IP", "valueFrom": source}])])

    (problem,) = resolved(pod).unresolvable

    assert problem.path == "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"


def test_what_is_referenced_is_all_that_is_needed() -> None:
    """The watches of ``kube`` rest on it."""
    pod = full_pod()
    needed = {key: OBJECTS[key] for key in referenced(pod)}

    assert resolve(pod, needed, GIVEN) == resolve(pod, OBJECTS, GIVEN)
    assert needed.keys() == OBJECTS.keys()


def test_resolving_changes_nothing() -> None:
    """Pods and objects are the watch cache's own."""
    pod, objects = full_pod(), dict(OBJECTS)
    before = copy.deepcopy((pod, objects))

    resolve(pod, objects, GIVEN)

    assert (pod, objects) == before


def test_secret_values_are_known_and_never_shown() -> None:
    """``explain`` hides them; a repr lacks them."""
    outcome = resolved(full_pod())

    assert outcome.secret_values == {"hunter22", "pull-pw"}
    assert "hunter22" not in repr(outcome)
    assert "pull-pw" not in repr(outcome)


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"spec": "x", "metadata": []},
        make_pod(containers=[{"env": [None, {"valueFrom": 7}], "envFrom": "x", "command": "x"}]),
        make_pod(volumes=[{"name": "v", "configMap": None}], imagePullSecrets={}),
        make_pod(containers=[{"volumeMounts": [{"name": 7}], "resources": []}]),
    ],
)
def test_nothing_in_a_pod_makes_it_raise(pod: dict[str, Any]) -> None:
    """The provider's translation says what is wrong with it."""
    resolve(pod, {}, GIVEN)


def test_a_bomb_of_variables_is_refused_by_its_field() -> None:
    """Ten times ten times ten ...: a few lines that would fill any memory."""
    env = [{"name": "A0", "value": "x" * 1000}]
    env += [{"name": f"A{n}", "value": f"$(A{n - 1})" * 10} for n in range(1, 6)]
    pod = make_pod(containers=[make_container(env=env, args=["-v", "$(A2)$(A2)", "$(A1)"])])

    found = resolve(pod, {}, GIVEN)

    assert isinstance(found, ResolvedPod)
    assert [problem.path for problem in found.unresolvable] == [
        "spec.containers[0].env[3].value",
        "spec.containers[0].args[1]",
    ]
    assert found.containers[0].args == ("-v", "x" * 10_000)
