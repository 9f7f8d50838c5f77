"""A value for every field of a pod that is worth asking a provider about, and what must stand
beside it.

Where a field has no entry its value is a word; an object takes the values of what it requires.
Pure. Fed by nothing; feeds :mod:`.field_probe`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vk_provider.pods.references import CONFIG_MAP, SECRET, ObjectKey
from vk_provider.testing.builders import IMAGE, NAMESPACE

SCHEMA: Mapping[str, Mapping[str, str]] = json.loads(
    (Path(__file__).parent / "pod_api.json").read_text(encoding="utf-8")
)["types"]
"""Type -> field -> type of what is inside, from an API server's own /openapi/v3/api/v1."""

WORD = "a-probing-word"
RESOLVED = "what-a-reference-stood-for"
_LOGIN = {"auths": {"registry.example": {"username": "u", "password": RESOLVED}}}
OBJECTS: Mapping[Any, Any] = {
    ObjectKey(CONFIG_MAP, NAMESPACE, "probe"): {"data": {"key": RESOLVED}},
    ObjectKey(SECRET, NAMESPACE, "probe"): {"stringData": {"key": RESOLVED}},
    ObjectKey(SECRET, NAMESPACE, "pull-login"): {
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": json.dumps(_LOGIN)},
    },
}
"""What the samples refer to; ``absent`` is the name of what is not there."""

MOUNT = {"name": "scratch", "mountPath": "/scratch"}
CONTAINER = {
    "name": "main",
    "image": IMAGE,
    "command": ["/bin/serve"],
    "resources": {"limits": {"cpu": "4", "memory": "16Gi"}},
    "volumeMounts": [MOUNT],
}
POD = {"containers": [CONTAINER], "volumes": [{"name": "scratch", "emptyDir": {}}]}

_NAME_FILE = {"path": "file", "fieldRef": {"fieldPath": "metadata.name"}}

BESIDE: Mapping[str, Mapping[str, Any]] = {
    "AppArmorProfile.localhostProfile": {"type": "Localhost"},
    "PodSecurityContext.fsGroupChangePolicy": {"fsGroup": 1000},
    "PodSecurityContext.seLinuxChangePolicy": {"seLinuxOptions": {"level": "s0:c1,c2"}},
    "PodSecurityContext.supplementalGroupsPolicy": {"supplementalGroups": [1000]},
    "PodSpec": POD,
    "Container": CONTAINER,
    "ConfigMapEnvSource": {"name": "probe"},
    "ConfigMapEnvSource.optional": {"name": "absent"},
    "ConfigMapKeySelector": {"name": "probe", "key": "key"},
    "ConfigMapKeySelector.optional": {"name": "absent", "key": "key"},
    "ConfigMapProjection": {"name": "probe"},
    "ConfigMapProjection.optional": {"name": "absent"},
    "ConfigMapVolumeSource": {"name": "probe"},
    "ConfigMapVolumeSource.optional": {"name": "absent"},
    "ContainerPort": {"containerPort": 8080},
    "DownwardAPIVolumeFile": _NAME_FILE,
    "DownwardAPIVolumeSource.defaultMode": {"items": [_NAME_FILE]},
    "ProjectedVolumeSource.defaultMode": {"sources": [{"configMap": {"name": "probe"}}]},
    "DownwardAPIVolumeFile.resourceFieldRef": {"path": "file"},
    "EnvFromSource.prefix": {"configMapRef": {"name": "probe"}},
    "EnvVar": {"name": "PROBE"},
    "EnvVar.valueFrom": {"name": "PROBE"},
    "FileKeySelector": {"volumeName": "scratch", "path": "env", "key": "KEY"},
    "HostAlias": {"ip": "192.0.2.1"},
    "KeyToPath": {"key": "key", "path": "file"},
    "ObjectFieldSelector": {"fieldPath": "metadata.name"},
    "PersistentVolumeClaimVolumeSource": {"claimName": "models"},
    "PodResourceClaim": {"name": "probe"},
    "ResourceFieldSelector": {"resource": "limits.cpu", "containerName": "main"},
    "SeccompProfile.localhostProfile": {"type": "Localhost"},
    "SecretEnvSource": {"name": "probe"},
    "SecretEnvSource.optional": {"name": "absent"},
    "SecretKeySelector": {"name": "probe", "key": "key"},
    "SecretKeySelector.optional": {"name": "absent", "key": "key"},
    "SecretProjection": {"name": "probe"},
    "SecretProjection.optional": {"name": "absent"},
    "SecretVolumeSource": {"secretName": "probe"},
    "SecretVolumeSource.optional": {"secretName": "absent"},
    "ServiceAccountTokenProjection": {"path": "token"},
    "Volume": {"name": "scratch"},
    "VolumeDevice": {"name": "scratch", "devicePath": "/dev/probe"},
    "VolumeMount": MOUNT,
    "VolumeMount.recursiveReadOnly": {**MOUNT, "readOnly": True},
}
"""Type, or ``Type.field`` where that field needs something else -> what must stand beside it."""

