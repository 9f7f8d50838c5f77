"""Finding what a pod refers to, and remembering everything that could not be found.

All misses of a pod are collected before anything is decided, so that a person sees them at once.
Fed by :mod:`.environment`, :mod:`.downward` and :mod:`.volumes`; feeds :mod:`.resolve`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field

from vk_provider.faults import FieldProblem
from vk_provider.pods.reading import strings, text
from vk_provider.pods.references import SECRET, ObjectKey
from vk_provider.pods.types import Json


@dataclass(frozen=True, slots=True)
class Reference:
    """One place in a pod that names an object: which one, where, and whether it must exist."""

    kind: str
    name: str
    path: str
    optional: bool = False

    @classmethod
    def read(cls, kind: str, source: Json, path: str, name_field: str = "name") -> Reference:
        """The reference written in ``source`` (a ``configMapKeyRef``, a Secret volume, ...)."""
        return cls(kind, text(source, name_field), path, source.get("optional") is True)


@dataclass(frozen=True, slots=True)
class MissingReference:
    """An object, or a key of it, that is not there: what, and which field of the pod wants it."""

    kind: str
    namespace: str
    name: str
    path: str
    key: str | None = None

    @property
    def message(self) -> str:
        """In the kubelet's words, which people search for."""
        if self.key is None:
            return f'{self.kind.lower()} "{self.name}" not found'
        return f"couldn't find key {self.key} in {self.kind} {self.namespace}/{self.name}"

    @property
    def reason(self) -> str:
        """The end of the Event's reason, after ``Optional`` or ``Mandatory``."""
        return f"{self.kind}NotFound" if self.key is None else f"{self.kind}KeyNotFound"

    def __str__(self) -> str:
        return f"{self.message} ({self.path})"


@dataclass(frozen=True, slots=True)
class Entries:
    """The keys of one object: those written as text, and those written in base64."""

    reference: Reference
    plain: Mapping[str, str] = field(repr=False)
    encoded: Mapping[str, str] = field(repr=False)

    def names(self) -> list[str]:
        """All keys, sorted."""
        return sorted({*self.plain, *self.encoded})

    def without_binary(self) -> Entries:
        """What counts for variables: a ConfigMap's ``binaryData`` makes none."""
        if self.reference.kind == SECRET:
            return self
        return Entries(self.reference, self.plain, {})


@dataclass(slots=True)
class Lookup:
    """The objects a pod may refer to, and the growing record of what was missed."""

    namespace: str
    objects: Mapping[ObjectKey, Json | None] = field(repr=False)
    missing: list[MissingReference] = field(default_factory=list)
    skipped: list[MissingReference] = field(default_factory=list)
    unresolvable: list[FieldProblem] = field(default_factory=list)
    secret_values: set[str] = field(default_factory=set, repr=False)
    _contents: dict[tuple[bool, str], bytes] = field(default_factory=dict, repr=False)
    _texts: dict[bytes, str] = field(default_factory=dict, repr=False)
    """What was decoded already: a pod may want the same megabyte a thousand times."""

    def find(self, reference: Reference) -> Json | None:
        """The object itself, or None after noting the miss."""
        key = ObjectKey(reference.kind, self.namespace, reference.name)
        found = self.objects.get(key)
        if found is None:
            self._note(reference)
        return found

    def entries(self, reference: Reference) -> Entries | None:
        """The object's keys; None if there is no object."""
        found = self.find(reference)
        if found is None:
            return None
        if reference.kind == SECRET:
            return Entries(reference, strings(found, "stringData"), strings(found, "data"))
        return Entries(reference, strings(found, "data"), strings(found, "binaryData"))

    def content(self, entries: Entries, key: str) -> bytes | None:
        """One key as a file's content, or None after noting why not."""
        content = self._content(entries, key)
        if content and entries.reference.kind == SECRET:
            self.secret_values.add(content.decode(errors="replace"))
        return content

    def _content(self, entries: Entries, key: str) -> bytes | None:
        is_plain = key in entries.plain
        source = (entries.plain if is_plain else entries.encoded).get(key)
        if source is None:
            self.miss_key(entries.reference, key)
            return None
        if (known := self._contents.get((is_plain, source))) is not None:
            return known
        try:
            content = source.encode() if is_plain else base64.b64decode(source, validate=True)
            return self._contents.setdefault((is_plain, source), content)
        except binascii.Error:
            self._refuse_key(entries.reference, key, "is not base64")
            return None

    def value(self, entries: Entries, key: str) -> str | None:
        """One key as an environment variable's value, or None after noting why not."""
        content = self.content(entries, key)
        if content is None:
            return None
        try:
            return self._texts.get(content) or self._texts.setdefault(content, content.decode())
        except UnicodeDecodeError:
            self._refuse_key(entries.reference, key, "is no text, so it can't be a variable")
            return None

    def miss_key(self, reference: Reference, key: str) -> None:
        """Note that the object is there, but lacks ``key``."""
        self._note(reference, key)

    def refuse(self, path: str, message: str) -> None:
        """Note a field that can't be filled in before the pod runs, whatever is created."""
        self.unresolvable.append(FieldProblem(path, message))

    def _note(self, reference: Reference, key: str | None = None) -> None:
        missed = MissingReference(
            reference.kind, self.namespace, reference.name, reference.path, key
        )
        (self.skipped if reference.optional else self.missing).append(missed)

    def _refuse_key(self, reference: Reference, key: str, why: str) -> None:
        place = ObjectKey(reference.kind, self.namespace, reference.name)
        self.refuse(reference.path, f"key {key} of {place} {why}")
