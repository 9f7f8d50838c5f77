"""The fields of a pod that are sent as they are, by the API's own type names.

``field`` or ``field:Type``, where the type is that of what is inside. Together with the rules of
their own in :mod:`.rules` they are the whole Pod API; a unit test compares.
Pure. Fed by nothing; feeds :mod:`.rules`.
"""

from __future__ import annotations

from collections.abc import Mapping

_CONTAINER = """
    args command image imagePullPolicy lifecycle:Lifecycle livenessProbe:Probe name
    ports:ContainerPort readinessProbe:Probe resizePolicy:ContainerResizePolicy
    resources:ResourceRequirements restartPolicy restartPolicyRules:ContainerRestartRule
    securityContext:SecurityContext startupProbe:Probe stdin stdinOnce
    terminationMessagePath terminationMessagePolicy tty volumeMounts:VolumeMount workingDir
"""

SENT: Mapping[str, str] = {
    "AppArmorProfile": "localhostProfile type",
    "Capabilities": "add drop",
    "ConfigMapEnvSource": "optional",
    "ConfigMapKeySelector": "key optional",
    "ConfigMapProjection": "items:KeyToPath optional",
    "ConfigMapVolumeSource": "defaultMode defaultUser items:KeyToPath optional",
    "Container": _CONTAINER,
    "ContainerPort": "containerPort name protocol",
    "ContainerResizePolicy": "resourceName restartPolicy",
    "ContainerRestartRule": "action exitCodes:ContainerRestartRuleOnExitCodes",
    "ContainerRestartRuleOnExitCodes": "operator values",
    "DownwardAPIVolumeFile": "mode path resourceFieldRef:ResourceFieldSelector user",
    "DownwardAPIVolumeSource": "defaultMode defaultUser",
    "EmptyDirVolumeSource": "medium mode sizeLimit",
    "EnvFromSource": "prefix",
    "EnvVar": "name value",
    "EnvVarSource": "fileKeyRef:FileKeySelector resourceFieldRef:ResourceFieldSelector",
    "EphemeralContainer": f"{_CONTAINER} targetContainerName",
    "EphemeralVolumeSource": "volumeClaimTemplate:PersistentVolumeClaimTemplate",
    "ExecAction": "command",
    "FileKeySelector": "key optional path volumeName",
    "GRPCAction": "mode port service",
    "HTTPGetAction": "host httpHeaders:HTTPHeader path port protocol scheme",
    "HTTPHeader": "name value",
    "HostAlias": "hostnames ip",
    "ImageVolumeSource": "pullPolicy reference",
    "KeyToPath": "key mode path user",
    "LabelSelector": "matchExpressions:LabelSelectorRequirement matchLabels",
    "LabelSelectorRequirement": "key operator values",
    "Lifecycle": "postStart:LifecycleHandler preStop:LifecycleHandler stopSignal",
    "LifecycleHandler": """
        exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction tcpSocket:TCPSocketAction
    """,
    "NFSVolumeSource": "path readOnly server",
    "ObjectFieldSelector": "apiVersion fieldPath",
    "PersistentVolumeClaimSpec": """
        accessModes resources:VolumeResourceRequirements selector:LabelSelector storageClassName
        volumeAttributesClassName volumeMode
    """,
    "PersistentVolumeClaimTemplate": "spec:PersistentVolumeClaimSpec",
    "PersistentVolumeClaimVolumeSource": "readOnly",
    "PodDNSConfig": "nameservers options:PodDNSConfigOption searches",
    "PodDNSConfigOption": "name value",
    "PodOS": "name",
    "PodSecurityContext": """
        appArmorProfile:AppArmorProfile fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot
        runAsUser seLinuxChangePolicy seLinuxOptions:SELinuxOptions
        seccompProfile:SeccompProfile supplementalGroups supplementalGroupsPolicy sysctls:Sysctl
        windowsOptions:WindowsSecurityContextOptions
    """,
    "PodSpec": """
        activeDeadlineSeconds dnsConfig:PodDNSConfig dnsPolicy hostAliases:HostAlias hostUsers
        hostnameOverride os:PodOS resources:ResourceRequirements restartPolicy runtimeClassName
        securityContext:PodSecurityContext setHostnameAsFQDN shareProcessNamespace subdomain
        terminationGracePeriodSeconds
    """,
    "Probe": """
        exec:ExecAction failureThreshold grpc:GRPCAction httpGet:HTTPGetAction
        initialDelaySeconds periodSeconds successThreshold tcpSocket:TCPSocketAction
        terminationGracePeriodSeconds timeoutSeconds
    """,
    "ProjectedVolumeSource": "defaultMode defaultUser",
    "ResourceFieldSelector": "containerName divisor resource",
    "ResourceRequirements": "limits requests",
    "SELinuxOptions": "level role type user",
    "SeccompProfile": "localhostProfile type",
    "SecretEnvSource": "optional",
    "SecretKeySelector": "key optional",
    "SecretProjection": "items:KeyToPath optional",
    "SecretVolumeSource": "defaultMode defaultUser items:KeyToPath optional",
    "SecurityContext": """
        allowPrivilegeEscalation appArmorProfile:AppArmorProfile capabilities:Capabilities
        procMount readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser
        seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile
        windowsOptions:WindowsSecurityContextOptions
    """,
    "ServiceAccountTokenProjection": "path user",
    "SleepAction": "seconds",
    "Sysctl": "name value",
    "TCPSocketAction": "host port",
    "Toleration": "effect key operator tolerationSeconds value",
    "Volume": """
        emptyDir:EmptyDirVolumeSource ephemeral:EphemeralVolumeSource image:ImageVolumeSource
        name nfs:NFSVolumeSource
    """,
    "VolumeMount": """
        bindMountOptions mountPath mountPropagation name readOnly recursiveReadOnly subPath
        subPathExpr
    """,
    "VolumeResourceRequirements": "limits requests",
    "WindowsSecurityContextOptions": """
        gmsaCredentialSpec gmsaCredentialSpecName runAsUserName
    """,
}
