"""The ConfigMaps and Secrets that go along with a pod: which, with which keys, under which names.

Only what is referred to leaves home, and of that only the keys that are named where all references
name keys. Pods that need the same share one copy: its name is a hash of where it comes from. Each
of them is an owner of the copy, so the other cluster's own garbage collector removes it with the
last of them.
Pure. Fed by :mod:`.translate` while it goes through a pod; feeds ``client`` and ``explain``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vk_provider.pods.reading import strings, text
from vk_provider.pods.references import CONFIG_MAP, SECRET, ObjectKey
from vk_provider.pods.tokens import TokenWish
from vk_provider.pods.types import Json, Stamp
from vk_provider_kubernetes import stamp as marks

PULL_TYPES = ("kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg")
"""The types that mean something to the other cluster's kubelet; all others become Opaque."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One object to be written beside the pod. ``content`` holds ``data`` and its like."""

    kind: str
    name: str
    origin: str
    content: Mapping[str, Any] = field(repr=False)

    def body(self, namespace: str, stamp: Stamp) -> dict[str, Any]:
        """The object as it is created, but for its owners."""
        labels = marks.labels(stamp)
        del labels[marks.POD_UID]  # several pods may share it
        return {
            "apiVersion": "v1",
            "kind": self.kind,
            "metadata": {
                "name": self.name,
                "namespace": namespace,
                "labels": labels,
                "annotations": {marks.COPY: self.origin},
            },
            **self.content,
        }


@dataclass(slots=True)
class Copies:
    """Collects the references of one pod. A key of None means the whole object."""

    stamp: Stamp
    objects: Mapping[Any, Json] = field(repr=False)
    tokens: Mapping[Any, str] = field(default_factory=dict, repr=False)
    _wanted: dict[ObjectKey, set[str | None]] = field(default_factory=dict)
    _values: dict[str, str] = field(default_factory=dict, repr=False)
    _tokens: dict[str, str] = field(default_factory=dict, repr=False)

    def want(self, kind: str, name: str, keys: Iterable[str] | None = None) -> None:
        """A reference to an object of the pod's namespace, or to some keys of it."""
        key = ObjectKey(kind, self.stamp.namespace, name)
        self._wanted.setdefault(key, set()).update([None] if keys is None else keys)

    def name_of(self, kind: str, name: str) -> str:
        """What the copy is called. Asked for after all references were wanted."""
        key = ObjectKey(kind, self.stamp.namespace, name)
        return marks.named(
            name, self.stamp.cluster_id, self.stamp.node_name, *key, *self._keys(key)
        )

    def value(self, content: str) -> str:
        """Keep a value that home knows; the key under which :attr:`values_name` holds it."""
        key = f"value-{len(self._values)}"
        self._values[key] = content
        return key

    @property
    def values_name(self) -> str:
        """The name of the ConfigMap with this pod's own values."""
        owner = (self.stamp.cluster_id, self.stamp.pod_uid, "values")
        return marks.named(self.stamp.pod_name, *owner)

    def token(self, wish: TokenWish) -> str:
        """Take a token of the home cluster along; the key under which :attr:`tokens_name` holds it.
        It is empty where nobody has asked for it, as when a person looks at what would be made."""
        key = f"token-{marks.digest(*map(str, wish))}"
        self._tokens[key] = base64.b64encode(self.tokens.get(wish, "").encode()).decode()
        return key

    @property
    def tokens_name(self) -> str:
        """The name of the Secret with this pod's own tokens."""
        owner = (self.stamp.cluster_id, self.stamp.pod_uid, "tokens")
        return marks.named(self.stamp.pod_name, *owner)

    def all(self) -> tuple[Copy, ...]:
        """Every copy to be made; what is not there at home (it was optional) has none."""
        found = [self._copy(key) for key in sorted(self._wanted) if key in self.objects]
        if self._values:
            origin = f"values of pod {self.stamp.namespace}/{self.stamp.pod_name}"
            found.append(Copy(CONFIG_MAP, self.values_name, origin, {"data": self._values}))
        if self._tokens:
            origin = f"tokens of pod {self.stamp.namespace}/{self.stamp.pod_name}"
            content = {"data": self._tokens, "type": "Opaque"}
            found.append(Copy(SECRET, self.tokens_name, origin, content))
        return tuple(found)

    def emptied(self) -> tuple[Copy, ...]:
        """What copies become whose object is not at home any more. All references to it are
        optional, or the pod would not have been resolved: its files go, as with a kubelet."""
        gone = [key for key in sorted(self._wanted) if key not in self.objects]
        return tuple(
            Copy(key.kind, self.name_of(key.kind, key.name), str(key), _nothing(key.kind))
            for key in gone
        )

    def _keys(self, key: ObjectKey) -> list[str]:
        """The keys that are wanted, sorted; ``*`` is all of them, whatever else is named."""
        wanted = self._wanted.get(key, {None})
        return ["*"] if None in wanted else sorted(filter(None, wanted))

    def _copy(self, key: ObjectKey) -> Copy:
        found, keys = self.objects[key], self._keys(key)
        fields = ("data", "binaryData") if key.kind == CONFIG_MAP else ("data",)
        source = dict(found) if key.kind == CONFIG_MAP else {"data": _encoded(found)}
        content: dict[str, Any] = {
            name: {
                entry: value
                for entry, value in strings(source, name).items()
                if keys == ["*"] or entry in keys
            }
            for name in fields
        }
        if key.kind == SECRET:
            own = text(found, "type")
            content["type"] = own if own in PULL_TYPES and keys == ["*"] else "Opaque"
        return Copy(key.kind, self.name_of(key.kind, key.name), str(key), content)


def _nothing(kind: str) -> dict[str, Any]:
    fields = ("data", "binaryData") if kind == CONFIG_MAP else ("data",)
    return {field: {} for field in fields}


def _encoded(secret: Json) -> dict[str, str]:
    """A Secret's data; ``stringData`` is what a person may have typed for ``explain``."""
    typed = {
        key: base64.b64encode(value.encode()).decode()
        for key, value in strings(secret, "stringData").items()
    }
    return {**strings(secret, "data"), **typed}
