"""A container's variables: references to copies stay references, home's own facts become text.

A Secret's value never stands in the remote pod's spec. ``$(VAR)`` is expanded by the other
cluster's kubelet, from the same variables.
Pure. Fed by :mod:`.translate` per container.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.references import CONFIG_MAP, SECRET
from vk_provider.pods.types import Json, ResolvedContainer
from vk_provider_kubernetes.copies import Copies
from vk_provider_kubernetes.downward import is_remote
from vk_provider_kubernetes.rules import HOME_SERVICES
from vk_provider_kubernetes.walk import Findings, sent

_KEY_REFERENCES = {
    "configMapKeyRef": (CONFIG_MAP, "ConfigMapKeySelector"),
    "secretKeyRef": (SECRET, "SecretKeySelector"),
}
_WHOLE_REFERENCES = {
    "configMapRef": (CONFIG_MAP, "ConfigMapEnvSource"),
    "secretRef": (SECRET, "SecretEnvSource"),
}


def want(container: Json, copies: Copies) -> None:
    """Note every object that the container's variables come from."""
    for _, source in mappings(container, "envFrom"):
        for field, (kind, _) in _WHOLE_REFERENCES.items():
            if field in source:
                copies.want(kind, text(mapping(source, field), "name"))
    for _, variable in mappings(container, "env"):
        origin = mapping(variable, "valueFrom")
        for field, (kind, _) in _KEY_REFERENCES.items():
            if field in origin:
                reference = mapping(origin, field)
                copies.want(kind, text(reference, "name"), [text(reference, "key")])


def environment(
    container: ResolvedContainer, copies: Copies, findings: Findings
) -> dict[str, list[dict[str, Any]]]:
    """``env`` and ``envFrom`` of the remote container, where there are any."""
    path, spec = container.field_path, container.spec
    imports = [
        _import(source, f"{path}.envFrom[{index}]", copies, findings)
        for index, source in mappings(spec, "envFrom")
    ]
    variables = [
        _variable(container, variable, f"{path}.env[{index}]", copies, findings)
        for index, variable in mappings(spec, "env")
    ]
    if HOME_SERVICES in findings.switches:
        variables = [*_announced(container, variables), *variables]
    return {name: found for name, found in (("envFrom", imports), ("env", variables)) if found}


def _announced(
    container: ResolvedContainer, variables: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Home's Services, first: other variables may refer to them, and what the pod sets stands."""
    own = {variable["name"] for variable in variables}
    for name, value in container.service_env.items():
        if name not in own:
            yield {"name": name, "value": value}


def _import(source: Json, path: str, copies: Copies, findings: Findings) -> dict[str, Any]:
    found = sent(source, "EnvFromSource", path, findings)
    return {**found, **dict(_references(source, _WHOLE_REFERENCES, path, copies, findings))}


def _variable(
    container: ResolvedContainer, variable: Json, path: str, copies: Copies, findings: Findings
) -> dict[str, Any]:
    found = sent(variable, "EnvVar", path, findings)
    origin = mapping(variable, "valueFrom")
    if not origin:
        return found
    field_path, name = text(mapping(origin, "fieldRef"), "fieldPath"), text(variable, "name")
    if field_path and not is_remote(field_path, findings.switches) and name in container.env:
        # The kubelet would expand what looks like a variable in it.
        return {**found, "value": container.env[name].replace("$", "$$")}
    where = f"{path}.valueFrom"
    value = sent(origin, "EnvVarSource", where, findings)
    value |= dict(_references(origin, _KEY_REFERENCES, where, copies, findings))
    if "fieldRef" in origin:
        value["fieldRef"] = sent(
            mapping(origin, "fieldRef"), "ObjectFieldSelector", f"{where}.fieldRef", findings
        )
    return {**found, "valueFrom": value}


def _references(
    source: Json,
    known: dict[str, tuple[str, str]],
    path: str,
    copies: Copies,
    findings: Findings,
) -> Iterator[tuple[str, dict[str, Any]]]:
    for field, (kind, type_name) in known.items():
        if field in source:
            reference = mapping(source, field)
            renamed = {"name": copies.name_of(kind, text(reference, "name"))}
            yield field, sent(reference, type_name, f"{path}.{field}", findings) | renamed
