"""The fake service with everything a test may do to it.

Fed by tests, benchmarks and rehearsals; it is the service that :mod:`.fake` speaks to.
"""

from __future__ import annotations

from vk_provider.faults import ProviderError
from vk_provider.pods.types import EndCause, InstanceRef, PodUID
from vk_provider.testing.fake_instance import End, FakeInstance
from vk_provider.testing.fake_ledger import Bill
from vk_provider.testing.fake_service import FakeService


class FakeBackend(FakeService):
    """The service, and what a test may do to it."""

    def fail_next_create(self, fault: ProviderError, *, created: bool = False) -> None:
        """Let the next create call fail; ``created``: after it has made the instance."""
        self.script.fail_next("create", fault, created=created)

    def instances_of(self, pod_uid: PodUID) -> list[FakeInstance]:
        """What is there for a pod, deleted ones excepted."""
        return [
            each
            for each in self.instances.values()
            if each.stamp and each.stamp.pod_uid == pod_uid and each.deleted_at is None
        ]

    def start(self, ref: InstanceRef) -> None:
        """Start an instance's containers now, if they have not started."""
        instance = self.find(ref)
        instance.starts_at = min(instance.starts_at, self.clock())
        self.tell(instance)

    def end(
        self,
        ref: InstanceRef,
        exit_code: int | None = 0,
        *,
        cause: EndCause | None = None,
        reason: str | None = None,
        message: str | None = None,
    ) -> None:
        """End an instance's containers now."""
        instance = self.find(ref)
        instance.end = End(self.clock(), exit_code, cause, reason, message)
        self.tell(instance)

    def preempt(self, ref: InstanceRef) -> None:
        """Take an instance away, as a spot market does."""
        message = "the machine was taken back"
        self.end(ref, None, cause=EndCause.PREEMPTED, reason="Preempted", message=message)

    def die(self, ref: InstanceRef) -> None:
        """Let an instance's machine die; the service still lists it."""
        message = "the machine is gone"
        self.end(ref, None, cause=EndCause.LOST, reason="MachineLost", message=message)

    def lose(self, ref: InstanceRef) -> None:
        """Let an instance vanish from the lists without a word."""
        instance = self.instances.pop(ref.id)
        instance.deleted_at = self.clock()

    def garble(self, ref: InstanceRef, garbled: bool = True) -> None:
        """Let the service show an instance in a way that nobody can read."""
        instance = self.find(ref)
        instance.garbled = garbled
        self.tell(instance)

    def write_log(self, ref: InstanceRef, container: str, text: bytes) -> None:
        """Let a container write a line."""
        instance = self.find(ref)
        instance.written.append((self.clock(), container, text))
        self.tell(instance)

    def wake(self) -> None:
        """Call this after moving a clock of your own: watches look at it again."""
        self.watchers.wake()

    def bills(self, pod_uid: PodUID | None = None) -> tuple[Bill, ...]:
        """The ledger as it stands."""
        return self.ledger.bills(self.clock(), pod_uid)

    def billed_twice(self) -> frozenset[PodUID]:
        """Pods that were paid for twice at the same time; empty if all is well."""
        return self.ledger.billed_twice(self.clock())
