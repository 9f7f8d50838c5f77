"""People are told when they change a pod that its backend can't change."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from vk_provider.loops.unfollowed import Unfollowed
from vk_provider.pods.actions import CreateInstance
from vk_provider.pods.slots import Existence, Record, changed
from vk_provider.pods.types import IMPLICIT_OFFER, Candidate, Json
from vk_provider.provider import ProviderTraits
from vk_provider.testing.builders import make_container, make_pod, make_resolved_pod, uid_of

UID = uid_of("app-1")


@dataclass
class Bench:
    """One pod, and what was told about it."""

    follows: bool = False
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        traits = ProviderTraits(0.0, follows_updates=self.follows)
        backend = SimpleNamespace(name="b", provider=SimpleNamespace(traits=traits))
        self.records: dict[Any, Record] = {}
        workers: Any = SimpleNamespace(records=self.records)
        backends: Any = {"b": backend}
        self.eye = Unfollowed(workers, backends, self._emit)
        self.record(exists=Existence.PRESENT, backend="b")

    def _emit(self, _: Json, kind: str, reason: str, message: str) -> None:
        self.told.append(f"{kind} {reason}: {message}")

    def record(self, **slots: Any) -> None:
        """What is remembered of the pod."""
        self.records[UID] = changed(Record(UID, datetime(2026, 1, 1, tzinfo=UTC)), **slots)

    def image(self, image: str) -> None:
        """The pod has this image now."""
        self.eye.pod_changed(UID, make_pod(containers=[make_container(image=image)]))


def test_a_change_is_told_once() -> None:
    """With what to do about it."""
    bench = Bench()

    for image in ("app:1", "app:2", "app:2"):
        bench.image(image)

    assert bench.told == [
        "Warning UpdateIgnored: spec.containers[0].image was changed from app:1 to app:2: "
        "backend b can't change a running instance; delete the pod to have it made anew"
    ]


def test_a_change_while_the_instance_is_being_made_comes_too_late_as_well() -> None:
    """The call has what it was given."""
    bench = Bench()
    call = CreateInstance(make_resolved_pod(), Candidate("b", IMPLICIT_OFFER))
    bench.record(in_flight=call)

    bench.image("app:1")
    bench.image("app:2")

    assert len(bench.told) == 1


@pytest.mark.parametrize("slots", [{}, {"exists": Existence.ABSENT, "backend": "b"}, None])
def test_a_pod_without_an_instance_is_made_as_it_is_then(slots: dict[str, Any] | None) -> None:
    """Nothing is lost."""
    bench = Bench()
    bench.records.clear()
    if slots is not None:
        bench.record(**slots)

    bench.image("app:1")
    bench.image("app:2")

    assert bench.told == []


def test_a_backend_that_follows_needs_no_words() -> None:
    """It does what was wished."""
    bench = Bench(follows=True)

    bench.image("app:1")
    bench.image("app:2")

    assert bench.told == []


def test_a_pod_that_is_gone_is_forgotten() -> None:
    """Its successor has a uid of its own."""
    bench = Bench()

    bench.image("app:1")
    bench.eye.pod_changed(UID, None)
    bench.image("app:2")

    assert bench.told == []
