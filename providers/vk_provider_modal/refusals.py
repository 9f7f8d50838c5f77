"""The fields of a pod that Modal can't honour, and those it honours in its own way.

Pure. One table per level; what stands in none of them is translated elsewhere or means nothing
to a node. Fed by ``translate``; every finding is a refusal by field path or a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.pods.known_fields import unknown_fields
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import FieldNote, Json, ResolvedContainer, ResolvedPod

Finding = FieldProblem | FieldNote

_POD_REFUSED = {
    "hostNetwork": "a sandbox has no host network of this cluster",
    "hostPID": "a sandbox shares nothing with a host",
    "hostIPC": "a sandbox shares nothing with a host",
    "shareProcessNamespace": "a sandbox runs one container",
    "hostAliases": "Modal can't add lines to /etc/hosts",
    "resourceClaims": "Modal knows no dynamic resource allocation; use resources.limits",
    "resources": "Modal sizes a sandbox by its container's resources; set them there",
    "ephemeralContainers": "a sandbox runs one container",
}
_POD_NOTED = {
    "hostname": "the container's host name is Modal's",
    "hostnameOverride": "the container's host name is Modal's",
    "subdomain": "the container's host name is Modal's",
    "setHostnameAsFQDN": "the container's host name is Modal's",
    "dnsConfig": "the container resolves names with Modal's DNS",
    "runtimeClassName": "Modal chooses the runtime (gVisor), with GPU support",
}
_USER_REFUSED = {
    "runAsUser": "Modal runs a container as its image's user; set USER in the image",
    "runAsGroup": "Modal runs a container as its image's group; set USER in the image",
    "fsGroup": "Modal can't change the group of volumes",
    "supplementalGroups": "Modal can't add groups",
    "seLinuxOptions": "Modal's sandboxes have no SELinux",
    "windowsOptions": "Modal runs Linux",
    "sysctls": "Modal can't set kernel parameters",
}
_RIGHTS_NOTED = {
    "runAsNonRoot": "not enforced by Modal: the image's USER decides",
    "readOnlyRootFilesystem": "not enforced: the sandbox's disk stays writable",
}
_CONTAINER_REFUSED = {
    "volumeDevices": "Modal has no block devices",
    "restartPolicy": "a container has no restart policy of its own here; the pod's counts",
    "restartPolicyRules": "Modal restarts no container, so there is nothing to base rules on",
}
_CONTAINER_NOTED = {
    "livenessProbe": "not run (ProbesNotRun): Ready follows the instance",
    "readinessProbe": "not run (ProbesNotRun): Ready follows the instance",
    "startupProbe": "not run (ProbesNotRun): Ready follows the instance",
    "lifecycle": "hooks are not run",
    "stdin": "Modal's sandboxes are given no standard input; kubectl exec -i has one",
    "stdinOnce": "Modal's sandboxes are given no standard input; kubectl exec -i has one",
    "tty": "a sandbox's own process gets no terminal; kubectl exec -t does",
}
_COUNTED = ("cpu", "memory", "ephemeral-storage")
_GPU = "nvidia.com/gpu"


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
        yield FieldProblem(container.field_path, f"Modal has no {what}: one container per sandbox")
    for container in pod.containers[1:]:
        yield FieldProblem(
            container.field_path, "Modal runs one container per sandbox; found a second one"
        )
    os_name = text(mapping(spec, "os"), "name")
    if os_name not in ("", "linux"):
        yield FieldProblem("spec.os.name", f'found "{os_name}", allowed: linux')


def _pod_fields(spec: Json) -> Iterator[Finding]:
    yield from _by_table(spec, "spec", _POD_REFUSED, _POD_NOTED)
    if spec.get("hostUsers") is False:
        yield FieldNote("spec.hostUsers", "Modal decides about user namespaces")
    if text(spec, "dnsPolicy") == "None":
        yield FieldNote("spec.dnsPolicy", "the container resolves names with Modal's DNS")
    if spec.get("terminationGracePeriodSeconds") not in (None, 30):
        yield FieldNote(
            "spec.terminationGracePeriodSeconds", "Modal ends a sandbox without a grace period"
        )
    yield from _security(mapping(spec, "securityContext"), "spec.securityContext")


def _containers(pod: ResolvedPod) -> Iterator[Finding]:
    for container in pod.containers[:1]:
        spec, path = container.spec, container.field_path
        yield from _by_table(spec, path, _CONTAINER_REFUSED, _CONTAINER_NOTED)
        context, context_path = mapping(spec, "securityContext"), f"{path}.securityContext"
        yield from _security(context, context_path)
        yield from _privileges(context, context_path)
        yield from _resources(mapping(spec, "resources"), f"{path}.resources")
        yield from _ports(container)
        if spec.get("workingDir") and not text(spec, "workingDir").startswith("/"):
            found = f'found "{text(spec, "workingDir")}", allowed: an absolute path'
            yield FieldProblem(f"{path}.workingDir", found)


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
        # User 0 is given explicitly by some charts, and is what most images run as.
        if value not in (None, [], {}) and not (key == "runAsUser" and value == 0):
            yield FieldProblem(f"{path}.{key}", f"found {_shown(value)}; {why}")
    yield from _by_table(context, path, {}, _RIGHTS_NOTED)
    for key in ("seccompProfile", "appArmorProfile"):
        kind = text(mapping(context, key), "type")
        if kind == "Localhost":
            yield FieldProblem(f"{path}.{key}.type", "Modal's hosts have no profiles of yours")
        elif kind:
            yield FieldNote(f"{path}.{key}", "gVisor's own isolation applies")


def _privileges(context: Json, path: str) -> Iterator[Finding]:
    if context.get("privileged"):
        yield FieldProblem(f"{path}.privileged", "Modal runs no privileged containers")
    if context.get("allowPrivilegeEscalation") is False:
        yield FieldNote(f"{path}.allowPrivilegeEscalation", "not enforced by Modal")
    if text(context, "procMount") not in ("", "Default"):
        yield FieldProblem(f"{path}.procMount", "allowed: Default")
    capabilities = mapping(context, "capabilities")
    if capabilities.get("add"):
        shown = _shown(capabilities["add"])
        yield FieldProblem(f"{path}.capabilities.add", f"found {shown}; Modal can't add any")
    if capabilities.get("drop"):
        yield FieldNote(f"{path}.capabilities.drop", "not enforced: Modal's own set applies")


def _resources(resources: Json, path: str) -> Iterator[Finding]:
    if resources.get("claims"):
        yield FieldProblem(f"{path}.claims", _POD_REFUSED["resourceClaims"])
    for place in ("requests", "limits"):
        for name in mapping(resources, place):
            # Another maker's GPU is refused with the GPUs.
            if name not in (*_COUNTED, _GPU, "amd.com/gpu"):
                allowed = ", ".join((*_COUNTED, _GPU))
                yield FieldProblem(
                    f"{path}.{place}[{name}]", f"Modal rents none; allowed: {allowed}"
                )
    if "ephemeral-storage" in mapping(resources, "limits"):
        yield FieldNote(
            f"{path}.limits[ephemeral-storage]", "not enforced: a sandbox's disk has one size"
        )


def _ports(container: ResolvedContainer) -> Iterator[Finding]:
    for index, port in mappings(container.spec, "ports"):
        path = f"{container.field_path}.ports[{index}]"
        protocol = text(port, "protocol") or "TCP"
        if protocol != "TCP":
            yield FieldProblem(f"{path}.protocol", f'found "{protocol}", allowed: TCP')
        for key in ("hostPort", "hostIP"):
            if port.get(key):
                yield FieldProblem(f"{path}.{key}", "a sandbox has no port of its host to itself")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(entry) for entry in value)
    # A sysctl, an SELinux option: its name says enough.
    return str(value.get("name", "a mapping")) if isinstance(value, Mapping) else str(value)
