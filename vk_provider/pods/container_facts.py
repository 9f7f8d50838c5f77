"""Small readings of a container's spec and status that every rule about statuses shares.

Fed by ``containerStatuses`` as the API server has them, or as just rendered; read by the other
modules about statuses. Nothing raises, whatever stands there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from vk_provider.pods.types import Json

_OBJECT = (dict, Mapping)
"""``dict`` is what JSON decodes to; asking for it first is many times faster."""


def timestamp(moment: datetime) -> str:
    """A time as Kubernetes writes it: UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def has_started(status: Json) -> bool:
    """Whether this container runs or ever ran, as far as its status tells."""
    state = mapping(status.get("state"))
    return bool(
        is_in(state, "running")
        or is_in(state, "terminated")
        or is_in(mapping(status.get("lastState")), "terminated")
        or restart_count(status)
    )


def is_in(state: Json, name: str) -> bool:
    """Whether a container state is ``running``, ``waiting`` or ``terminated``."""
    return state.get(name) is not None


def is_running(status: Json) -> bool:
    """Whether this container runs now, as far as its status tells."""
    return is_in(mapping(status.get("state")), "running")


def is_done(status: Json) -> bool:
    """Whether this (init) container ended with exit code 0."""
    ended = mapping(mapping(status.get("state")).get("terminated"))
    return bool(ended) and ended.get("exitCode", 0) == 0


def is_sidecar(spec: Json) -> bool:
    """An init container that keeps running beside the regular ones."""
    return spec.get("restartPolicy") == "Always"


def mapping(value: object) -> Json:
    """The value when it is a JSON object, else an empty one: garbage never raises."""
    return value if isinstance(value, _OBJECT) else {}


def restart_count(status: Json) -> int:
    """How often the backend restarted this container in place; 0 for nonsense."""
    count = status.get("restartCount")
    return count if isinstance(count, int) else 0
