"""What becomes of each field of a pod: one table, and every field of the Pod API stands in it.

Four sorts of fields have an entry of their own below; all others are sent as they are and stand in
:mod:`.sent_fields`. A field that is in neither place is refused: an older translation would drop
what a newer API means. A unit test compares both places with the API server's own schema.
Pure. Fed by nothing; feeds :mod:`.walk` and the table of fields in the documentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from vk_provider_kubernetes.sent_fields import SENT

HOST_ACCESS = "hostAccess"
"""The configuration switch that lets pods see their remote node's namespaces, files and ports, and
be privileged there, which is the same."""


TOKENS = "serviceAccountTokens"
"""The configuration switch that hands on tokens of the home cluster."""


HOME_SERVICES = "homeServices.enabled"
"""The configuration switch for instances that reach home's ClusterIPs."""


class Action(StrEnum):
    """What the translation does with a field."""

    SEND = "send"
    REWRITE = "rewrite"
    """Replaced or left out, without a loss for the pod."""
    RESOLVE = "resolve"
    """What it refers to at home is looked up there."""
    IGNORE = "ignore"
    """Left out, and told in a note."""
    REJECT = "reject"
    """Refused by its path, unless it says nothing (absent, false, empty)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One field's entry. ``type`` is the API's name of what is inside it, if that has fields.

    ``quiet`` values are what admission or a default puts there: no note is worth its while.
    ``switch`` names the configuration switch that sends a rejected field after all.
    """

    action: Action
    why: str = ""
    type: str = ""
    quiet: tuple[Any, ...] = ()
    switch: str = ""


def _rewrite(why: str, type: str = "") -> Rule:
    return Rule(Action.REWRITE, why, type)


def _resolve(why: str, type: str = "") -> Rule:
    return Rule(Action.RESOLVE, why, type)


def _ignore(why: str, *quiet: Any) -> Rule:
    return Rule(Action.IGNORE, why, quiet=quiet)


def _reject(why: str, switch: str = "", type: str = "") -> Rule:
    return Rule(Action.REJECT, why, type, switch=switch)


_HOST = "it would be the other cluster's node; the backend's hostAccess: true allows it"
_RIGHTS = "it has the other cluster's node for its own; the backend's hostAccess: true allows it"
_PLACE = "this cluster's nodes are meant; the backend's nodeSelector and tolerations place it there"
_ORDER = "the other cluster has priorities of its own; the backend's priorityClassName sets one"
_DISK = "the other cluster has no such disk; use an emptyDir, an ephemeral or a mapped claim"
_SOURCE = "what the claim would be filled from is in this cluster"
_CLAIMS = "claims of devices are not known in the other cluster; use resources.limits"
_TOKEN = (
    "tokens of this cluster are not given to another one; the backend's "
    "serviceAccountTokens.enabled: true allows it"
)
_ISSUED = "the home cluster issues the token, and a Secret takes it along"
_COPIED = "the object is copied to the other cluster under another name"

_CONTAINER: Mapping[str, Rule] = {
    "env": _resolve("home's values; ConfigMaps and Secrets are copied", "EnvVar"),
    "envFrom": _resolve(_COPIED, "EnvFromSource"),
    "volumeDevices": _reject("block devices are claims of this cluster"),
}

