"""Every field of a pod that this release has heard of, to a depth where anything is decided. Pure.

A newer Kubernetes brings new fields. A translation that names what it refuses would drop them
without a word, so it refuses whatever is not in here, too; a unit test compares the table with the
Pod API.
Fed by a pod's spec; feeds the refusals of translations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.pods.reading import mapping, mappings
from vk_provider.pods.types import Json

_WHY = "this release does not know the field, so it can't promise it"
_NOTHING: tuple[Any, ...] = (None, False, 0, "", [], {})

KNOWN: Mapping[str, str] = {
    "AppArmorProfile": "localhostProfile type",
    "Capabilities": "add drop",
    "ConfigMapEnvSource": "name optional",
    "ConfigMapKeySelector": "key name optional",
    "ConfigMapProjection": "items:KeyToPath name optional",
    "ConfigMapVolumeSource": "defaultMode defaultUser items:KeyToPath name optional",
    "Container": """
        args command env:EnvVar envFrom:EnvFromSource image imagePullPolicy lifecycle
        livenessProbe name ports:ContainerPort readinessProbe resizePolicy
        resources:ResourceRequirements restartPolicy restartPolicyRules
        securityContext:SecurityContext startupProbe stdin stdinOnce
        terminationMessagePath terminationMessagePolicy tty volumeDevices
        volumeMounts:VolumeMount workingDir
    """,
    "ContainerPort": "containerPort hostIP hostPort name protocol",
    "DownwardAPIProjection": "items:DownwardAPIVolumeFile",
    "DownwardAPIVolumeFile": """
        fieldRef:ObjectFieldSelector mode path resourceFieldRef:ResourceFieldSelector user
    """,
    "DownwardAPIVolumeSource": "defaultMode defaultUser items:DownwardAPIVolumeFile",
    "EmptyDirVolumeSource": "medium mode sizeLimit",
    "EnvFromSource": "configMapRef:ConfigMapEnvSource prefix secretRef:SecretEnvSource",
    "EnvVar": "name value valueFrom:EnvVarSource",
    "EnvVarSource": """
        configMapKeyRef:ConfigMapKeySelector fieldRef:ObjectFieldSelector fileKeyRef
        resourceFieldRef:ResourceFieldSelector secretKeyRef:SecretKeySelector
    """,
    "KeyToPath": "key mode path user",
    "LocalObjectReference": "name",
    "ObjectFieldSelector": "apiVersion fieldPath",
    "PersistentVolumeClaimVolumeSource": "claimName readOnly",
    "PodOS": "name",
    "PodSecurityContext": """
        appArmorProfile:AppArmorProfile fsGroup fsGroupChangePolicy runAsGroup
        runAsNonRoot runAsUser seLinuxChangePolicy seLinuxOptions
        seccompProfile:SeccompProfile supplementalGroups supplementalGroupsPolicy sysctls
        windowsOptions
    """,
    "PodSpec": """
        activeDeadlineSeconds affinity automountServiceAccountToken containers:Container
        dnsConfig dnsPolicy enableServiceLinks ephemeralContainers evictionResponders
        hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride
        imagePullSecrets:LocalObjectReference initContainers nodeName nodeSelector
        os:PodOS overhead preemptionPolicy priority priorityClassName readinessGates
        resourceClaims resources:ResourceRequirements restartPolicy runtimeClassName
        schedulerName schedulingGates schedulingGroup securityContext:PodSecurityContext
        serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace
        subdomain terminationGracePeriodSeconds tolerations topologySpreadConstraints
        volumes:Volume
    """,
    "ProjectedVolumeSource": "defaultMode defaultUser sources:VolumeProjection",
    "ResourceFieldSelector": "containerName divisor resource",
    "ResourceRequirements": "claims limits requests",
    "SeccompProfile": "localhostProfile type",
    "SecretEnvSource": "name optional",
    "SecretKeySelector": "key name optional",
    "SecretProjection": "items:KeyToPath name optional",
    "SecretVolumeSource": "defaultMode defaultUser items:KeyToPath optional secretName",
    "SecurityContext": """
        allowPrivilegeEscalation appArmorProfile:AppArmorProfile capabilities:Capabilities
        privileged procMount readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser
        seLinuxOptions seccompProfile:SeccompProfile windowsOptions
    """,
    "Volume": """
        awsElasticBlockStore azureDisk azureFile cephfs cinder
        configMap:ConfigMapVolumeSource csi downwardAPI:DownwardAPIVolumeSource
        emptyDir:EmptyDirVolumeSource ephemeral fc flexVolume flocker gcePersistentDisk
        gitRepo glusterfs hostPath image iscsi name nfs
        persistentVolumeClaim:PersistentVolumeClaimVolumeSource photonPersistentDisk
        portworxVolume projected:ProjectedVolumeSource quobyte rbd scaleIO
        secret:SecretVolumeSource storageos vsphereVolume
    """,
    "VolumeMount": """
        bindMountOptions mountPath mountPropagation name readOnly recursiveReadOnly
        subPath subPathExpr
    """,
    "VolumeProjection": """
        clusterTrustBundle configMap:ConfigMapProjection downwardAPI:DownwardAPIProjection
        podCertificate secret:SecretProjection serviceAccountToken
    """,
}
"""Type -> its fields; ``field:Type`` where those of what is inside are looked at, too."""

_TABLE: Mapping[str, Mapping[str, str]] = {
    name: dict(word.partition(":")[::2] for word in words.split()) for name, words in KNOWN.items()
}


def unknown_fields(
    value: Json, path: str = "spec", type_name: str = "PodSpec"
) -> Iterator[FieldProblem]:
    """A refusal for each field that says something and that nobody here knows."""
    known = _TABLE[type_name]
    for name, inside in value.items():
        where = f"{path}.{name}"
        if name not in known:
            if inside not in _NOTHING:
                yield FieldProblem(where, _WHY)
        elif known[name]:
            yield from unknown_fields(mapping(value, name), where, known[name])
            for index, each in mappings(value, name):
                yield from unknown_fields(each, f"{where}[{index}]", known[name])
