"""The fields of a pod that Modal can't honour, and those it honours in its own way.

Pure. What stands nowhere here or in ``one_container`` is translated elsewhere or means nothing to a
node. Fed by ``translate``; every finding is a refusal by field path or a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from vk_provider.faults import FieldProblem
from vk_provider.pods.field_findings import Finding
from vk_provider.pods.known_fields import unknown_fields
from vk_provider.pods.one_container import OneContainer
from vk_provider.pods.reading import mapping, text
from vk_provider.pods.types import FieldNote, Json, ResolvedContainer, ResolvedPod

_NO_INPUT = "Modal's sandboxes are given no standard input; kubectl exec -i has one"
_ISOLATION = "gVisor's own isolation applies"
_MODAL = OneContainer(
    "Modal",
    "a sandbox",
    words={
        "runtimeClassName": "Modal chooses the runtime (gVisor), with GPU support",
        "seLinuxOptions": "Modal's sandboxes have no SELinux",
        "seccompProfile": _ISOLATION,
        "appArmorProfile": _ISOLATION,
        "readOnlyRootFilesystem": "not enforced: the sandbox's disk stays writable",
        "stdin": _NO_INPUT,
        "stdinOnce": _NO_INPUT,
        "tty": "a sandbox's own process gets no terminal; kubectl exec -t does",
    },
)
_COUNTED = ("cpu", "memory", "ephemeral-storage")
_GPU = "nvidia.com/gpu"


def findings(pod: ResolvedPod) -> tuple[Finding, ...]:
    """Everything in the pod that is refused or noted, in the order of the fields."""
    return (
        *_MODAL.of_pod(pod),
        *_container(pod.containers[0]),
        *pod.unresolvable,
        *unknown_fields(mapping(pod.pod, "spec")),
    )


def _container(container: ResolvedContainer) -> Iterator[Finding]:
    spec, path = container.spec, container.field_path
    yield from _MODAL.of_container(container)
    yield from _resources(mapping(spec, "resources"), f"{path}.resources")
    yield from _MODAL.of_ports(container)
    if spec.get("workingDir") and not text(spec, "workingDir").startswith("/"):
        found = f'found "{text(spec, "workingDir")}", allowed: an absolute path'
        yield FieldProblem(f"{path}.workingDir", found)


def _resources(resources: Json, path: str) -> Iterator[Finding]:
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
