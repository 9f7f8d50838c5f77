"""Volumes: files from copies, claims by the map, disks of this cluster refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from vk_provider_kubernetes.config import KubernetesConfig
from vk_provider_kubernetes.copies import Copies
from vk_provider_kubernetes.rules import TOKENS
from vk_provider_kubernetes.volumes import Volumes, want
from vk_provider_kubernetes.walk import Findings

from vk_provider.pods.references import CONFIG_MAP, SECRET, ObjectKey
from vk_provider.pods.tokens import TokenWish
from vk_provider.testing.builders import make_resolved_pod

NAMESPACE_FILE = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}


def translated(
    volume: Mapping[str, Any], config: KubernetesConfig, objects: Mapping[Any, Any] | None = None
) -> tuple[list[dict[str, Any]], Copies, Findings]:
    """The volumes of a pod that has one."""
    pod = make_resolved_pod(objects=objects, volumes=[volume])
    copies, findings = Copies(pod.stamp, pod.objects), Findings()
    want(pod.pod["spec"], copies)
    return Volumes(pod, config, copies, findings).translated(), copies, findings


@pytest.mark.parametrize(
    "volume",
    [
        {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"image": {"reference": "models:1", "pullPolicy": "Always"}},
        {"nfs": {"server": "10.0.0.1", "path": "/data", "readOnly": True}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
    ],
)
def test_volumes_that_are_everywhere_go_along(
    volume: dict[str, Any], config: KubernetesConfig
) -> None:
    """As they are."""
    found, _, findings = translated({"name": "v", **volume}, config)

    assert found == [{"name": "v", **volume}]
    assert findings.problems == []


@pytest.mark.parametrize("kind", ["hostPath", "csi", "awsElasticBlockStore", "iscsi", "rbd"])
def test_volumes_of_this_cluster_are_refused(kind: str, config: KubernetesConfig) -> None:
    """By their path."""
    _, _, findings = translated({"name": "v", kind: {"path": "/x"}}, config)

    assert [each.path for each in findings.problems] == [f"spec.volumes[0].{kind}"]


def test_files_come_from_copies(config: KubernetesConfig, objects: Mapping[Any, Any]) -> None:
    """With their items and modes; only the keys of the items go along."""
    items = [{"key": "password", "path": "p", "mode": 256}]
    volume = {"name": "v", "secret": {"secretName": "login", "items": items, "defaultMode": 384}}

    found, copies, _ = translated(volume, config, objects)

    name = copies.name_of(SECRET, "login")
    assert found == [
        {"name": "v", "secret": {"secretName": name, "items": items, "defaultMode": 384}}
    ]
    assert set(copies.all()[0].content["data"]) == {"password"}


def test_a_projected_volume_is_put_together_anew(
    config: KubernetesConfig, objects: Mapping[Any, Any]
) -> None:
    """Each source by its own rule."""
    name = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    sources = [
        {"configMap": {"name": "conf"}},
        {"secret": {"name": "login", "optional": True}},
        {"downwardAPI": {"items": [name]}},
    ]

    found, copies, findings = translated(
        {"name": "v", "projected": {"sources": sources, "defaultMode": 420}}, config, objects
    )

    known = {"name": copies.values_name, "items": [{"path": "name", "key": "value-0"}]}
    assert found[0]["projected"] == {
        "defaultMode": 420,
        "sources": [
            {"configMap": {"name": copies.name_of(CONFIG_MAP, "conf")}},
            {"secret": {"name": copies.name_of(SECRET, "login"), "optional": True}},
            {"configMap": known},
        ],
    }
    assert findings.problems == []


def test_tokens_of_this_cluster_are_refused(config: KubernetesConfig) -> None:
    """A source that the user wrote, by its path."""
    sources = [{"serviceAccountToken": {"path": "token"}}]

    found, _, findings = translated({"name": "v", "projected": {"sources": sources}}, config)

    assert found[0]["projected"]["sources"] == []
    path = "spec.volumes[0].projected.sources[0].serviceAccountToken"
    assert [each.path for each in findings.problems] == [path]


def test_tokens_come_from_a_secret_of_the_pods_own_where_that_is_allowed(
    config: KubernetesConfig,
) -> None:
    """The injected volume whole, with home's CA and namespace."""
    sources = [
        {"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 600}},
        {"configMap": {"name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [NAMESPACE_FILE]}},
    ]
    volume = {"name": "kube-api-access-abcde", "projected": {"sources": sources}}
    ca = {ObjectKey(CONFIG_MAP, "default", "kube-root-ca.crt"): {"data": {"ca.crt": "pem"}}}
    pod = make_resolved_pod(objects=ca, volumes=[volume])
    wish = TokenWish("default", "default", "vault", 600)
    copies, findings = Copies(pod.stamp, ca, {wish: "secret"}), Findings(frozenset({TOKENS}))
    want(pod.pod["spec"], copies, tokens=True)

    (found,) = Volumes(pod, replace(config, tokens=True), copies, findings).translated()

    token, authorities, namespace = found["projected"]["sources"]
    assert token["secret"]["name"] == copies.tokens_name
    ((item),) = token["secret"]["items"]
    made = {copy.name: copy.content["data"] for copy in copies.all()}
    assert made[copies.tokens_name] == {item["key"]: "c2VjcmV0"}
    assert item["path"] == "token"
    assert made[authorities["configMap"]["name"]] == {"ca.crt": "pem"}
    assert made[namespace["configMap"]["name"]] == {"value-0": "default"}
    assert findings.problems == []


def test_the_token_that_admission_added_is_dropped_with_a_note(config: KubernetesConfig) -> None:
    """The user never asked for it."""
    sources = [{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "kube-root"}}]
    volume = {"name": "kube-api-access-abcde", "projected": {"sources": sources}}

    found, copies, findings = translated(volume, config)

    assert found == []
    assert copies.all() == ()
    assert [each.path for each in findings.notes] == ["spec.volumes[0]"]


def test_downward_files_follow_home(config: KubernetesConfig) -> None:
    """Through a ConfigMap of the pod's own."""
    item = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}

    found, copies, _ = translated(
        {"name": "v", "downwardAPI": {"items": [item], "defaultMode": 420}}, config
    )

    source = {"name": copies.values_name, "items": [{"path": "labels", "key": "value-0"}]}
    assert found == [
        {"name": "v", "projected": {"defaultMode": 420, "sources": [{"configMap": source}]}}
    ]


def test_a_claim_is_what_the_map_says(config: KubernetesConfig) -> None:
    """By namespace and name."""
    mapped = replace(config, volume_claims={"default/models": "shared-models"})
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "models", "readOnly": True}}

    found, _, findings = translated(volume, mapped)

    assert found[0]["persistentVolumeClaim"] == {"claimName": "shared-models", "readOnly": True}
    assert findings.problems == []


def test_a_claim_without_a_map_is_refused(config: KubernetesConfig) -> None:
    """With the name that the map would need."""
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "models"}}

    _, _, findings = translated(volume, config)

    (problem,) = findings.problems
    assert problem.path == "spec.volumes[0].persistentVolumeClaim.claimName"
    assert "default/models" in problem.message
