"""What a Kubernetes pod may ask for that a plain local process can't have: refused, or noted.

PURE. What would make the pod behave otherwise than at home is refused by its field path; what only
takes rights away, or limits, is accepted with a note.
Fed by :mod:`.process_translate`; feeds ``UnsupportedFieldsError`` and ``explain``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from vk_provider.faults import FieldProblem
from vk_provider.pods.field_findings import Finding, by_table
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.references import is_token_volume
from vk_provider.pods.types import FieldNote, Json, ResolvedContainer, ResolvedPod

FILE_VOLUMES = ("configMap", "secret", "projected", "downwardAPI")

_POD_REFUSED = {
    "hostAliases": "a process resolves names as this machine does",
    "dnsConfig": "a process resolves names as this machine does",
    "runtimeClassName": "a process has no container runtime",
    "resourceClaims": "a process gets no devices",
    "ephemeralContainers": "they can't be added to a process",
}
_POD_NOTED = {
    "hostname": "the host name is this machine's",
    "subdomain": "the host name is this machine's",
    "shareProcessNamespace": "all processes of this machine see each other",
    "hostNetwork": "every process is in this machine's network",
    "hostPID": "all processes of this machine see each other",
    "hostIPC": "all processes of this machine see each other",
    "imagePullSecrets": "nothing is pulled",
}
_CONTAINER_REFUSED = {
    "volumeDevices": "a process gets no devices",
    "restartPolicyRules": "this provider never restarts a process",
    "lifecycle": "hooks are not run",
}
_PROBE = "not run (ProbesNotRun): Ready follows the process"
_CONTAINER_NOTED = {
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
}
_SECURITY_REFUSED = {
    "privileged": "a process has the rights of whoever runs this provider",
    "runAsUser": "a process runs as whoever runs this provider",
    "runAsGroup": "a process runs as whoever runs this provider",
    "fsGroup": "files belong to whoever runs this provider",
    "supplementalGroups": "a process runs as whoever runs this provider",
    "seLinuxOptions": "a process gets no label",
    "windowsOptions": "a process runs on Linux",
    "sysctls": "a process shares this machine's kernel parameters",
}
_SECURITY_NOTED = {
    "runAsNonRoot": "not enforced",
    "readOnlyRootFilesystem": "not enforced",
    "seccompProfile": "not enforced",
    "appArmorProfile": "not enforced",
}
_COUNTED = ("cpu", "memory", "ephemeral-storage")


def findings(pod: ResolvedPod) -> Iterator[Finding]:
    """Everything in the pod that is refused or noted."""
    spec = mapping(pod.pod, "spec")
    yield from pod.unresolvable
    yield from by_table(spec, "spec", _POD_REFUSED, _POD_NOTED)
    yield from _security(mapping(spec, "securityContext"), "spec.securityContext")
    yield from _volumes(spec)
    for container in (*pod.init_containers, *pod.containers):
        yield from _container(container)


def _volumes(spec: Json) -> Iterator[Finding]:
    for index, volume in mappings(spec, "volumes"):
        if is_token_volume(volume):
            continue
        path = f"spec.volumes[{index}]"
        for kind in volume:
            if kind not in ("name", "emptyDir", *FILE_VOLUMES):
                allowed = ", ".join((*FILE_VOLUMES, "emptyDir"))
                yield FieldProblem(
                    f"{path}.{kind}", f"a process can't mount it; allowed: {allowed}"
                )
        if mapping(volume, "emptyDir").get("sizeLimit"):
            yield FieldNote(f"{path}.emptyDir.sizeLimit", "not enforced")


def _container(container: ResolvedContainer) -> Iterator[Finding]:
    spec, path = container.spec, container.field_path
    yield from by_table(spec, path, _CONTAINER_REFUSED, _CONTAINER_NOTED)
    context, where = mapping(spec, "securityContext"), f"{path}.securityContext"
    yield from _security(context, where)
    if mapping(context, "capabilities").get("add"):
        yield FieldProblem(f"{where}.capabilities.add", "a process can't be given any")
    yield from _resources(mapping(spec, "resources"), f"{path}.resources")
    yield from _ports(spec, path)
    for index, mount in mappings(spec, "volumeMounts"):
        at = f"{path}.volumeMounts[{index}]"
        place = text(mount, "mountPath")
        if posixpath.normpath("/" + place.lstrip("/")) == "/":
            yield FieldProblem(f"{at}.mountPath", f'found "{place}"; allowed: a path below /')


def _resources(resources: Json, path: str) -> Iterator[Finding]:
    for place in ("limits", "requests"):
        for name in mapping(resources, place):
            if name not in _COUNTED:
                allowed = ", ".join(_COUNTED)
                message = f"a process gets no devices; allowed: {allowed}"
                yield FieldProblem(f"{path}.{place}[{name}]", message)
    if mapping(resources, "limits"):
        yield FieldNote(f"{path}.limits", "not enforced")


def _ports(spec: Json, path: str) -> Iterator[Finding]:
    for index, port in mappings(spec, "ports"):
        protocol = text(port, "protocol") or "TCP"
        if protocol != "TCP":
            where = f"{path}.ports[{index}].protocol"
            yield FieldProblem(where, f'found "{protocol}", allowed: TCP')


def _security(context: Json, path: str) -> Iterator[Finding]:
    # User 0 says nothing: it is given by some charts, and is what most images run as.
    yield from by_table(context, path, _SECURITY_REFUSED, _SECURITY_NOTED)
