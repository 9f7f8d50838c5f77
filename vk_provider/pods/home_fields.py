"""The fields of a pod that need no backend: home has acted on them, or the core does.

A provider need neither send nor refuse them, and every other field it must send, name in a note, or
refuse by its path. Pure. Fed by nothing; feeds translations that refuse what they don't know, and
:mod:`vk_provider.testing.field_probe`.
"""

from __future__ import annotations

from collections.abc import Mapping

_SCHEDULED = "home's scheduler has acted on it"
_IDENTITY = "an identity in the home cluster, whose token never leaves it"
_JOINT = "joins a volume and its mounts"
_MESSAGE = "the end of the log becomes the message"

HOME_FIELDS: Mapping[str, Mapping[str, str]] = {
    "PodSpec": {
        "activeDeadlineSeconds": "kept by the node",
        "affinity": _SCHEDULED,
        "automountServiceAccountToken": _IDENTITY,
        "evictionResponders": "they answer for evictions at home",
        "enableServiceLinks": "resolved by the node where home's Services can be reached",
        "imagePullSecrets": "resolved by the node: ResolvedPod.pull_credentials",
        "nodeName": _SCHEDULED,
        "nodeSelector": _SCHEDULED,
        "overhead": _SCHEDULED,
        "preemptionPolicy": _SCHEDULED,
        "priority": _SCHEDULED,
        "priorityClassName": _SCHEDULED,
        "readinessGates": "kept by the node",
        "restartPolicy": "kept by the node: it ends the pod, and its owner makes a new one",
        "schedulerName": _SCHEDULED,
        "schedulingGates": _SCHEDULED,
        "schedulingGroup": _SCHEDULED,
        "serviceAccount": _IDENTITY,
        "serviceAccountName": _IDENTITY,
        "terminationGracePeriodSeconds": "given to delete_instance as grace_seconds",
        "tolerations": _SCHEDULED,
        "topologySpreadConstraints": _SCHEDULED,
    },
    "ContainerPort": {"name": "home's Services find a port by it"},
    "ObjectFieldSelector": {"apiVersion": "v1 is the only one"},
    "ResourceFieldSelector": {"containerName": "resolved by the node"},
    "Volume": {"name": _JOINT},
    "VolumeMount": {"name": _JOINT},
    "Container": {
        "resizePolicy": "no instance is resized in place",
        "terminationMessagePath": _MESSAGE,
        "terminationMessagePolicy": _MESSAGE,
    },
}
"""Type of the Pod API -> field -> why no backend is needed for it."""
