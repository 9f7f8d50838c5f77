"""What a Kubernetes pod may ask for that RunPod can't give: refused, or accepted with a note.

Pure. Everything that would make the pod behave otherwise than at home is refused by its field
path; defaults of hardened manifests that only take rights away are accepted and told in a note.
Fed by ``translate``; feeds ``UnsupportedFieldsError`` and ``explain``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.pods.known_fields import unknown_fields
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import FieldNote, Json, ResolvedPod

Finding = FieldProblem | FieldNote

_POD_REFUSED = {
    "hostNetwork": "an instance has no host network of this cluster",
    "hostPID": "an instance shares nothing with a host",
    "hostIPC": "an instance shares nothing with a host",
    "shareProcessNamespace": "an instance runs one container",
    "hostAliases": "RunPod can't add lines to /etc/hosts",
    "resourceClaims": "RunPod knows no dynamic resource allocation; use resources.limits",
    "resources": "RunPod sizes an instance by its container's resources; set them there",
    "ephemeralContainers": "an instance runs one container",
}
_POD_NOTED = {
    "hostname": "the container's host name is RunPod's",
    "hostnameOverride": "the container's host name is RunPod's",
    "subdomain": "the container's host name is RunPod's",
    "setHostnameAsFQDN": "the container's host name is RunPod's",
    "dnsConfig": "the container resolves names with RunPod's DNS",
    "runtimeClassName": "RunPod has one runtime, with GPU support",
}
_USER_REFUSED = {
    "runAsUser": "RunPod runs a container as its image's user; set USER in the image",
    "runAsGroup": "RunPod runs a container as its image's group; set USER in the image",
    "fsGroup": "RunPod can't change the group of volumes",
    "supplementalGroups": "RunPod can't add groups",
    "seLinuxOptions": "RunPod's hosts run no SELinux that could be set",
    "windowsOptions": "RunPod runs Linux",
    "sysctls": "RunPod can't set kernel parameters",
}
_RIGHTS_NOTED = {
    "runAsNonRoot": "not enforced by RunPod: the image's USER decides",
    "readOnlyRootFilesystem": "not enforced: the container disk stays writable",
}
_CONTAINER_REFUSED = {
    "workingDir": "RunPod can't set it; set WORKDIR in the image or use a shell in command",
    "volumeDevices": "RunPod has no block devices",
    "restartPolicy": "a container has no restart policy of its own here; the pod's counts",
    "restartPolicyRules": "RunPod exposes no exit codes to base rules on",
}
_CONTAINER_NOTED = {
    "livenessProbe": "not run (ProbesNotRun): Ready follows the instance",
    "readinessProbe": "not run (ProbesNotRun): Ready follows the instance",
    "startupProbe": "not run (ProbesNotRun): Ready follows the instance",
    "lifecycle": "hooks are not run",
    "stdin": "RunPod attaches no standard input",
    "stdinOnce": "RunPod attaches no standard input",
    "tty": "RunPod attaches no terminal",
}
_DEFAULT_GRACE_SECONDS = 30
_COUNTED = ("cpu", "memory", "ephemeral-storage")
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")


def findings(pod: ResolvedPod) -> tuple[Finding, ...]:
    """Everything in the pod that is refused or noted, in the order of the fields."""
    spec = mapping(pod.pod, "spec")
    return (
        *_pod_fields(spec),
        *_structure(pod, spec),
        *_containers(pod),
        *pod.unresolvable,
        *unknown_fields(spec),
    )


def _structure(pod: ResolvedPod, spec: Json) -> Iterator[Finding]:
    for container in pod.init_containers:
        sidecar = container.spec.get("restartPolicy") == "Always"
        what = "sidecars" if sidecar else "init containers"
        yield FieldProblem(
            container.field_path, f"RunPod has no {what}: one container per instance"
        )
    for container in pod.containers[1:]:
        yield FieldProblem(
            container.field_path, "RunPod runs one container per instance; found a second one"
        )
    os_name = text(mapping(spec, "os"), "name")
    if os_name not in ("", "linux"):
        yield FieldProblem("spec.os.name", f'found "{os_name}", allowed: linux')


def _pod_fields(spec: Json) -> Iterator[Finding]:
    yield from _by_table(spec, "spec", _POD_REFUSED, _POD_NOTED)
    if spec.get("hostUsers") is False:
        yield FieldNote("spec.hostUsers", "RunPod decides about user namespaces")
    policy = text(spec, "dnsPolicy")
    if policy == "None":
        yield FieldNote("spec.dnsPolicy", "the container resolves names with RunPod's DNS")
    grace = spec.get("terminationGracePeriodSeconds")
    if grace not in (None, _DEFAULT_GRACE_SECONDS):
        yield FieldNote(
            "spec.terminationGracePeriodSeconds", "RunPod ends an instance without a grace period"
        )
    yield from _security(mapping(spec, "securityContext"), "spec.securityContext")


def _containers(pod: ResolvedPod) -> Iterator[Finding]:
    for container in pod.containers[:1]:
        spec, path = container.spec, container.field_path
        yield from _by_table(spec, path, _CONTAINER_REFUSED, _CONTAINER_NOTED)
        context, context_path = mapping(spec, "securityContext"), f"{path}.securityContext"
        yield from _security(context, context_path)
        yield from _privileges(context, context_path)
        yield from _resources(pod, mapping(spec, "resources"), f"{path}.resources")
        if text(spec, "imagePullPolicy") == "Always":
            yield FieldNote(
                f"{path}.imagePullPolicy",
                "RunPod's hosts may hold an older image of the same tag; pin a digest or a version",
            )


def _by_table(
    spec: Json, path: str, refused: Mapping[str, str], noted: Mapping[str, str]
) -> Iterator[Finding]:
    for key, why in refused.items():
        if spec.get(key):
            yield FieldProblem(f"{path}.{key}", why)
    for key, why in noted.items():
        if spec.get(key):
            yield FieldNote(f"{path}.{key}", why)


def _security(context: Json, path: str) -> Iterator[Finding]:
    for key, why in _USER_REFUSED.items():
        value = context.get(key)
        # User and group 0 are given explicitly by some charts, and are what most images run as.
        if value not in (None, [], {}) and not (key == "runAsUser" and value == 0):
            yield FieldProblem(f"{path}.{key}", f"found {_shown(value)}; {why}")
    yield from _by_table(context, path, {}, _RIGHTS_NOTED)
    for key in ("seccompProfile", "appArmorProfile"):
        kind = text(mapping(context, key), "type")
        if kind == "Localhost":
            yield FieldProblem(f"{path}.{key}.type", "RunPod's hosts have no profiles of yours")
        elif kind:
            yield FieldNote(f"{path}.{key}", "RunPod's own profile applies")


def _privileges(context: Json, path: str) -> Iterator[Finding]:
    if context.get("privileged"):
        yield FieldProblem(f"{path}.privileged", "RunPod runs no privileged containers")
    if context.get("allowPrivilegeEscalation") is False:
        yield FieldNote(f"{path}.allowPrivilegeEscalation", "not enforced by RunPod")
    if text(context, "procMount") not in ("", "Default"):
        yield FieldProblem(f"{path}.procMount", "allowed: Default")
    capabilities = mapping(context, "capabilities")
    if capabilities.get("add"):
        shown = _shown(capabilities["add"])
        yield FieldProblem(f"{path}.capabilities.add", f"found {shown}; RunPod can't add any")
    if capabilities.get("drop"):
        yield FieldNote(f"{path}.capabilities.drop", "not enforced: RunPod's own set applies")


def _resources(pod: ResolvedPod, resources: Json, path: str) -> Iterator[Finding]:
    if resources.get("claims"):
        yield FieldProblem(f"{path}.claims", _POD_REFUSED["resourceClaims"])
    wanted = {**mapping(resources, "requests"), **mapping(resources, "limits")}
    for name in wanted:
        if name not in (*_COUNTED, *_GPUS):
            place = "limits" if name in mapping(resources, "limits") else "requests"
            allowed = ", ".join((*_COUNTED, *_GPUS))
            yield FieldProblem(f"{path}.{place}[{name}]", f"RunPod rents none; allowed: {allowed}")
    if pod.gpu_count and any(name in wanted for name in ("cpu", "memory")):
        yield FieldNote(path, "cpu and memory come with the GPU type and can't be asked for")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(entry) for entry in value)
    # A sysctl, an SELinux option: its name says enough.
    return str(value.get("name", "a mapping")) if isinstance(value, Mapping) else str(value)


def ports(pod: ResolvedPod) -> Iterator[FieldProblem]:
    """Every port that RunPod can't publish."""
    container = pod.containers[0]
    for index, port in mappings(container.spec, "ports"):
        path = f"{container.field_path}.ports[{index}]"
        protocol = text(port, "protocol") or "TCP"
        if protocol != "TCP":
            yield FieldProblem(f"{path}.protocol", f'found "{protocol}", allowed: TCP')
        for key in ("hostPort", "hostIP"):
            if port.get(key):
                why = "an instance has no port of its host to itself"
                yield FieldProblem(f"{path}.{key}", why)
