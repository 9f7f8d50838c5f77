"""The opt-in end of pods whose backend is silent for too long."""

from __future__ import annotations

from tests.unit.pods.situations import NOW, UID, at, make_pod, make_world
from vk_provider.pods import verdicts
from vk_provider.pods.actions import Conclude, WakeAt
from vk_provider.pods.lifecycle import decide
from vk_provider.pods.slots import Existence, Record
from vk_provider.pods.world import LifecycleLimits

LIMITS = LifecycleLimits(backend_lost=60)


def uncertain() -> Record:
    """A pod whose create may have succeeded on backend ``a``."""
    return Record(UID, NOW, pod=make_pod(), exists=Existence.UNKNOWN, backend="a")


def test_nobody_is_given_up_unless_that_was_asked_for() -> None:
    """An outage of an API is no death of a pod."""
    assert verdicts.given_up("a", 1e9, None) is None
    assert verdicts.given_up("a", 59, 60) is None


def test_a_silent_backends_pod_is_lost_on_request() -> None:
    """With the backend and its silence in the message."""
    actions = decide(uncertain(), make_world(limits=LIMITS, silence=lambda _: 61.0))
    (verdict,) = [each.verdict for each in actions if isinstance(each, Conclude)]
    assert verdict.reason == "ProviderLost"
    assert verdict.message == "the backend a has given no list for 61 s"


def test_a_timer_comes_before_that() -> None:
    """A backend that is configured no longer brings no news at all."""
    actions = decide(uncertain(), make_world(limits=LIMITS, silence=lambda _: 20.0))
    assert actions == [WakeAt(at(40))]
    assert decide(uncertain(), make_world(silence=lambda _: 20.0)) == []
