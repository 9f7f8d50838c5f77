"""Offline objects: secrets are masked before anybody looks, the unseen is made up."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from vk_provider.offline.objects import OfflinePod, masked, resolve_offline
from vk_provider.pods.references import ObjectKey
from vk_provider.pods.resolve import ResolveInput
from vk_provider.pods.types import Json

GIVEN = ResolveInput(cluster_id="c", node_name="n")
SECRET = ObjectKey("Secret", "default", "s")
CONFIG = ObjectKey("ConfigMap", "default", "c")


def encoded(text: str) -> str:
    """As a Secret has it."""
    return base64.b64encode(text.encode()).decode()


def resolved(supplied: Mapping[ObjectKey, Json], **container: Any) -> OfflinePod:
    """A pod of one container, resolved with these objects."""
    main = {"name": "a", "image": "registry.example/x", **container}
    pod = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [main], "imagePullSecrets": [{"name": "pull"}]},
    }
    return resolve_offline(pod, supplied, GIVEN)


def env(pod: OfflinePod) -> dict[str, str]:
    """The variables of its container."""
    assert pod.resolved is not None
    return dict(pod.resolved.containers[0].env)


def from_key(kind: str, name: str, key: str) -> dict[str, Any]:
    """A variable out of an object."""
    return {"name": "V", "valueFrom": {kind: {"name": name, "key": key}}}


def test_a_supplied_secret_is_masked() -> None:
    """Its value reaches nobody, in either spelling."""
    for data in ({"data": {"k": encoded("hidden")}}, {"stringData": {"k": "hidden"}}):
        pod = resolved(
            {SECRET: {"kind": "Secret", **data}}, env=[from_key("secretKeyRef", "s", "k")]
        )

        assert env(pod) == {"V": "<key k of Secret default/s>"}


def test_a_supplied_config_map_is_shown() -> None:
    """It is no secret."""
    supplied = {CONFIG: {"kind": "ConfigMap", "data": {"k": "v"}}}

    assert env(resolved(supplied, env=[from_key("configMapKeyRef", "c", "k")])) == {"V": "v"}


def test_what_was_not_supplied_is_made_up_and_listed() -> None:
    """In as many rounds as it takes."""
    pod = resolved(
        {},
        env=[
            from_key("secretKeyRef", "s", "k"),
            {**from_key("configMapKeyRef", "c", "x"), "name": "W"},
            {**from_key("configMapKeyRef", "c", "y"), "name": "X"},
        ],
        envFrom=[{"secretRef": {"name": "s"}}],
    )

    assert env(pod)["V"] == "<key k of Secret default/s>"
    assert env(pod)["W"] == "<key x of ConfigMap default/c>"
    assert env(pod)["X"] == "<key y of ConfigMap default/c>"
    assert pod.unseen == (CONFIG, ObjectKey("Secret", "default", "pull"), SECRET)
    assert pod.missing == ()


def test_a_key_that_a_supplied_object_lacks_is_missing() -> None:
    """The pod would wait for it."""
    supplied = {CONFIG: {"kind": "ConfigMap", "data": {"k": "v"}}}

    pod = resolved(supplied, env=[from_key("configMapKeyRef", "c", "absent")])

    assert pod.resolved is None
    assert [each.message for each in pod.missing] == [
        "couldn't find key absent in ConfigMap default/c"
    ]


def test_a_pull_secret_keeps_its_registries_and_loses_its_logins() -> None:
    """Whether it fits an image can still be told."""
    login = {"username": "u1", "password": "p1", "auth": encoded("u1:p1")}
    config = json.dumps({"auths": {"registry.example": login}})
    supplied = {
        ObjectKey("Secret", "default", "pull"): {
            "kind": "Secret",
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": encoded(config)},
        }
    }

    pod = resolved(supplied)

    assert pod.resolved is not None
    (credential,) = pod.resolved.pull_credentials
    assert (credential.registry, credential.password) == ("registry.example", "masked")


def test_a_pull_secret_that_is_no_json_shows_nothing() -> None:
    """Not even a part of it."""
    data = {".dockerconfigjson": encoded("hidden"), ".dockercfg": encoded('["hidden"]')}
    deep = {".dockercfg": "[" * 10**5 + "hidden"}

    shown = json.dumps(masked(SECRET, {"data": data, "stringData": deep}))

    assert encoded("hidden") not in shown


def test_a_large_secret_stays_as_large() -> None:
    """Whether it fits into what a backend carries depends on it."""
    found = masked(SECRET, {"data": {"k": encoded("x" * 5000)}})

    assert len(base64.b64decode(found["data"]["k"])) == 5000


def test_a_secret_that_is_not_base64_stays_wrong() -> None:
    """Resolving says so, without the value."""
    pod = resolved({SECRET: {"data": {"k": "hidden!"}}}, env=[from_key("secretKeyRef", "s", "k")])

    assert pod.resolved is not None
    assert "base64" in str(pod.resolved.unresolvable)
    assert "hidden" not in str(pod.resolved.unresolvable)


def test_what_is_no_mapping_masks_to_nothing() -> None:
    """A person may type anything."""
    assert masked(SECRET, {"data": "hidden"})["data"] == {}
