"""Manifests become pods as a node would meet them: found in any template, with defaults. Pure.

Fed by the documents of ``explain -f``; feeds :mod:`.explain`. Whatever holds a pod
template counts, known kind or not, so that a custom resource is explained like a Deployment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.offline.pod_defaults import with_defaults
from vk_provider.offline.schema import shape_problems
from vk_provider.offline.validity import value_problems
from vk_provider.pods.references import CONFIG_MAP, SECRET, ObjectKey
from vk_provider.pods.types import Json
from vk_provider.yaml_documents import Complaint, Document

_DEEPEST_TEMPLATE = 8
_DEFAULT_PROGRESS_DEADLINE = 600
_BUILT_IN = frozenset({
    "CronJob", "DaemonSet", "Deployment", "Job", "Pod", "PodTemplate", "ReplicaSet",
    "ReplicationController", "StatefulSet",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Workload:
    """One pod or pod template. ``pod`` has the API server's defaults; ``template_path`` is where
    its metadata and spec stand in the document (empty for a Pod)."""

    kind: str
    namespace: str
    name: str
    pod: Json = field(repr=False)
    document: Document = field(repr=False)
    line: int = 1
    template_path: str = ""
    is_one_of_many: bool = False
    progress_deadline: int | None = None
    """A Deployment's ``progressDeadlineSeconds``, with the API server's default."""

    def __str__(self) -> str:
        place = f" ({self.template_path})" if self.is_one_of_many else ""
        return f"{self.kind} {self.namespace}/{self.name}{place}"

    @property
    def is_bare(self) -> bool:
        """Whether nothing will recreate it."""
        return self.kind == "Pod" and not self.pod["metadata"].get("ownerReferences")

    def in_document(self, path: str) -> str:
        """A pod's field path as it reads in the document."""
        return f"{self.template_path}.{path}" if self.template_path else path


@dataclass(frozen=True, slots=True)
class Manifests:
    """Everything that ``-f`` supplied. ``ignored`` names the objects that play no part."""

    workloads: tuple[Workload, ...]
    objects: Mapping[ObjectKey, Json]
    ignored: tuple[str, ...] = ()


def read_manifests(documents: Sequence[Document], complaints: list[Complaint]) -> Manifests:
    """Sort documents into workloads, ConfigMaps and Secrets, and the rest."""
    workloads: list[Workload] = []
    objects: dict[ObjectKey, Json] = {}
    ignored: list[str] = []
    for document, value, path in _objects(documents, complaints):
        kind, metadata = str(value.get("kind") or ""), _mapping(value, "metadata")
        name = str(metadata.get("name") or metadata.get("generateName") or "")
        namespace = str(metadata.get("namespace") or "default")
        if not kind:
            _complain(complaints, document, path, "kind: missing, must be given")
        elif kind in (CONFIG_MAP, SECRET):
            objects[ObjectKey(kind, namespace, name)] = value
        else:
            found = list(_workloads(document, value, path, complaints))
            workloads += found
            if kind == "Pod" and not found:
                _complain(complaints, document, path, "spec.containers: missing, must be given")
            elif not found:
                ignored.append(f"{kind} {name}".strip())
    return Manifests(tuple(workloads), objects, tuple(ignored))


def _objects(
    documents: Sequence[Document], complaints: list[Complaint]
) -> Iterator[tuple[Document, Mapping[str, Any], str]]:
    """Each object of each document with its path in there; lists are opened."""
    for document in documents:
        value = document.value
        if not isinstance(value, Mapping):
            _complain(complaints, document, "", "not a Kubernetes object, a mapping is needed")
        elif str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
            for index, item in enumerate(value["items"]):
                if isinstance(item, Mapping):
                    # The items of a typed list need not repeat its type.
                    kind = str(value["kind"]).removesuffix("List")
                    yield document, {**({"kind": kind} if kind else {}), **item}, f"items[{index}]"
        else:
            yield document, value, ""


def _workloads(
    document: Document, value: Mapping[str, Any], path: str, complaints: list[Complaint]
) -> Iterator[Workload]:
    kind, metadata = str(value["kind"]), _mapping(value, "metadata")
    name = str(metadata.get("name") or metadata.get("generateName") or "unnamed")
    namespace = str(metadata.get("namespace") or "default")
    templates = list(_templates(value, path))
    line = document.line_of(path)
    for template, template_path in templates:
        for problem in _refused(kind, template):
            _complain(complaints, document, template_path, str(problem))
        pod = with_defaults(template, namespace, name, kind)
        many = len(templates) > 1
        deadline = _progress_deadline(kind, value)
        yield Workload(kind, namespace, name, pod, document, line, template_path, many, deadline)


def _progress_deadline(kind: str, value: Mapping[str, Any]) -> int | None:
    if kind != "Deployment":
        return None
    given = _mapping(value, "spec").get("progressDeadlineSeconds")
    return given if isinstance(given, int) else _DEFAULT_PROGRESS_DEADLINE


def _refused(kind: str, template: Json) -> tuple[FieldProblem, ...]:
    """What an API server would say; a custom resource's template may have fields of its own."""
    shape = shape_problems(template) if kind in _BUILT_IN else ()
    known = {problem.path for problem in shape}
    values = (each for each in value_problems(template) if each.path not in known)
    return (*shape, *values)


def _templates(value: Mapping[str, Any], path: str, depth: int = 0) -> Iterator[tuple[Json, str]]:
    """Every mapping that looks like a pod: its spec has containers."""
    if isinstance(_mapping(value, "spec").get("containers"), list):
        yield value, path
    elif depth < _DEEPEST_TEMPLATE:
        for key, below in value.items():
            below_path = f"{path}.{key}" if path else str(key)
            if isinstance(below, Mapping):
                yield from _templates(below, below_path, depth + 1)
            elif isinstance(below, list):
                for index, item in enumerate(below):
                    if isinstance(item, Mapping):
                        yield from _templates(item, f"{below_path}[{index}]", depth + 1)


def _mapping(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, Mapping) else {}


def _complain(complaints: list[Complaint], document: Document, path: str, message: str) -> None:
    full = f"{path}.{message}" if path else message
    line = document.line_of(full.partition(": ")[0])
    complaints.append(Complaint(document.file, line, full))
