"""What a pod may ask for that a service can't give which runs one container per instance. Pure.

Everything that would make the pod behave otherwise than at home is refused by its field path;
defaults of hardened manifests that only take rights away are accepted and told in a note.
Fed by a provider's translation, which adds what is its service's alone; feeds
``UnsupportedFieldsError`` and ``explain``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from vk_provider.faults import FieldProblem
from vk_provider.pods.field_findings import Finding, by_table, shown
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import FieldNote, Json, ResolvedContainer, ResolvedPod

_ALONE = "{an_instance} runs one container"
_UNSHARED = "{an_instance} shares nothing with a host"
_CLAIMS = "{service} knows no dynamic resource allocation; use resources.limits"
_NAME = "the container's host name is {service}'s"
_DNS = "the container resolves names with {service}'s DNS"
_PROBE = "not run (ProbesNotRun): Ready follows the instance"
_INPUT = "{service} attaches no standard input"

_POD_REFUSED = {
    "hostNetwork": "{an_instance} has no host network of this cluster",
    "hostPID": _UNSHARED,
    "hostIPC": _UNSHARED,
    "shareProcessNamespace": _ALONE,
    "hostAliases": "{service} can't add lines to /etc/hosts",
    "resourceClaims": _CLAIMS,
    "resources": "{service} sizes {an_instance} by its container's resources; set them there",
    "ephemeralContainers": _ALONE,
}
_POD_NOTED = {
    "hostname": _NAME,
    "hostnameOverride": _NAME,
    "subdomain": _NAME,
    "setHostnameAsFQDN": _NAME,
    "dnsConfig": _DNS,
    "runtimeClassName": "{service} has one runtime, with GPU support",
}
_USER_REFUSED = {
    "runAsUser": "{service} runs a container as its image's user; set USER in the image",
    "runAsGroup": "{service} runs a container as its image's group; set USER in the image",
    "fsGroup": "{service} can't change the group of volumes",
    "supplementalGroups": "{service} can't add groups",
    "seLinuxOptions": "{service}'s hosts run no SELinux that could be set",
    "windowsOptions": "{service} runs Linux",
    "sysctls": "{service} can't set kernel parameters",
}
_RIGHTS_NOTED = {
    "runAsNonRoot": "not enforced by {service}: the image's USER decides",
    "readOnlyRootFilesystem": "not enforced: the container disk stays writable",
}
_PROFILES = {
    "seccompProfile": "{service}'s own profile applies",
    "appArmorProfile": "{service}'s own profile applies",
}
_CONTAINER_REFUSED = {
    "volumeDevices": "{service} has no block devices",
    "restartPolicy": "a container has no restart policy of its own here; the pod's counts",
    "restartPolicyRules": "{service} restarts no container, so there is nothing to base rules on",
}
_CONTAINER_NOTED = {
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "lifecycle": "hooks are not run",
    "stdin": _INPUT,
    "stdinOnce": _INPUT,
    "tty": "{service} attaches no terminal",
}
_DEFAULT_GRACE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class OneContainer:
    """Such a service: its name, and what it calls an instance, with the article. ``words`` are
    said of a field in place of the usual ones."""

    service: str
    an_instance: str = "an instance"
    words: Mapping[str, str] = field(default_factory=dict)

    def of_pod(self, pod: ResolvedPod) -> Iterator[Finding]:
        """The pod's own fields, and every container but the first."""
        spec = mapping(pod.pod, "spec")
        yield from self._by_table(spec, "spec", _POD_REFUSED, _POD_NOTED)
        if spec.get("hostUsers") is False:
            yield FieldNote("spec.hostUsers", f"{self.service} decides about user namespaces")
        if text(spec, "dnsPolicy") == "None":
            yield FieldNote("spec.dnsPolicy", self._said(_DNS))
        if spec.get("terminationGracePeriodSeconds") not in (None, _DEFAULT_GRACE_SECONDS):
            words = f"{self.service} ends {self.an_instance} without a grace period"
            yield FieldNote("spec.terminationGracePeriodSeconds", words)
        yield from self._security(mapping(spec, "securityContext"), "spec.securityContext")
        yield from self._structure(pod, spec)

    def of_container(self, container: ResolvedContainer) -> Iterator[Finding]:
        """The fields of the one container, without its image, ports, volumes and sizes."""
        spec, path = container.spec, container.field_path
        yield from self._by_table(spec, path, _CONTAINER_REFUSED, _CONTAINER_NOTED)
        context = mapping(spec, "securityContext")
        yield from self._security(context, f"{path}.securityContext")
        yield from self._privileges(context, f"{path}.securityContext")
        if mapping(spec, "resources").get("claims"):
            why = self._why("resourceClaims", _CLAIMS)
            yield FieldProblem(f"{path}.resources.claims", why)

    def of_ports(self, container: ResolvedContainer) -> Iterator[FieldProblem]:
        """Every port that can't be published: not of TCP, or a host's."""
        for index, port in mappings(container.spec, "ports"):
            path = f"{container.field_path}.ports[{index}]"
            protocol = text(port, "protocol") or "TCP"
            if protocol != "TCP":
                yield FieldProblem(f"{path}.protocol", f'found "{protocol}", allowed: TCP')
            for key in ("hostPort", "hostIP"):
                if port.get(key):
                    why = f"{self.an_instance} has no port of its host to itself"
                    yield FieldProblem(f"{path}.{key}", why)

    def _structure(self, pod: ResolvedPod, spec: Json) -> Iterator[FieldProblem]:
        each = f"one container per {self.an_instance.split(maxsplit=1)[-1]}"
        for container in pod.init_containers:
            sidecar = container.spec.get("restartPolicy") == "Always"
            what = "sidecars" if sidecar else "init containers"
            yield FieldProblem(container.field_path, f"{self.service} has no {what}: {each}")
        for container in pod.containers[1:]:
            why = f"{self.service} runs {each}; found a second one"
            yield FieldProblem(container.field_path, why)
        os_name = text(mapping(spec, "os"), "name")
        if os_name not in ("", "linux"):
            yield FieldProblem("spec.os.name", f'found "{os_name}", allowed: linux')

    def _security(self, context: Json, path: str) -> Iterator[Finding]:
        for key, why in _USER_REFUSED.items():
            value = context.get(key)
            # User 0 is given explicitly by some charts, and is what most images run as.
            if value not in (None, [], {}) and not (key == "runAsUser" and value == 0):
                yield FieldProblem(f"{path}.{key}", f"found {shown(value)}; {self._why(key, why)}")
        yield from self._by_table(context, path, {}, _RIGHTS_NOTED)
        for key, why in _PROFILES.items():
            kind = text(mapping(context, key), "type")
            if kind == "Localhost":
                none = f"{self.service}'s hosts have no profiles of yours"
                yield FieldProblem(f"{path}.{key}.type", none)
            elif kind:
                yield FieldNote(f"{path}.{key}", self._why(key, why))

    def _privileges(self, context: Json, path: str) -> Iterator[Finding]:
        service, capabilities = self.service, mapping(context, "capabilities")
        if context.get("privileged"):
            yield FieldProblem(f"{path}.privileged", f"{service} runs no privileged containers")
        if context.get("allowPrivilegeEscalation") is False:
            yield FieldNote(f"{path}.allowPrivilegeEscalation", f"not enforced by {service}")
        if text(context, "procMount") not in ("", "Default"):
            yield FieldProblem(f"{path}.procMount", "allowed: Default")
        if added := capabilities.get("add"):
            why = f"found {shown(added)}; {service} can't add any"
            yield FieldProblem(f"{path}.capabilities.add", why)
        if capabilities.get("drop"):
            why = f"not enforced: {service}'s own set applies"
            yield FieldNote(f"{path}.capabilities.drop", why)

    def _by_table(
        self, fields: Json, path: str, refused: Mapping[str, str], noted: Mapping[str, str]
    ) -> Iterator[Finding]:
        return by_table(fields, path, self._table(refused), self._table(noted))

    def _table(self, usual: Mapping[str, str]) -> Mapping[str, str]:
        return {key: self._why(key, why) for key, why in usual.items()}

    def _why(self, key: str, usual: str) -> str:
        return self.words.get(key) or self._said(usual)

    def _said(self, words: str) -> str:
        return words.format(service=self.service, an_instance=self.an_instance)
