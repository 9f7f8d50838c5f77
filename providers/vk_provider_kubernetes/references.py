"""What an instance is called: namespace, name and UID of the remote pod, as one text.

The UID makes it unique in time: an order to end one instance never ends another of its name.
Pure. Fed by :mod:`.observe` and by the core; read by the client.
"""

from __future__ import annotations

from dataclasses import dataclass

from vk_provider.faults import InstanceNotFoundError
from vk_provider.pods.reading import mapping, text
from vk_provider.pods.types import InstanceRef, Json


@dataclass(frozen=True, slots=True)
class Reference:
    """One remote pod."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}/{self.uid}"

    @classmethod
    def of(cls, pod: Json) -> Reference:
        """That of an object of the remote API server."""
        metadata = mapping(pod, "metadata")
        return cls(text(metadata, "namespace"), text(metadata, "name"), text(metadata, "uid"))

    @classmethod
    def read(cls, ref: InstanceRef) -> Reference:
        """That of an instance. Raises ``InstanceNotFoundError`` for what never was one."""
        parts = ref.id.split("/")
        if len(parts) != 3 or not all(parts):
            raise InstanceNotFoundError(f"{ref.id} is no pod of the other cluster")
        return cls(*parts)
