"""The downward API: fields and resources of the pod itself, for variables and files.

Fed by :mod:`.environment` and :mod:`.volumes`; notes in the :class:`.lookup.Lookup` what is known
only once the pod runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from vk_provider import quantities
from vk_provider.pods.lookup import Lookup
from vk_provider.pods.reading import mapping, mappings, strings, text
from vk_provider.pods.types import Json

_SUBSCRIPT = re.compile(r"""metadata\.(labels|annotations)\[(['"])(.*)\2\]""", re.DOTALL)
_DEFAULTED = ("cpu", "memory", "ephemeral-storage")
_RESOURCES = (
    "allowed are limits. and requests. of cpu, memory, ephemeral-storage and hugepages-<size>"
)
_SHORT_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


@dataclass(frozen=True, slots=True)
class PodFields:
    """Answers ``fieldRef`` and ``resourceFieldRef`` for one pod on our node.

    ``allocatable`` is what a limit that isn't set falls back to, as with a kubelet.
    """

    pod: Json
    node_name: str
    host_ip: str | None
    allocatable: Mapping[str, str]
    lookup: Lookup

    def read(self, source: Json, path: str, container: Json) -> str | None:
        """The value of a ``fieldRef`` or ``resourceFieldRef`` in ``source``; ``path`` is where
        ``source`` stands. None after noting why there is none."""
        if "fieldRef" in source:
            return self._field(mapping(source, "fieldRef"), f"{path}.fieldRef")
        if "resourceFieldRef" in source:
            reference = mapping(source, "resourceFieldRef")
            return self._resource(reference, f"{path}.resourceFieldRef", container)
        found = ", ".join(sorted(source)) or "nothing"
        allowed = "configMapKeyRef, secretKeyRef, fieldRef and resourceFieldRef"
        self.lookup.refuse(path, f"found {found}; only {allowed} can be resolved")
        return None

    def _field(self, reference: Json, path: str) -> str | None:
        field_path = text(reference, "fieldPath")
        if subscript := _SUBSCRIPT.fullmatch(field_path):
            kind, key = subscript.group(1), subscript.group(3)
            return strings(mapping(self.pod, "metadata"), kind).get(key, "")
        value = self._known_fields().get(field_path)
        if value is None:
            self.lookup.refuse(f"{path}.fieldPath", f"{field_path or 'nothing'} {_why(field_path)}")
        return value

    def _known_fields(self) -> Mapping[str, str | None]:
        metadata, spec = mapping(self.pod, "metadata"), mapping(self.pod, "spec")
        return {
            "metadata.name": text(metadata, "name"),
            "metadata.namespace": text(metadata, "namespace"),
            "metadata.uid": text(metadata, "uid"),
            "metadata.labels": format_map(strings(metadata, "labels")),
            "metadata.annotations": format_map(strings(metadata, "annotations")),
            "spec.nodeName": self.node_name,
            "spec.serviceAccountName": text(spec, "serviceAccountName") or "default",
            "status.hostIP": self.host_ip,
            "status.hostIPs": self.host_ip,
        }

    def _resource(self, reference: Json, path: str, container: Json) -> str | None:
        if name := text(reference, "containerName"):
            container = self._container(name)
        kind, _, resource = text(reference, "resource").partition(".")
        if kind not in ("limits", "requests") or not _is_exposed(resource):
            found = text(reference, "resource") or "nothing"
            self.lookup.refuse(f"{path}.resource", f"found {found}; {_RESOURCES}")
            return None
        divisor = _quantity(reference.get("divisor")) or Fraction(1)
        return str(math.ceil(self._amount(kind, resource, container) / divisor))

    def _amount(self, kind: str, resource: str, container: Json) -> Fraction:
        resources = mapping(mapping(self.pod, "spec"), "resources")
        found = [mapping(mapping(container, "resources"), kind).get(resource)]
        if kind == "limits" and resource in _DEFAULTED:
            found += [mapping(resources, "limits").get(resource), self.allocatable.get(resource)]
        # A limit of zero is no limit.
        return next((amount for each in found if (amount := _quantity(each))), Fraction(0))

    def _container(self, name: str) -> Json:
        spec = mapping(self.pod, "spec")
        for field in ("containers", "initContainers"):
            for _, container in mappings(spec, field):
                if text(container, "name") == name:
                    return container
        return {}


def format_map(values: Mapping[str, str]) -> str:
    """Labels or annotations as lines of ``key="value"``, sorted, quoted as Go quotes."""
    return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))


def _quoted(value: str) -> str:
    return '"' + "".join(_escaped(character) for character in value) + '"'


def _escaped(character: str) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _why(field_path: str) -> str:
    if field_path.startswith("status."):
        return "is not known before the pod runs"
    return "is no field of the downward API"


def _is_exposed(resource: str) -> bool:
    return resource in _DEFAULTED or resource.startswith("hugepages-")


def _quantity(value: Any) -> Fraction | None:
    try:
        return None if value is None else quantities.parse(value)
    except ValueError:
        return None
