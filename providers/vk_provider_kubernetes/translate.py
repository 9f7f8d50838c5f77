"""One pod as a pod of another cluster, and the objects that go along with it.

An allow-list: what the table in :mod:`.rules` sends goes along, what it names otherwise is dealt
with here and in :mod:`.environment` and :mod:`.volumes`, and what it does not know is refused.
A pod that refers to ConfigMaps or Secrets is created behind a scheduling gate: the copies can name
it as their owner, so that nothing of them is ever left behind, and the gate is opened once they
are there.
Pure. Fed by the core with a ResolvedPod; feeds ``provider`` and ``explain``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from vk_provider.faults import FieldProblem, UnsupportedFieldsError
from vk_provider.pods.reading import mapping, mappings, number, strings, text
from vk_provider.pods.references import SECRET
from vk_provider.pods.types import FieldNote, Json, ResolvedPod
from vk_provider_kubernetes import environment, volumes
from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes.config import KubernetesConfig
from vk_provider_kubernetes.containers import Containers
from vk_provider_kubernetes.copies import Copies, Copy
from vk_provider_kubernetes.resolver import asks_cluster, resolver
from vk_provider_kubernetes.rules import HOME_SERVICES, HOST_ACCESS, TOKENS
from vk_provider_kubernetes.updates import GATE as GATE
from vk_provider_kubernetes.updates import fingerprint
from vk_provider_kubernetes.walk import Findings, sent

MAX_HOSTNAME = 63
_OURS = ("vk-provider.dev/", "virtual-kubelet.io/")
_NOT_SENT = (*_OURS, "kubectl.kubernetes.io/", "kubernetes.io/config.", "kubernetes.io/psp")
_NODE_LIFE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@dataclass(frozen=True, slots=True)
class Translation:
    """What is created in the other cluster: the pod, and the copies it refers to.

    ``emptied`` are copies that may be there from before, and whose object is gone. ``debuggers``
    are added once the pod is there; what is wrong with them stands in ``refusals``.
    """

    namespace: str
    body: Json
    copies: tuple[Copy, ...] = ()
    emptied: tuple[Copy, ...] = ()
    notes: tuple[FieldNote, ...] = ()
    debuggers: tuple[Json, ...] = ()
    refusals: tuple[FieldProblem, ...] = ()


def translate(pod: ResolvedPod, config: KubernetesConfig) -> Translation:
    """Everything to be created. Raises ``UnsupportedFieldsError`` with every field at once."""
    switches = {
        HOST_ACCESS: config.host_access,
        TOKENS: config.tokens,
        HOME_SERVICES: config.home_services,
    }
    findings = Findings(frozenset(name for name, is_on in switches.items() if is_on))
    copies = Copies(pod.stamp, pod.objects, pod.tokens)
    spec = mapping(pod.pod, "spec")
    _want_all(pod, spec, copies, config)
    remote = _spec(pod, spec, config, copies, findings)
    if findings.problems:
        raise UnsupportedFieldsError(tuple(findings.problems))
    debugging = _debugging(pod, config, findings.switches)
    made = tuple({copy.name: copy for copy in (*copies.all(), *debugging.copies)}.values())
    gates = {"schedulingGates": [{"name": GATE}]} if made else {}
    namespace = config.namespace_of(pod.stamp.namespace)
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(pod, namespace, config.backend, fingerprint(remote)),
        "spec": {**remote, **gates},
    }
    return replace(
        debugging,
        body=body,
        copies=made,
        emptied=copies.emptied(),
        notes=tuple(findings.notes),
    )


def _debugging(pod: ResolvedPod, config: KubernetesConfig, switches: frozenset[str]) -> Translation:
    """The ephemeral containers, with copies of their own: the names of the pod's depend on what it
    refers to itself."""
    copies, findings = Copies(pod.stamp, pod.objects, pod.tokens), Findings(switches)
    for container in pod.ephemeral_containers:
        environment.want(container.spec, copies)
    containers = Containers(pod, config, copies, findings)
    made = containers.translated(pod.ephemeral_containers, "EphemeralContainer")
    refusals = tuple(findings.problems)
    namespace = config.namespace_of(pod.stamp.namespace)
    debuggers = () if refusals else tuple(made)
    return Translation(namespace, {}, copies.all(), debuggers=debuggers, refusals=refusals)


def metadata(pod: ResolvedPod, namespace: str, backend: str, changeable: str) -> dict[str, Any]:
    """The remote pod's name and marks; the user's own labels and annotations go along."""
    own = mapping(pod.pod, "metadata")
    theirs = _theirs(own, "labels")
    maker = {marks.BACKEND: marks.label_value(backend)} if backend else {}
    remembered = {marks.SPEC: changeable, marks.LABELS: " ".join(sorted(theirs))}
    if generation := number(own, "generation"):
        remembered[marks.GENERATION] = str(generation)
    return {
        "name": marks.instance_name(pod.stamp),
        "namespace": namespace,
        "labels": {**theirs, **marks.labels(pod.stamp), **maker},
        "annotations": {**_theirs(own, "annotations"), **remembered, **marks.full(pod.stamp)},
    }


def _theirs(own: Json, field: str) -> dict[str, str]:
    return {k: v for k, v in strings(own, field).items() if not k.startswith(_NOT_SENT)}


def _want_all(pod: ResolvedPod, spec: Json, copies: Copies, config: KubernetesConfig) -> None:
    for container in (*pod.init_containers, *pod.containers):
        environment.want(container.spec, copies)
    volumes.want(spec, copies, tokens=config.tokens)
    for _, secret in mappings(spec, "imagePullSecrets"):
        copies.want(SECRET, text(secret, "name"))


def _spec(
    pod: ResolvedPod, spec: Json, config: KubernetesConfig, copies: Copies, findings: Findings
) -> dict[str, Any]:
    found = sent(spec, "PodSpec", "spec", findings)
    containers = Containers(pod, config, copies, findings)
    parts: dict[str, Any] = {
        "initContainers": containers.translated(pod.init_containers),
        "containers": containers.translated(pod.containers),
        "volumes": volumes.Volumes(pod, config, copies, findings).translated(),
        "imagePullSecrets": list(_pull_secrets(spec, copies)),
        "tolerations": [*_tolerations(spec, findings), *map(dict, config.tolerations)],
        "nodeSelector": dict(config.node_selector),
        "serviceAccountName": config.service_account_name,
        "priorityClassName": config.priority_class_name,
        "schedulerName": config.scheduler_name,
    }
    found |= {name: value for name, value in parts.items() if value}
    found |= {"automountServiceAccountToken": False, "enableServiceLinks": False}
    if config.home_dns is not None and asks_cluster(spec):
        found |= resolver(spec, pod.stamp.namespace, config.home_dns)
    if not spec.get("hostNetwork"):
        found["hostname"] = _hostname(pod, spec)
    return found


def _hostname(pod: ResolvedPod, spec: Json) -> str:
    """What ``hostname`` prints at home: the name that was set, or the pod's, cut as a kubelet."""
    return text(spec, "hostname") or pod.stamp.pod_name[:MAX_HOSTNAME].rstrip("-.")


def _pull_secrets(spec: Json, copies: Copies) -> Iterator[dict[str, str]]:
    for _, secret in mappings(spec, "imagePullSecrets"):
        yield {"name": copies.name_of(SECRET, text(secret, "name"))}


def _tolerations(spec: Json, findings: Findings) -> Iterator[dict[str, Any]]:
    """Without those that speak of the virtual node, and those that every admission adds."""
    for index, each in mappings(spec, "tolerations"):
        key = text(each, "key")
        if not key.startswith(_OURS) and key not in _NODE_LIFE:
            yield sent(each, "Toleration", f"spec.tolerations[{index}]", findings)
