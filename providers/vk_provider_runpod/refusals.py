"""What a Kubernetes pod may ask for that RunPod can't give: refused, or accepted with a note.

Pure. Beside the rules of ``one_container`` stand here those that are RunPod's alone.
Fed by ``translate``; feeds ``UnsupportedFieldsError`` and ``explain``.
"""

from __future__ import annotations

from collections.abc import Iterator

from vk_provider.faults import FieldProblem
from vk_provider.pods.field_findings import Finding, by_table
from vk_provider.pods.known_fields import unknown_fields
from vk_provider.pods.one_container import OneContainer
from vk_provider.pods.reading import mapping, text
from vk_provider.pods.types import FieldNote, Json, ResolvedContainer, ResolvedPod

_RUNPOD = OneContainer(
    "RunPod", words={"restartPolicyRules": "RunPod exposes no exit codes to base rules on"}
)
_REFUSED = {"workingDir": "RunPod can't set it; set WORKDIR in the image or use a shell in command"}
_COUNTED = ("cpu", "memory", "ephemeral-storage")
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")


def findings(pod: ResolvedPod) -> tuple[Finding, ...]:
    """Everything in the pod but its ports that is refused or noted, in the order of the fields."""
    return (
        *_RUNPOD.of_pod(pod),
        *_container(pod, pod.containers[0]),
        *pod.unresolvable,
        *unknown_fields(mapping(pod.pod, "spec")),
    )


def ports(pod: ResolvedPod) -> Iterator[FieldProblem]:
    """Every port that RunPod can't publish."""
    return _RUNPOD.of_ports(pod.containers[0])


def _container(pod: ResolvedPod, container: ResolvedContainer) -> Iterator[Finding]:
    spec, path = container.spec, container.field_path
    yield from by_table(spec, path, _REFUSED, {})
    yield from _RUNPOD.of_container(container)
    yield from _resources(pod, mapping(spec, "resources"), f"{path}.resources")
    if text(spec, "imagePullPolicy") == "Always":
        yield FieldNote(
            f"{path}.imagePullPolicy",
            "RunPod's hosts may hold an older image of the same tag; pin a digest or a version",
        )


def _resources(pod: ResolvedPod, resources: Json, path: str) -> Iterator[Finding]:
    wanted = {**mapping(resources, "requests"), **mapping(resources, "limits")}
    for name in wanted:
        if name not in (*_COUNTED, *_GPUS):
            place = "limits" if name in mapping(resources, "limits") else "requests"
            allowed = ", ".join((*_COUNTED, *_GPUS))
            yield FieldProblem(f"{path}.{place}[{name}]", f"RunPod rents none; allowed: {allowed}")
    if pod.gpu_count and any(name in wanted for name in ("cpu", "memory")):
        yield FieldNote(path, "cpu and memory come with the GPU type and can't be asked for")
