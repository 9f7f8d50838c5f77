"""A container's final environment: services, then ``envFrom``, then ``env``, later ones winning.

Fed by :mod:`.resolve`; looks objects up in a :class:`.lookup.Lookup`, pod fields in
:mod:`.downward`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass

from vk_provider.pods.downward import PodFields
from vk_provider.pods.expansion import Expander
from vk_provider.pods.lookup import Lookup, Reference
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.references import CONFIG_MAP, SECRET
from vk_provider.pods.types import Json

_FROM = (("configMapRef", CONFIG_MAP), ("secretRef", SECRET))
_KEY_FROM = (("configMapKeyRef", CONFIG_MAP), ("secretKeyRef", SECRET))


@dataclass(frozen=True, slots=True)
class Environment:
    """What all containers of a pod share while their variables are made."""

    lookup: Lookup
    fields: PodFields
    services: dict[str, str]

    def of(self, container: Json, path: str, expander: Expander | None = None) -> dict[str, str]:
        """The variables of ``container``, which stands at ``path`` in the pod."""
        expander = expander or Expander(self.lookup)
        own = self._all_of(container, path)
        known = ChainMap(own, self.services)
        for index, variable in mappings(container, "env"):
            where = f"{path}.env[{index}]"
            literal = text(variable, "value")
            if literal or not mapping(variable, "valueFrom"):
                # Only earlier variables are known here: that is the rule, not an accident.
                value = expander.expand(literal, known, f"{where}.value")
            else:
                value = self._value(mapping(variable, "valueFrom"), where, container)
            if value is not None:
                own[text(variable, "name")] = value
        return {**self.services, **own}

    def _all_of(self, container: Json, path: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for index, source in mappings(container, "envFrom"):
            for field, kind in _FROM:
                if field in source:
                    where = f"{path}.envFrom[{index}].{field}"
                    reference = Reference.read(kind, mapping(source, field), where)
                    values = self._all_values(reference)
                    found |= {text(source, "prefix") + key: value for key, value in values}
        return found

    def _all_values(self, reference: Reference) -> Iterator[tuple[str, str]]:
        entries = self.lookup.entries(reference)
        if entries is None:
            return
        entries = entries.without_binary()
        for key in entries.names():
            if (value := self.lookup.value(entries, key)) is not None:
                yield key, value

    def _value(self, origin: Json, path: str, container: Json) -> str | None:
        where = f"{path}.valueFrom"
        for field, kind in _KEY_FROM:
            if field in origin:
                source = mapping(origin, field)
                reference = Reference.read(kind, source, f"{where}.{field}")
                entries = self.lookup.entries(reference)
                key = text(source, "key")
                return self.lookup.value(entries.without_binary(), key) if entries else None
        return self.fields.read(origin, where, container)
