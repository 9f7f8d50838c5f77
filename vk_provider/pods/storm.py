"""The storm guard: paces verdicts, because a ReplicaSet answers a Failed pod within milliseconds.

One bucket per top owner and one for the node. A bucket is charged when Failed is written (any
reason) and gates the *first verdict* (refuse, fail or create) on that owner's later pods. An
owner without recent failures is never gated: initial replicas cost nothing. Nor is one whose
tokens last: a lost instance or two slow nobody down. Once they have run out, each first verdict
reserves a token in advance, which a pod that gets to Running gives back: a crash loop buys no
instance each second, and pods that work follow each other as fast as they start.
Fed by ``loops.pod_workers``; ``now`` is always an argument (seconds of any steady clock).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vk_provider.pods.types import PodUID


@dataclass(frozen=True, slots=True)
class StormLimits:
    """``burst`` verdicts at once per owner, then one per ``first_interval`` seconds, doubling to
    ``max_interval``; all forgotten after ``reset_after`` seconds without a failure. For the whole
    node ``node_burst`` at once, then ``node_per_second``."""

    burst: int = 5
    first_interval: float = 10.0
    max_interval: float = 300.0
    reset_after: float = 600.0
    node_burst: int = 50
    node_per_second: float = 1.0


@dataclass(slots=True)
class _Bucket:
    """``tokens`` may be owed. ``next_at``: when the next one comes; set whenever none is left."""

    tokens: int
    interval: float
    next_at: float | None = None
    last_failure: float = 0.0
    ran_out: bool = False


@dataclass(slots=True)
class StormGuard:
    """Mutable, but pure: no clock and no I/O of its own. Times are seconds, monotone."""

    limits: StormLimits = StormLimits()
    _owners: dict[str, _Bucket] = field(default_factory=dict)
    _reserved: dict[PodUID, str] = field(default_factory=dict)
    _node_tokens: float = 0.0
    _node_at: float | None = None
    _pruned_at: float | None = None

    def held_until(self, owner: str, uid: PodUID, now: float) -> float | None:
        """None: a first verdict on this pod may fall now. Else the time to ask again."""
        if uid in self._reserved:
            return None
        waits = [self._owner_wait(owner, now), self._node_wait(now)]
        return max((wait for wait in waits if wait is not None), default=None)

    def enter(self, owner: str, uid: PodUID, now: float) -> None:
        """A first verdict (a create) begins: an owner that ran out of tokens pays in advance."""
        bucket = self._refilled(owner, now)
        if bucket is None or not bucket.ran_out or uid in self._reserved:
            return
        self._spend(bucket, now)
        self._reserved[uid] = owner

    def settle(self, uid: PodUID) -> None:
        """The pod got to Running, or is gone without a failure: its reservation goes back."""
        owner = self._reserved.pop(uid, None)
        bucket = self._owners.get(owner) if owner is not None else None
        if bucket is not None:
            bucket.tokens = min(self.limits.burst, bucket.tokens + 1)

    def charge(self, owner: str, uid: PodUID, now: float) -> None:
        """Failed is being written for a pod of this owner."""
        bucket = self._refilled(owner, now)
        if bucket is None:
            bucket = _Bucket(self.limits.burst, self.limits.first_interval)
            self._owners[owner] = bucket
        if self._reserved.pop(uid, None) is None:
            self._spend(bucket, now)
        bucket.last_failure = now
        self._node_tokens = max(0.0, self._node_level(now) - 1.0)
        self._node_at = now
        if self._pruned_at is None or now - self._pruned_at >= self.limits.reset_after:
            self.prune(now)

    def prune(self, now: float) -> int:
        """Forget owners without recent failures; returns how many are remembered. Done at a charge
        now and then: many an owner (a Job, a bare pod) never comes again."""
        self._pruned_at = now
        for owner in list(self._owners):
            self._refilled(owner, now)
        return len(self._owners)

    def _owner_wait(self, owner: str, now: float) -> float | None:
        bucket = self._refilled(owner, now)
        return None if bucket is None or bucket.tokens > 0 else bucket.next_at

    def _node_wait(self, now: float) -> float | None:
        level = self._node_level(now)
        if level >= 1.0:
            return None
        return now + (1.0 - level) / self.limits.node_per_second

    def _node_level(self, now: float) -> float:
        if self._node_at is None:
            return float(self.limits.node_burst)
        gained = (now - self._node_at) * self.limits.node_per_second
        return min(float(self.limits.node_burst), self._node_tokens + gained)

    def _spend(self, bucket: _Bucket, now: float) -> None:
        """What is owed is bounded, so that a data centre that fails does not silence an owner."""
        bucket.tokens = max(-self.limits.burst, bucket.tokens - 1)
        if bucket.tokens <= 0 and bucket.next_at is None:
            bucket.ran_out = True
            bucket.next_at = now + bucket.interval
            bucket.interval = min(bucket.interval * 2, self.limits.max_interval)

    def _refilled(self, owner: str, now: float) -> _Bucket | None:
        bucket = self._owners.get(owner)
        if bucket is None:
            return None
        if now - bucket.last_failure >= self.limits.reset_after:
            del self._owners[owner]
            return None
        if bucket.next_at is not None and now >= bucket.next_at:
            bucket.tokens = max(bucket.tokens, 1)
            bucket.next_at = None
        return bucket