SAMPLES: Mapping[str, Any] = {
    "Capabilities.add": ["SYS_ADMIN"],
    "Capabilities.drop": ["ALL"],
    "ConfigMapEnvSource.name": "absent",
    "ConfigMapKeySelector.key": "absent",
    "ConfigMapKeySelector.name": "absent",
    "ConfigMapProjection.name": "absent",
    "ConfigMapVolumeSource.defaultMode": 0o400,
    "ConfigMapVolumeSource.name": "absent",
    "Container.args": [WORD],
    "Container.command": [f"/{WORD}"],
    "Container.image": f"registry.example/{WORD}:1",
    "Container.imagePullPolicy": "Always",
    "Container.restartPolicy": "Never",
    "Container.stdin": True,
    "Container.stdinOnce": True,
    "Container.terminationMessagePath": "/tmp/last-words",
    "Container.terminationMessagePolicy": "FallbackToLogsOnError",
    "Container.tty": True,
    "Container.workingDir": f"/{WORD}",
    "ContainerPort.containerPort": 9090,
    "ContainerPort.hostPort": 9090,
    "ContainerPort.hostIP": "192.0.2.1",
    "ContainerPort.name": "http",
    "ContainerPort.protocol": "UDP",
    "ContainerResizePolicy.resourceName": "cpu",
    "DownwardAPIProjection.items": [_NAME_FILE],
    "DownwardAPIVolumeFile.mode": 0o400,
    "DownwardAPIVolumeFile.path": WORD,
    "DownwardAPIVolumeSource.defaultMode": 0o400,
    "DownwardAPIVolumeSource.items": [_NAME_FILE],
    "EmptyDirVolumeSource.medium": "Memory",
    "EmptyDirVolumeSource.sizeLimit": "40Gi",
    "EnvFromSource.prefix": "PREFIX_",
    "EnvVar.name": "ANOTHER_NAME",
    "HostAlias.hostnames": [WORD],
    "HostAlias.ip": "192.0.2.2",
    "KeyToPath.mode": 0o400,
    "KeyToPath.path": WORD,
    "LocalObjectReference.name": "pull-login",
    "ObjectFieldSelector.apiVersion": "v1",
    "ObjectFieldSelector.fieldPath": "metadata.uid",
    "PersistentVolumeClaimVolumeSource.claimName": "other-models",
    "PersistentVolumeClaimVolumeSource.readOnly": True,
    "PodDNSConfig.nameservers": ["192.0.2.53"],
    "PodDNSConfig.searches": ["probe.example"],
    "PodOS.name": "windows",
    "PodSecurityContext.fsGroup": 1000,
    "PodSecurityContext.fsGroupChangePolicy": "OnRootMismatch",
    "PodSecurityContext.runAsGroup": 1000,
    "PodSecurityContext.runAsNonRoot": True,
    "PodSecurityContext.runAsUser": 1000,
    "PodSecurityContext.seLinuxChangePolicy": "Recursive",
    "PodSecurityContext.supplementalGroups": [1000],
    "PodSecurityContext.supplementalGroupsPolicy": "Strict",
    "PodSpec.activeDeadlineSeconds": 600,
    "PodSpec.automountServiceAccountToken": False,
    "PodSpec.dnsPolicy": "None",
    "PodSpec.enableServiceLinks": False,
    "PodSpec.hostIPC": True,
    "PodSpec.hostNetwork": True,
    "PodSpec.hostPID": True,
    "PodSpec.hostUsers": False,
    "PodSpec.nodeSelector": {"pool": WORD},
    "PodSpec.overhead": {"cpu": "250m"},
    "PodSpec.preemptionPolicy": "Never",
    "PodSpec.priority": 100,
    "PodSpec.restartPolicy": "Never",
    "PodSpec.setHostnameAsFQDN": True,
    "PodSpec.shareProcessNamespace": True,
    "PodSpec.terminationGracePeriodSeconds": 60,
    "Probe.httpGet": {"port": 8080},
    "ProjectedVolumeSource.defaultMode": 0o400,
    "ProjectedVolumeSource.sources": [{"configMap": {"name": "probe"}}],
    "ResourceFieldSelector.containerName": "main",
    "ResourceFieldSelector.divisor": "1m",
    "ResourceFieldSelector.resource": "limits.memory",
    "ResourceRequirements.limits": {"cpu": "7", "memory": "30Gi"},
    "ResourceRequirements.requests": {"cpu": "5", "memory": "20Gi"},
    "SeccompProfile.type": "RuntimeDefault",
    "AppArmorProfile.type": "RuntimeDefault",
    "SecretEnvSource.name": "absent",
    "SecretKeySelector.key": "absent",
    "SecretKeySelector.name": "absent",
    "SecretProjection.name": "absent",
    "SecretVolumeSource.defaultMode": 0o400,
    "SecretVolumeSource.secretName": "absent",
    "SecurityContext.allowPrivilegeEscalation": False,
    "SecurityContext.privileged": True,
    "SecurityContext.procMount": "Unmasked",
    "SecurityContext.readOnlyRootFilesystem": True,
    "SecurityContext.runAsGroup": 1000,
    "SecurityContext.runAsNonRoot": True,
    "SecurityContext.runAsUser": 1000,
    "Toleration.tolerationSeconds": 60,
    "Volume.name": "scratch",
    "VolumeMount.mountPath": f"/{WORD}",
    "VolumeMount.mountPropagation": "Bidirectional",
    "VolumeMount.name": "scratch",
    "VolumeMount.readOnly": True,
    "VolumeMount.recursiveReadOnly": "Enabled",
}
"""``Type.field`` -> a value that differs from the default and from what stands beside it."""

LISTS = frozenset(
    {
        "PodSpec.containers", "PodSpec.ephemeralContainers", "PodSpec.hostAliases",
        "PodSpec.imagePullSecrets", "PodSpec.initContainers", "PodSpec.readinessGates",
        "PodSpec.resourceClaims", "PodSpec.schedulingGates", "PodSpec.tolerations",
        "PodSpec.topologySpreadConstraints", "PodSpec.volumes", "Container.env",
        "Container.envFrom", "Container.ports", "Container.resizePolicy",
        "Container.restartPolicyRules", "Container.volumeDevices", "Container.volumeMounts",
        "ConfigMapProjection.items", "ConfigMapVolumeSource.items", "DownwardAPIProjection.items",
        "DownwardAPIVolumeSource.items", "HTTPGetAction.httpHeaders", "PodDNSConfig.options",
        "PodSecurityContext.sysctls", "ProjectedVolumeSource.sources",
        "ResourceRequirements.claims", "SecretProjection.items", "SecretVolumeSource.items",
    }
)  # fmt: skip
"""The fields that hold a list of their type."""
