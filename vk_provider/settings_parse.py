"""One ``VirtualNode`` document, checked field by field, becomes :class:`NodeSettings`. Pure.

Fed by :mod:`vk_provider.settings_file` (parsed YAML); feeds the app. Nothing raises here: problems
are collected, and the settings made beside them are safe to look at but not to run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vk_provider.doubts import GPU_RESOURCES, either, misspelt_device, resembling
from vk_provider.faults import FieldProblem
from vk_provider.fields import Fields, join_path, show
from vk_provider.quantities import parse
from vk_provider.settings import PROVIDER_TAINT, BackendSettings, NodeSettings
from vk_provider.settings_blocks import (
    parse_admission,
    parse_bursting,
    parse_door,
    parse_leader_election,
    parse_placement,
    parse_reach,
    parse_server,
    parse_storm,
)
from vk_provider.syntax import (
    DNS_LABEL,
    DNS_LABEL_WORDS,
    DNS_SUBDOMAIN,
    LABEL_VALUE,
    QUALIFIED_NAME,
)
from vk_provider.taints import EFFECTS, Taint

API_VERSION = "vk-provider.dev/v1alpha1"
KIND = "VirtualNode"

# The name is also the value of the label kubernetes.io/hostname, which has room for 63.
_NODE_NAME = rf"(?=.{{1,63}}$){DNS_SUBDOMAIN}"
_OWN_TAINTS = ("vk-provider.dev/unavailable", "vk-provider.dev/gate")
_NEEDED_RESOURCES = ("cpu", "memory", "pods")
_PLAIN_RESOURCES = (*_NEEDED_RESOURCES, "ephemeral-storage")
_PLAIN_PREFIXES = ("hugepages-", "attachable-volumes-")


def parse_node(
    document: Mapping[str, Any], problems: list[FieldProblem], source: str = ""
) -> NodeSettings:
    """The settings of one document whose apiVersion and kind are known to be ours."""
    top = Fields(document, "", problems)
    top.text("apiVersion", choices=(API_VERSION,))
    top.text("kind", choices=(KIND,))
    metadata = top.child("metadata")
    words = f"{DNS_LABEL_WORDS}, in parts joined by dots"
    name = metadata.text("name", pattern=_NODE_NAME, allowed=words)
    metadata.done()
    spec = top.child("spec")
    top.done()
    node = NodeSettings(
        name=name,
        capacity=_capacity(spec),
        labels=_labels(spec, name),
        taints=_taints(spec),
        backends=_backends(spec),
        placement=parse_placement(spec.child("placement")),
        server=parse_server(spec.child("server")),
        leader_election=parse_leader_election(spec.child("leaderElection"), name),
        storm=parse_storm(spec.child("storm")),
        door=parse_door(spec.child("door")),
        bursting=parse_bursting(spec.child("bursting")),
        cluster_id=spec.optional_text("clusterId", pattern=LABEL_VALUE, allowed="a label's value"),
        tick_seconds=spec.number("tickSeconds", 10.0, 0.05, 3600),
        reach=parse_reach(spec),
        admission_enabled=parse_admission(spec.child("admission")),
        namespaces=_namespaces(spec),
        pending_deadline_seconds=spec.number("pendingDeadlineSeconds", 1800.0, 0),
        confirm_deadline_seconds=spec.number("confirmDeadlineSeconds", 300.0, 0),
        fail_after_backend_lost_seconds=spec.number("failAfterBackendLostSeconds", None, 1),
        start_deadline_seconds=spec.number("startDeadlineSeconds", None, 1),
        source=source,
    )
    spec.done()
    return node


def _capacity(spec: Fields) -> Mapping[str, str]:
    capacity = spec.mapping("capacity", numbers=True)
    for resource in _NEEDED_RESOURCES:
        if resource not in capacity:
            message = 'missing, must be given; allowed: a quantity such as "64"'
            spec.problems.append(FieldProblem(f"{spec.at('capacity')}.{resource}", message))
    for resource, text in capacity.items():
        path = join_path(spec.at("capacity"), resource)
        if (wrong := _quantity_problem(resource, text)) is not None:
            spec.problems.append(FieldProblem(path, f"found {show(text)}, allowed: {wrong}"))
        if (wrong := _resource_problem(resource)) is not None:
            spec.problems.append(FieldProblem(path, wrong))
        elif (doubt := misspelt_device(path, resource)) is not None:
            spec.problems.append(doubt)
    return capacity


def _resource_problem(resource: str) -> str | None:
    """Why no pod could ever ask for it, or None. A device's name has its maker's domain."""
    if resource in _PLAIN_RESOURCES or resource.startswith(_PLAIN_PREFIXES):
        return None
    if "/" in resource and re.fullmatch(QUALIFIED_NAME, resource):
        return None
    meant = resembling(resource, (*_PLAIN_RESOURCES, *GPU_RESOURCES))
    hint = f"did you mean {either(meant)}?" if meant else "valid: DOMAIN/NAME for a device"
    return f"not a resource that a pod can ask for; {hint}"


def _quantity_problem(resource: str, text: str) -> str | None:
    """What a quantity should be, or None if it is."""
    try:
        amount = parse(text)
    except ValueError:
        return 'a Kubernetes quantity such as "128", "500m" or "64Gi"'
    if amount < 0 or (amount == 0 and resource in _NEEDED_RESOURCES):
        return "more than 0"
    whole = resource == "pods" or "/" in resource
    return "a whole number" if whole and amount.denominator != 1 else None


def _labels(spec: Fields, name: str) -> Mapping[str, str]:
    labels = spec.mapping("labels")
    fixed = {"type": "virtual-kubelet", "kubernetes.io/hostname": name}
    for key, value in labels.items():
        path = join_path(spec.at("labels"), key)
        if not re.fullmatch(QUALIFIED_NAME, key):
            spec.problems.append(FieldProblem(path, "not a label's key: allowed: [PREFIX/]NAME"))
        elif fixed.get(key, value) != value:
            message = f'found {show(value)}, allowed: "{fixed[key]}" (it identifies the node)'
            spec.problems.append(FieldProblem(path, message))
        elif not re.fullmatch(LABEL_VALUE, value):
            message = f"found {show(value)}, allowed: at most 63 letters, digits, -, _ and ."
            spec.problems.append(FieldProblem(path, message))
    return labels


def _taints(spec: Fields) -> tuple[Taint, ...]:
    # An empty list removes our taint, so it is not the same as no list.
    if not spec.has("taints"):
        spec.take("taints")
        return (PROVIDER_TAINT,)
    taints = []
    for entry in spec.children("taints"):
        key = entry.text("key", pattern=QUALIFIED_NAME, allowed="[PREFIX/]NAME")
        value = entry.text("value", "", pattern=LABEL_VALUE, allowed="a label's value")
        effect = entry.text("effect", choices=EFFECTS)
        entry.done()
        if key in _OWN_TAINTS:
            entry.refuse("key", f'"{key}" is set and removed by the node itself')
        taints.append(Taint(key, value, effect))
    return tuple(taints)


def _backends(spec: Fields) -> tuple[BackendSettings, ...]:
    backends: list[BackendSettings] = []
    for entry in spec.children("backends"):
        name = entry.text("name", pattern=DNS_LABEL, allowed=DNS_LABEL_WORDS)
        if name and name in (earlier.name for earlier in backends):
            entry.refuse("name", f'"{name}" is the name of an earlier backend too')
        config = entry.child("config")
        backends.append(BackendSettings(name, entry.text("provider"), config.raw(), entry.path))
        entry.done()
    if not backends and not spec.take("backends"):
        spec.refuse("backends", "missing, must be given; allowed: a list of at least one backend")
    return tuple(backends)


def _namespaces(spec: Fields) -> tuple[str, ...]:
    namespaces = spec.texts("namespaces")
    for index, namespace in enumerate(namespaces):
        if not re.fullmatch(DNS_LABEL, namespace):
            spec.wrong(f"namespaces[{index}]", namespace, DNS_LABEL_WORDS)
    return namespaces