RULES: Mapping[str, Mapping[str, Rule]] = {
    "PodSpec": {
        "affinity": _ignore(_PLACE),
        "automountServiceAccountToken": _rewrite("false: the other cluster's token is not mounted"),
        "containers": _resolve("each container is translated", "Container"),
        "enableServiceLinks": _rewrite("false: the other cluster's Services are not this one's"),
        "ephemeralContainers": _resolve(
            "added to the pod that runs in the other cluster", "EphemeralContainer"
        ),
        "evictionResponders": _ignore("they answer for evictions in this cluster"),
        "hostIPC": _reject(_HOST, HOST_ACCESS),
        "hostNetwork": _reject(_HOST, HOST_ACCESS),
        "hostPID": _reject(_HOST, HOST_ACCESS),
        "hostname": _rewrite("the pod's name at home, where it sets none"),
        "imagePullSecrets": _resolve(_COPIED),
        "initContainers": _resolve("each container is translated", "Container"),
        "nodeName": _rewrite("the other cluster's scheduler chooses the node"),
        "nodeSelector": _ignore(_PLACE),
        "overhead": _rewrite("the other cluster's own RuntimeClass decides"),
        "preemptionPolicy": _ignore(_ORDER, "PreemptLowerPriority"),
        "priority": _ignore(_ORDER, 0),
        "priorityClassName": _ignore(_ORDER),
        "readinessGates": _rewrite("judged at home, where their conditions are set"),
        "resourceClaims": _reject(_CLAIMS),
        "schedulerName": _ignore(
            "the backend's schedulerName names the other cluster's", "default-scheduler"
        ),
        "schedulingGates": _rewrite("a pod that is bound has none left"),
        "schedulingGroup": _ignore("groups of pods are scheduled together at home only"),
        "serviceAccount": _rewrite("the deprecated twin of serviceAccountName"),
        "serviceAccountName": _ignore(
            "it is this cluster's; the backend's serviceAccountName names the other's", "default"
        ),
        "tolerations": _rewrite("without those that are about this cluster's nodes", "Toleration"),
        "topologySpreadConstraints": _ignore("the other cluster spreads by its own defaults"),
        "volumes": _resolve("each volume is translated", "Volume"),
    },
    "Container": _CONTAINER,
    "EphemeralContainer": _CONTAINER,
    "ContainerPort": {
        "hostIP": _reject(_HOST, HOST_ACCESS),
        "hostPort": _reject(_HOST, HOST_ACCESS),
    },
    "ResourceRequirements": {"claims": _reject(_CLAIMS)},
    "SecurityContext": {"privileged": _reject(_RIGHTS, HOST_ACCESS)},
    "WindowsSecurityContextOptions": {"hostProcess": _reject(_RIGHTS, HOST_ACCESS)},
    "EnvVar": {"valueFrom": _resolve("home's value, or a copied object's", "EnvVarSource")},
    "EnvVarSource": {
        "configMapKeyRef": _resolve(_COPIED, "ConfigMapKeySelector"),
        "fieldRef": _resolve("home's value where home knows it", "ObjectFieldSelector"),
        "secretKeyRef": _resolve(_COPIED, "SecretKeySelector"),
    },
    "EnvFromSource": {
        "configMapRef": _resolve(_COPIED, "ConfigMapEnvSource"),
        "secretRef": _resolve(_COPIED, "SecretEnvSource"),
    },
    "ConfigMapKeySelector": {"name": _rewrite("the copy's name")},
    "SecretKeySelector": {"name": _rewrite("the copy's name")},
    "ConfigMapEnvSource": {"name": _rewrite("the copy's name")},
    "SecretEnvSource": {"name": _rewrite("the copy's name")},
    "ConfigMapVolumeSource": {"name": _rewrite("the copy's name")},
    "ConfigMapProjection": {"name": _rewrite("the copy's name")},
    "ServiceAccountTokenProjection": {
        "audience": _resolve(_ISSUED),
        "expirationSeconds": _resolve(_ISSUED),
    },
    "SecretVolumeSource": {"secretName": _rewrite("the copy's name")},
    "SecretProjection": {"name": _rewrite("the copy's name")},
    "DownwardAPIVolumeSource": {
        "items": _resolve("home's values where home knows them", "DownwardAPIVolumeFile")
    },
    "DownwardAPIProjection": {
        "items": _resolve("home's values where home knows them", "DownwardAPIVolumeFile")
    },
    "DownwardAPIVolumeFile": {"fieldRef": _resolve("home's value", "ObjectFieldSelector")},
    "ProjectedVolumeSource": {
        "sources": _resolve("each source is translated", "VolumeProjection")
    },
    "VolumeProjection": {
        "clusterTrustBundle": _reject("trust bundles are this cluster's"),
        "configMap": _resolve(_COPIED, "ConfigMapProjection"),
        "downwardAPI": _resolve("home's values", "DownwardAPIProjection"),
        "podCertificate": _reject("the signers of pod certificates are this cluster's"),
        "secret": _resolve(_COPIED, "SecretProjection"),
        "serviceAccountToken": _reject(_TOKEN, TOKENS, "ServiceAccountTokenProjection"),
    },
    "PersistentVolumeClaimSpec": {
        "dataSource": _reject(_SOURCE),
        "dataSourceRef": _reject(_SOURCE),
        "volumeName": _reject(_DISK),
    },
    "PersistentVolumeClaimTemplate": {"metadata": _ignore("the claim gets no labels of its own")},
    "PersistentVolumeClaimVolumeSource": {
        "claimName": _rewrite("what the backend's volumeClaims maps it to")
    },
    "Volume": {
        **dict.fromkeys(
            (
                "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc",
                "flexVolume", "flocker", "gcePersistentDisk", "gitRepo", "glusterfs", "iscsi",
                "photonPersistentDisk", "portworxVolume", "quobyte", "rbd", "scaleIO", "storageos",
                "vsphereVolume",
            ),
            _reject(_DISK),
        ),
        "configMap": _resolve(_COPIED, "ConfigMapVolumeSource"),
        "downwardAPI": _resolve("home's values", "DownwardAPIVolumeSource"),
        "hostPath": _reject(_HOST, HOST_ACCESS),
        "persistentVolumeClaim": _resolve(
            "a claim of the other cluster that volumeClaims maps it to",
            "PersistentVolumeClaimVolumeSource",
        ),
        "projected": _resolve("each source is translated", "ProjectedVolumeSource"),
        "secret": _resolve(_COPIED, "SecretVolumeSource"),
    },
}  # fmt: skip


def rule_of(type_name: str, field: str) -> Rule | None:
    """The one rule for a field of a type; None for a field that this release does not know."""
    return TABLE.get(type_name, {}).get(field)


def coverage(type_name: str = "PodSpec", path: str = "spec") -> Iterator[tuple[str, Rule]]:
    """Every field path of a pod with its rule, for the documentation."""
    for field, rule in TABLE.get(type_name, {}).items():
        yield f"{path}.{field}", rule
        if rule.type in TABLE:
            yield from coverage(rule.type, f"{path}.{field}")


def _table() -> Mapping[str, Mapping[str, Rule]]:
    """Both places as one."""
    found: dict[str, dict[str, Rule]] = {}
    for type_name, words in SENT.items():
        for word in words.split():
            field, _, inside = word.partition(":")
            found.setdefault(type_name, {})[field] = Rule(Action.SEND, type=inside)
    for type_name, rules in RULES.items():
        found.setdefault(type_name, {}).update(rules)
    return {name: dict(sorted(rules.items())) for name, rules in found.items()}


TABLE = _table()
"""Type -> field -> rule."""


def allowed(rule: Rule, switches: frozenset[str]) -> Rule:
    """The rule under a configuration whose ``switches`` are on."""
    return replace(rule, action=Action.SEND) if rule.switch in switches else rule
