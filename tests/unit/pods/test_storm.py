"""The storm guard: what a ReplicaSet would make of a pod that always fails, and what it may."""

from collections.abc import Callable

import pytest

from vk_provider.pods.storm import StormGuard
from vk_provider.pods.types import PodUID


def uid(number: int) -> PodUID:
    """The pod of this number."""
    return PodUID(f"pod-{number}")


def failures_within(seconds: float, fail: Callable[[StormGuard, PodUID, float], None]) -> int:
    """One replica that fails at once, replaced within a tenth of a second."""
    guard, count, now = StormGuard(), 0, 0.0
    while now < seconds:
        if guard.held_until("owner", uid(count), now) is None:
            fail(guard, uid(count), now)
            count += 1
        now += 0.1
    return count


def refuse(guard: StormGuard, pod: PodUID, now: float) -> None:
    """It is refused on sight."""
    guard.charge("owner", pod, now)


def crash(guard: StormGuard, pod: PodUID, now: float) -> None:
    """It is made, runs, and exits."""
    guard.enter("owner", pod, now)
    guard.settle(pod)
    guard.charge("owner", pod, now)


@pytest.mark.parametrize("fail", [refuse, crash])
def test_one_bad_replica_fails_seven_times_in_a_minute(
    fail: Callable[[StormGuard, PodUID, float], None],
) -> None:
    """Five at once, then after 10 and 20 s more; unguarded it was over a thousand."""
    assert failures_within(60, fail) == 7
    assert failures_within(1200, fail) <= 13


def test_a_hundred_bad_replicas_fail_five_at_once() -> None:
    """The others are held before their first verdict."""
    guard = StormGuard()
    failed = 0
    for number in range(100):
        if guard.held_until("owner", uid(number), 0.0) is None:
            guard.charge("owner", uid(number), 0.0)
            failed += 1

    assert failed == 5
    assert guard.held_until("owner", uid(99), 0.0) == 10.0


def test_a_hundred_good_replicas_cost_nothing() -> None:
    """Not even after one of them was lost."""
    guard = StormGuard()
    guard.charge("owner", uid(1000), 0.0)

    for number in range(100):
        assert guard.held_until("owner", uid(number), 1.0) is None
        guard.enter("owner", uid(number), 1.0)


def test_an_owner_does_not_answer_for_another() -> None:
    """Buckets are per top owner."""
    guard = StormGuard()
    for number in range(5):
        guard.charge("bad", uid(number), 0.0)

    assert guard.held_until("bad", uid(9), 1.0) == 10.0
    assert guard.held_until("good", uid(9), 1.0) is None


def ran_out() -> StormGuard:
    """A guard whose owner has just used up its tokens."""
    guard = StormGuard()
    for number in range(5):
        guard.charge("owner", uid(number), 0.0)
    return guard


def test_without_tokens_creates_follow_one_another() -> None:
    """Each pays in advance, and gives back when its pod runs (C109)."""
    guard = ran_out()
    guard.enter("owner", uid(10), 10.0)
    guard.enter("owner", uid(10), 10.0)
    assert guard.held_until("owner", uid(10), 10.0) is None
    assert guard.held_until("owner", uid(11), 10.0) == 30.0

    guard.settle(uid(10))
    assert guard.held_until("owner", uid(11), 12.0) is None


def test_a_reserved_token_is_charged_once() -> None:
    """The pod that paid in advance may fail for it."""
    guard = ran_out()
    guard.enter("owner", uid(10), 10.0)
    guard.charge("owner", uid(10), 11.0)

    assert guard.held_until("owner", uid(11), 30.0) is None


def test_a_crash_loop_of_many_does_not_live_on_returned_tokens() -> None:
    """What fails after it ran is owed, so that starts do not go round for ever."""
    guard = ran_out()
    guard.enter("owner", uid(10), 10.0)
    guard.settle(uid(10))
    guard.enter("owner", uid(11), 12.0)
    guard.charge("owner", uid(10), 13.0)
    guard.settle(uid(11))

    assert guard.held_until("owner", uid(12), 14.0) == 30.0


def test_many_losses_at_once_do_not_silence_an_owner() -> None:
    """A data centre that fails costs one interval, not a hundred."""
    guard = StormGuard()
    for number in range(100):
        guard.charge("owner", uid(number), 0.0)

    held = guard.held_until("owner", uid(200), 60.0)
    assert held is None


def test_settling_a_stranger_or_after_the_reset_is_harmless() -> None:
    """Every pod that runs is settled, at every list."""
    guard = ran_out()
    guard.settle(uid(77))
    guard.enter("owner", uid(10), 10.0)
    assert guard.prune(1000.0) == 0

    guard.settle(uid(10))
    assert guard.held_until("owner", uid(11), 1000.0) is None


def test_owners_that_never_come_again_are_forgotten() -> None:
    """A bare pod and a Job are owners of their own, and every one that fails is a new one."""
    guard = StormGuard()
    for number in range(3000):
        guard.charge(f"default/Job/{number}", uid(number), 5.0 * number)

    assert len(guard._owners) <= 2 * 600.0 / 5.0


def test_ten_quiet_minutes_reset_an_owner() -> None:
    """And its bucket is forgotten (C129)."""
    guard = ran_out()
    assert guard.prune(599.0) == 1

    assert guard.prune(600.0) == 0
    assert guard.held_until("owner", uid(9), 600.0) is None


def test_the_interval_doubles_up_to_five_minutes() -> None:
    """10, 20, 40, 80, 160, 300, 300 s."""
    guard, now, waits = ran_out(), 0.0, []
    for number in range(10, 17):
        held = guard.held_until("owner", uid(number), now)
        assert held is not None
        waits.append(held - now)
        now = held
        guard.charge("owner", uid(number), now)

    assert waits == [10, 20, 40, 80, 160, 300, 300]


def test_the_node_as_a_whole_is_paced_too() -> None:
    """Fifty at once, then one per second, whoever owns them."""
    guard = StormGuard()
    for number in range(50):
        assert guard.held_until("another", uid(99), 0.0) is None
        guard.charge(f"owner-{number}", uid(number), 0.0)

    assert guard.held_until("another", uid(99), 0.25) == pytest.approx(1.0)
    assert guard.held_until("another", uid(99), 1.0) is None


def test_it_is_rebuilt_from_failed_pods_in_the_order_of_time() -> None:
    """After a restart an owner is where it was; times before the start are negative."""
    guard = StormGuard()
    for number, ago in enumerate((700, 40, 39, 38, 37, 36, 26)):
        guard.charge("owner", uid(number), -float(ago))

    assert guard.held_until("owner", uid(9), -7.0) == pytest.approx(-6.0)
